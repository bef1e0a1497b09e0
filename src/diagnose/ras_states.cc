// Processes that RAS cannot reach, errors that ranks report, and ranks of a communicator that stand
// at another point of its life than the others.
#include <algorithm>

#include "diagnose/ras_view.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

constexpr std::size_t kMostRasFindings = 64;

std::string processes_words(const RasAbsent& absent) {
  constexpr std::size_t kMost = 4;
  std::string text = std::to_string(absent.count) + (absent.count == 1 ? " process" : " processes");
  if (absent.listed.empty()) return text;
  const std::size_t shown = std::min(kMost, absent.listed.size());
  text = absent.count == 1 ? "" : text + " (";
  for (std::size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : "; ") + ras_process_words(absent.listed[i]);
  const std::int64_t more = absent.count - static_cast<std::int64_t>(shown);
  if (more > 0) text += " and " + std::to_string(more) + " more";
  return text + (absent.count == 1 ? "" : ")");
}

// The ranks that these processes have, as far as communicators that lack them say so.
void add_ranks_of(DiagnosisFinding& finding, const RasOutput& output, const RasAbsent& absent) {
  constexpr std::size_t kMost = 24;
  for (const RasProcess& process : absent.listed) {
    if (finding.evidence.size() > kMost) return;
    finding.evidence.push_back(ras_line(*output.witness, process.line, ras_process_words(process)));
    for (const RasBlock& block : output.snapshot->blocks) {
      if (block.kind != RasBlock::Kind::incomplete || finding.evidence.size() > kMost) continue;
      for (const RasRank& rank :
           block.sets.empty() ? std::vector<RasRank>() : block.sets[0].listed) {
        if (rank.process.pid != process.pid || rank.process.node != process.node) continue;
        finding.evidence.push_back(ras_line(
            *output.witness, rank.process.line,
            "it is rank " + std::to_string(rank.rank) + " of communicator #" + block.label));
      }
    }
  }
}

DiagnosisFinding dead_finding(const RasOutput& output) {
  const RasAbsent& dead = output.snapshot->dead;
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::crash;
  finding.message = processes_words(dead) + (dead.count == 1 ? " is" : " are") +
                    " dead by RAS: nothing of NCCL's answers there any more";
  finding.evidence.push_back(ras_line(
      *output.witness, dead.line, std::to_string(dead.count) + " considered dead (unreachable)"));
  add_ranks_of(finding, output, dead);
  finding.confidence = Confidence::likely;
  finding.advice =
      "look how it ended: its output, the launcher's list of failures, dmesg of its node (signal 9 "
      "is mostly the kernel's out-of-memory killer, Xid a GPU's error); if it runs, look at the "
      "network between the nodes";
  return finding;
}

DiagnosisFinding silent_finding(const RasOutput& output) {
  const RasAbsent& silent = output.snapshot->silent;
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::crash;
  finding.momentary = true;
  finding.message = processes_words(silent) +
                    " gave RAS no data of its communicators: it may have stopped, or have answered "
                    "too late, which one output does not tell";
  finding.evidence.push_back(
      ras_line(*output.witness, silent.line,
               "missing communicator data from " + std::to_string(silent.count)));
  add_ranks_of(finding, output, silent);
  finding.confidence = Confidence::undecidable;
  finding.advice =
      "see whether it runs, and look at its stack (py-spy dump --pid PID); print the "
      "status again: what RAS cannot reach it calls dead after a while";
  return finding;
}

// Ranks without data where RAS names no process for it.
DiagnosisFinding incomplete_finding(const RasOutput& output, const RasBlock& block) {
  const RasSet& set = block.sets.front();
  DiagnosisFinding finding = ras_finding(DiagnosisKind::crash, *output.snapshot, block);
  finding.momentary = true;
  const std::string who = ras_set_words(block, set);
  finding.message = who +
                    " gave RAS no data: the process may have stopped, or have answered too "
                    "late, which one output does not tell";
  finding.evidence.push_back(
      ras_line(*output.witness, block.line, "missing data of communicator #" + block.label));
  add_ras_ranks(finding, *output.witness, set.listed, " of communicator #" + block.label);
  finding.confidence = Confidence::undecidable;
  finding.advice = "see whether the process runs, and print the status again (ncclras -v)";
  return finding;
}

// "remote process exited or there was a network error": the others' end, not one's own.
bool is_of_network(const std::string& word) {
  return word.find("remote process") != std::string::npos ||
         word.find("system error") != std::string::npos;
}

DiagnosisFinding error_finding(const RasOutput& output, const RasBlock& block, const RasSet& set) {
  DiagnosisFinding finding =
      ras_finding(is_of_network(set.word) ? DiagnosisKind::transport_error : DiagnosisKind::crash,
                  *output.snapshot, block);
  const bool follows = set.word.find("remote process") != std::string::npos;
  const std::string who = ras_set_words(block, set);
  finding.message = who + " reported \"" + set.word + "\"" +
                    (block.kind == RasBlock::Kind::init_error ? " while it was set up" : "") +
                    (follows ? ": another process ended, or the network failed" : "");
  if (!follows && set.is_named()) {
    for (const RasRank& rank : set.listed)
      finding.differing.push_back({rank.rank, "error", set.word, "none"});
  }
  finding.evidence.push_back(
      ras_line(*output.witness, block.line, "errors of communicator #" + block.label));
  add_ras_ranks(finding, *output.witness, set.listed, " reported " + set.word);
  finding.confidence = set.is_named() && !follows ? Confidence::likely : Confidence::undecidable;
  finding.advice =
      "read the log of this process for the first warning of NCCL's; without one, run "
      "again with NCCL_DEBUG=INFO";
  return finding;
}

// Who was aborted, when others were not; else the ranks may only come and go one after the other.
std::vector<DiagnosisFinding> status_findings(const RasOutput& output, const RasBlock& block) {
  std::vector<DiagnosisFinding> findings;
  const auto most =
      std::max_element(block.sets.begin(), block.sets.end(),
                       [](const RasSet& a, const RasSet& b) { return a.count < b.count; });
  std::int64_t all = 0;
  for (const RasSet& set : block.sets) all += set.count;
  const bool majority = 2 * most->count > all;
  for (const RasSet& set : block.sets) {
    const bool aborted = set.word == "ABORT";
    if (&set == &*most && !aborted) continue;
    if (findings.size() >= kMostRasFindings) break;
    DiagnosisFinding finding = ras_finding(
        aborted ? DiagnosisKind::crash : DiagnosisKind::state_mismatch, *output.snapshot, block);
    const std::string who = ras_set_words(block, set);
    const bool one = set.count == 1;
    finding.message = who + (one ? " has status " : " have status ") + set.word;
    if (&set != &*most)
      finding.message += ", " + std::to_string(most->count) +
                         (most->count == 1 ? " other " : " others ") + most->word;
    finding.message +=
        aborted ? ": the program or its watchdog gave the communicator up there"
                : "; ranks that set up or end a communicator do so one after the other, so that "
                  "one output proves nothing: print it again, some seconds later";
    if (set.is_named() && majority && &set != &*most) {
      for (const RasRank& rank : set.listed)
        finding.differing.push_back({rank.rank, "status", set.word, most->word});
    }
    finding.momentary = !aborted;
    finding.evidence.push_back(ras_line(*output.witness, set.line,
                                        std::to_string(set.count) + (one ? " rank" : " ranks") +
                                            " of communicator #" + block.label + " (" + block.hash +
                                            "): " + set.word));
    add_ras_ranks(finding, *output.witness, set.listed, " has status " + set.word);
    finding.confidence =
        aborted && set.is_named() && &set != &*most ? Confidence::likely : Confidence::undecidable;
    finding.advice = aborted ? "read the log of this process for why: an error, a timeout, or an "
                               "exception of the program"
                             : "if it stays: look at the stack of these processes (py-spy dump "
                               "--pid PID)";
    findings.push_back(std::move(finding));
  }
  return findings;
}

// What the table says and nothing else explains.
DiagnosisFinding bare_finding(const RasOutput& output, const RasRow& row) {
  const bool aborted = row.status == "ABORT";
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::crash;
  finding.momentary = true;
  finding.message = std::to_string(row.comms) +
                    (row.comms == 1 ? " communicator of " : " communicators of ") +
                    std::to_string(row.size) + " ranks " +
                    (aborted ? "with status ABORT" : "in which ranks report an error") +
                    "; which ranks these are stands nowhere in this output";
  finding.evidence.push_back(
      ras_line(*output.witness, row.line,
               "group " + std::to_string(row.group) + ": " + row.status + " " + row.errors));
  finding.confidence = Confidence::undecidable;
  finding.advice = aborted ? "read the logs of the job for the first error: all ranks gave up"
                           : "run ncclras -v again, and keep all that it prints";
  return finding;
}

bool tells(const RasSnapshot& snapshot, const RasRow& row, bool aborted) {
  return std::any_of(snapshot.blocks.begin(), snapshot.blocks.end(), [&](const RasBlock& block) {
    if (!is_of_row(block, row) || block.sets.empty()) return false;
    if (!aborted)
      return block.kind == RasBlock::Kind::init_error || block.kind == RasBlock::Kind::async_error;
    return block.kind == RasBlock::Kind::status &&
           std::any_of(block.sets.begin(), block.sets.end(),
                       [](const RasSet& set) { return set.word == "ABORT"; });
  });
}

void look_at_output(const RasOutput& output, std::vector<DiagnosisFinding>& findings) {
  const RasSnapshot& snapshot = *output.snapshot;
  if (snapshot.dead.count > 0) findings.push_back(dead_finding(output));
  if (snapshot.silent.count > 0) findings.push_back(silent_finding(output));
  const bool explained = snapshot.dead.count + snapshot.silent.count > 0;
  for (const RasBlock& block : snapshot.blocks) {
    if (findings.size() >= kMostRasFindings) return;
    if (block.sets.empty()) continue;
    switch (block.kind) {
      case RasBlock::Kind::counts: break;
      case RasBlock::Kind::incomplete:
        if (!explained) findings.push_back(incomplete_finding(output, block));
        break;
      case RasBlock::Kind::status:
        for (DiagnosisFinding& finding : status_findings(output, block))
          findings.push_back(std::move(finding));
        break;
      default:
        for (const RasSet& set : block.sets) {
          if (findings.size() < kMostRasFindings)
            findings.push_back(error_finding(output, block, set));
        }
    }
  }
  for (const RasRow& row : snapshot.rows) {
    if (findings.size() >= kMostRasFindings) return;
    const bool error = row.errors.find("ERROR") != std::string::npos;
    const bool aborted = row.status == "ABORT";
    if ((error && !tells(snapshot, row, false)) || (aborted && !tells(snapshot, row, true)))
      findings.push_back(bare_finding(output, row));
  }
}

std::vector<DiagnosisFinding> find_ras_states(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const RasOutput& output : ras_outputs(witnesses)) {
    if (findings.size() >= kMostRasFindings) break;
    look_at_output(output, findings);
  }
  return findings;
}

}  // namespace

extern const Verdict kRasStates;
constinit const Verdict kRasStates{
    .name = "ras_states",
    .summary = "Which processes are dead, and which ranks report an error or gave up, by RAS?",
    .find = find_ras_states,
};

}  // namespace commlens
