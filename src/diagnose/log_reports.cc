#include "diagnose/log_reports.h"

#include <set>

#include "diagnose/log_watchdog.h"
#include "model/witness_log.h"

namespace commlens {

std::optional<DiagnosisFinding> find_desync(const LogView& view) {
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::missing_rank;
  finding.confidence = Confidence::certain;
  std::set<std::int64_t> missing;
  std::set<std::int64_t> joined;
  bool never = false;
  for (const Witness* witness : view.logs) {
    for (const LogDesync& line : witness->log->desync) {
      if (line.kind == LogDesync::Kind::never_joined || line.kind == LogDesync::Kind::not_joined) {
        missing.insert(line.ranks.begin(), line.ranks.end());
        never = never || line.kind == LogDesync::Kind::never_joined;
      }
      if (line.kind == LogDesync::Kind::not_finished)
        joined.insert(line.ranks.begin(), line.ranks.end());
      if (line.seq >= 0 && (!finding.seq || line.seq > *finding.seq)) finding.seq = line.seq;
      if (line.kind == LogDesync::Kind::timed_out && finding.op.empty())
        finding.op = op_in_words(line.op);
      if (finding.evidence.size() < kMostLogEvidence)
        finding.evidence.push_back(evidence_line(*witness, line.line, line.text));
    }
  }
  if (missing.empty()) return std::nullopt;
  for (const std::int64_t rank : missing) joined.erase(rank);
  finding.missing_ranks.assign(missing.begin(), missing.end());
  finding.held.assign(joined.begin(), joined.end());
  finding.consequences = finding.held;
  finding.message =
      ranks_in_words(finding.missing_ranks) +
      (never ? " never joined any operation"
             : " did not join " + at_operation(finding.seq.value_or(-1), finding.op)) +
      (joined.empty() ? "" : ", in which " + ranks_in_words(finding.held) + " wait");
  finding.advice = "look at what " + ranks_in_words(finding.missing_ranks) +
                   " did at that time: py-spy dump, its last output, a branch that only it takes";
  return finding;
}

std::optional<DiagnosisFinding> find_barrier(const LogView& view) {
  DiagnosisFinding finding;
  std::set<std::int64_t> missing;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind != LogEventKind::barrier_timeout || event.ranks.empty()) continue;
      missing.insert(event.ranks.begin(), event.ranks.end());
      if (finding.evidence.size() < kMostLogEvidence)
        finding.evidence.push_back(evidence_line(*witness, event.line, event.text));
    }
  }
  if (missing.empty()) return std::nullopt;
  finding.kind = DiagnosisKind::missing_rank;
  finding.op = op_name(Op::barrier);
  finding.confidence = Confidence::certain;
  finding.missing_ranks.assign(missing.begin(), missing.end());
  finding.message =
      ranks_in_words(finding.missing_ranks) + " did not reach the monitored barrier in time";
  finding.advice = "look at what " + ranks_in_words(finding.missing_ranks) + " did at that time";
  return finding;
}

std::optional<DiagnosisFinding> find_stalled(const LogView& view) {
  DiagnosisFinding finding;
  std::set<std::int64_t> missing;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind != LogEventKind::stalled) continue;
      missing.insert(event.ranks.begin(), event.ranks.end());
      if (finding.evidence.size() < kMostLogEvidence)
        finding.evidence.push_back(evidence_line(*witness, event.line, event.text));
    }
  }
  if (missing.empty()) return std::nullopt;
  finding.kind = DiagnosisKind::missing_rank;
  finding.confidence = Confidence::likely;
  finding.missing_ranks.assign(missing.begin(), missing.end());
  finding.message =
      ranks_in_words(finding.missing_ranks) + " did not submit tensors that the others wait for";
  finding.advice =
      "see that all ranks build the same model and run the same number of steps; look at what " +
      ranks_in_words(finding.missing_ranks) + " did at that time";
  return finding;
}

std::optional<DiagnosisFinding> find_no_id(const LogView& view) {
  DiagnosisFinding finding;
  std::set<std::int64_t> missing;
  bool ended = false;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind != LogEventKind::id_timeout) continue;
      missing.insert(event.ranks.begin(), event.ranks.end());
      ended = ended || event.text.find("reset by peer") != std::string::npos ||
              event.text.find("Broken pipe") != std::string::npos;
      if (finding.evidence.size() < kMostLogEvidence)
        finding.evidence.push_back(evidence_line(*witness, event.line, event.text));
    }
  }
  if (missing.empty()) return std::nullopt;
  finding.kind = ended ? DiagnosisKind::transport_error : DiagnosisKind::missing_rank;
  finding.confidence = ended ? Confidence::undecidable : Confidence::likely;
  const std::vector<std::int64_t> ranks(missing.begin(), missing.end());
  if (!ended) finding.missing_ranks = ranks;
  finding.message = ended ? "the store closed the connection while ranks waited for a "
                            "communicator's id: the process "
                            "that holds it, mostly rank 0, ended first"
                          : ranks_in_words(ranks) +
                                " of the group did not come to its first operation: the others "
                                "waited for the communicator's id (ranks in that group)";
  finding.advice = "look at what that rank did at the time: its last output, its errors";
  return finding;
}

std::optional<DiagnosisFinding> find_store(const LogView& view) {
  DiagnosisFinding finding;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind == LogEventKind::store_timeout && finding.evidence.size() < kMostLogEvidence)
        finding.evidence.push_back(evidence_line(*witness, event.line, event.text));
    }
  }
  if (finding.evidence.empty()) return std::nullopt;
  finding.kind = DiagnosisKind::timeout;
  finding.confidence = Confidence::undecidable;
  finding.message =
      "ranks waited for others at the start until they gave up; which ones did not come is not in "
      "the logs";
  finding.advice =
      "see that every host started its processes with the same MASTER_ADDR, MASTER_PORT and world "
      "size, and "
      "that the port is reachable; give the logs of all ranks";
  return finding;
}

}  // namespace commlens
