// Ranks of a communicator that have launched fewer operations than the others, or more, by what RAS
// prints.
//
// Problem: a counter is what the host has launched at one moment. In a healthy job ranks are apart
// in passing, and a host can launch ahead of its GPU, so that one output proves no hang, and no
// rank is seen to wait. Method: counters are compared within one communicator and one kind of
// operation. Who launched the least holds the others up, or is most, and the others are ahead. A
// rank is named as likely only where the distance is more than a few operations. Where another
// output shows that those who launched the least have gone on, or that all have launched as many,
// nobody is named; where it shows the same, that is said: outputs bear no time, and may be copies.
// These findings stand behind all that rest on calls (order.cc).
#include <algorithm>
#include <map>

#include "diagnose/ras_view.h"
#include "diagnose/verdict.h"
#include "model/operation.h"

namespace commlens {
namespace {

// Apart by no more than this, ranks can be in passing.
constexpr std::int64_t kFewLaunches = 3;
constexpr std::size_t kMostSpreads = 64;

// "all_gather" for "AllGather"; empty for NCCL 2.24's "collective", which is no kind.
std::string op_of(const RasBlock& block) {
  std::string out;
  for (const char c : block.op) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && !out.empty()) out += '_';
    out += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const Op op = op_from_name(out).value_or(Op::unknown);
  return op == Op::unknown ? std::string() : std::string(op_name(op));
}

// "up to all_reduce 60", "no all_reduce".
std::string launched_words(const std::string& op, std::int64_t launched) {
  const std::string word = op.empty() ? "operation" : op;
  return launched > 0 ? "up to " + word + " " + std::to_string(launched) : "no " + word;
}

std::string both_sides(const RasBlock& block) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < block.sets.size(); ++i) {
    if (i == kMost) return text + "; ...";
    const RasSet& set = block.sets[i];
    text += (i == 0 ? "" : "; ") +
            (set.is_named() ? ras_rank_words(block, set.listed)
                            : std::to_string(set.count) + (set.count == 1 ? " rank" : " ranks")) +
            ": " + std::to_string(set.launched);
  }
  return text;
}

std::string spread_words(const RasSpread& spread, const std::string& op) {
  const RasBlock& block = *spread.block;
  const std::string word = op.empty() ? "operation" : op;
  if (spread.tie)
    return "the ranks of communicator #" + block.label + " did not launch as many " + word + " (" +
           both_sides(block) + "), and nobody has a majority";
  const bool one = spread.odd_count == 1;
  const std::string who = spread.named ? ras_rank_words(block, spread.odd)
                                       : std::to_string(spread.odd_count) + " of " +
                                             std::to_string(spread.odd_count + spread.rest_count) +
                                             " ranks of communicator #" + block.label;
  const std::int64_t count = spread.ahead ? spread.rest_count : spread.usual_count;
  const std::string others =
      ", " + std::to_string(count) + (count == 1 ? " other rank " : " other ranks ");
  std::string text = who + (one ? " has launched " : " have launched ");
  if (spread.ahead) {
    text += launched_words(op, spread.most) + others + launched_words(op, spread.least) + ": " +
            (one ? "it is ahead" : "they are ahead");
  } else {
    text += launched_words(op, spread.least) + others + launched_words(op, spread.usual) + ": " +
            (one ? "it is behind" : "they are behind");
  }
  if (!spread.named) text += "; the output does not list all of them";
  return text;
}

std::string_view caveat(const RasSpread& spread) {
  return spread.stood ? "; two outputs show the same counters: that is a hang only if they were "
                        "printed some seconds apart, which they do not tell"
                      : "; one output proves no hang: ranks of a running job are apart in passing; "
                        "print it again, some seconds later, and see whether these counters grow";
}

std::string advice_of(const RasSpread& spread) {
  if (spread.tie || !spread.named)
    return "run ncclras -v twice, some seconds apart, and give both outputs";
  if (spread.ahead)
    return "if the counters stand: look for a call that only these ranks make: a longer loop, one "
           "more batch, a condition on the rank";
  return "if the counters stand: look at the stack of these ranks' processes (py-spy dump --pid "
         "PID): data loading, a checkpoint, a lock, or a branch that skips this call";
}

void add_counts(DiagnosisFinding& finding, const RasSpread& spread) {
  const Witness& witness = *spread.output.witness;
  const RasBlock& block = *spread.block;
  for (const RasSet& set : block.sets) {
    if (finding.evidence.size() > 8) break;
    finding.evidence.push_back(ras_line(witness, set.line,
                                        std::to_string(set.count) +
                                            (set.count == 1 ? " rank" : " ranks") +
                                            " of communicator #" + block.label + " (" + block.hash +
                                            "): " + std::to_string(set.launched) + " " + block.op));
  }
  add_ras_ranks(finding, witness, spread.odd, " of communicator #" + block.label);
}

DiagnosisFinding finding_of(const RasSpread& spread) {
  DiagnosisFinding finding =
      ras_finding(spread.ahead ? DiagnosisKind::rank_ahead : DiagnosisKind::missing_rank,
                  *spread.output.snapshot, *spread.block);
  finding.momentary = true;
  finding.op = op_of(*spread.block);
  finding.seq = spread.ahead ? spread.most : spread.least + 1;
  if (spread.named) {
    for (const RasRank& row : spread.odd) {
      if (!spread.ahead) finding.missing_ranks.push_back(row.rank);
    }
    for (const RasSet& set : spread.block->sets) {
      if (!spread.ahead || set.launched == spread.least) continue;
      for (const RasRank& row : set.listed)
        finding.differing.push_back(
            {row.rank, "seq", std::to_string(set.launched), std::to_string(spread.least)});
    }
    std::sort(finding.differing.begin(), finding.differing.end(),
              [](const DifferingRank& a, const DifferingRank& b) { return a.rank < b.rank; });
  }
  finding.message = spread_words(spread, finding.op) + std::string(caveat(spread));
  finding.advice = advice_of(spread);
  add_counts(finding, spread);
  const std::int64_t apart = (spread.ahead ? spread.most : spread.usual) - spread.least;
  const bool seen = spread.named && !spread.block->broken && apart > kFewLaunches;
  finding.confidence = seen ? Confidence::likely : Confidence::undecidable;
  return finding;
}

// The processes that are odd are so in all their communicators, and for all operations, most often.
std::string who_is_odd(const RasSpread& spread) {
  std::string key = spread.ahead ? "+" : "-";
  bool known = spread.named;
  for (const RasRank& row : spread.odd) {
    known &= row.process.pid >= 0;
    key += ras_process_words(row.process) + ";";
  }
  return known ? key : spread.block->hash + " " + spread.block->op;
}

std::vector<DiagnosisFinding> find_ras_counts(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  std::map<std::string, std::size_t> known;  // by who is odd, the finding
  for (const RasSpread& spread : ras_spreads(witnesses)) {
    if (spread.moved) continue;
    const auto [at, is_new] = known.try_emplace(who_is_odd(spread), findings.size());
    if (is_new && findings.size() == kMostSpreads) break;
    DiagnosisFinding finding = finding_of(spread);
    if (is_new) {
      findings.push_back(std::move(finding));
      continue;
    }
    DiagnosisFinding& first = findings[at->second];
    // What is sure of one of them speaks for it.
    if (finding.confidence == Confidence::likely && first.confidence != Confidence::likely)
      std::swap(first, finding);
    constexpr std::size_t kMostEvidence = 24;
    if (first.evidence.size() < kMostEvidence)
      first.evidence.push_back(ras_line(*spread.output.witness, spread.block->line,
                                        "the same by communicator #" + spread.block->label + ": " +
                                            both_sides(*spread.block) + " " + spread.block->op));
  }
  return findings;
}

}  // namespace

extern const Verdict kRasCounts;
constinit const Verdict kRasCounts{
    .name = "ras_counts",
    .summary = "Which ranks of a communicator have launched more or less than the others, by RAS?",
    .find = find_ras_counts,
};

}  // namespace commlens
