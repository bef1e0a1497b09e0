// Calls that PyTorch itself found to differ (TORCH_DISTRIBUTED_DEBUG=DETAIL), two ranks a line. The
// lines of several ranks that speak of one number are put together; with a majority among them the
// others are odd, without one it stays open who is wrong.
#include <algorithm>
#include <map>

#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

std::string value_of(const SeenCall& seen, DiagnosisKind kind) {
  switch (kind) {
    case DiagnosisKind::op_mismatch: return op_word(seen);
    case DiagnosisKind::size_mismatch: return std::string(seen.text(seen.call->in_shape));
    case DiagnosisKind::dtype_mismatch: return std::string(seen.text(seen.call->in_dtype));
    default: return std::to_string(seen.call->number);
  }
}

std::string_view field_of(DiagnosisKind kind) {
  switch (kind) {
    case DiagnosisKind::op_mismatch: return "op";
    case DiagnosisKind::size_mismatch: return "input_sizes";
    case DiagnosisKind::dtype_mismatch: return "dtype";
    default: return "seq";
  }
}

// In what the two differ first.
DiagnosisKind kind_of(const SeenCall& a, const SeenCall& b) {
  for (const DiagnosisKind kind :
       {DiagnosisKind::op_mismatch, DiagnosisKind::size_mismatch, DiagnosisKind::dtype_mismatch}) {
    if (value_of(a, kind) != value_of(b, kind)) return kind;
  }
  return DiagnosisKind::rank_ahead;
}

using Sides = std::map<std::string, std::vector<std::int64_t>>;

void add_side(Sides& sides, const std::string& value, std::int64_t rank) {
  std::vector<std::int64_t>& ranks = sides[value];
  if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
}

// All lines of one witness that speak of the same numbers and differ in the same.
struct Case {
  DiagnosisKind kind;
  Sides sides;
  std::vector<SeenCall> seen;
};

void name_odd(const Case& about, DiagnosisFinding& finding) {
  std::size_t all = 0;
  const auto most = std::max_element(
      about.sides.begin(), about.sides.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  for (const auto& [value, ranks] : about.sides) {
    all += ranks.size();
    finding.message += (finding.message.ends_with(':') ? " " : "; ") + rank_words(ranks) + ": " +
                       (value.empty() ? "no tensor" : value);
  }
  if (2 * most->second.size() <= all) {
    finding.message += "; nobody has a majority, so that it cannot be said who is wrong";
    return;
  }
  finding.confidence = Confidence::likely;
  for (const auto& [value, ranks] : about.sides) {
    if (value == most->first) continue;
    for (const std::int64_t rank : ranks)
      finding.differing.push_back({rank, std::string(field_of(about.kind)), value, most->first});
  }
}

DiagnosisFinding finding_for(const Case& about) {
  DiagnosisFinding finding;
  const SeenCall& first = about.seen.front();
  finding.kind = about.kind;
  const auto later = std::max_element(
      about.seen.begin(), about.seen.end(),
      [](const SeenCall& a, const SeenCall& b) { return a.call->number < b.call->number; });
  finding.seq = later->call->number;
  finding.op = op_word(first);
  finding.message = std::string("PyTorch found that ranks do not agree in ") +
                    std::string(field_of(about.kind)) + " at " + finding.op + " " +
                    std::to_string(*finding.seq) + ":";
  name_odd(about, finding);
  for (const SeenCall& seen : about.seen) {
    finding.held.push_back(seen.call->rank);
    if (finding.evidence.size() < 8) finding.evidence.push_back(evidence_line(seen));
  }
  finding.advice =
      "look for a branch that only some ranks take, and for sizes that depend on the data of a "
      "rank; the program's stack in the log shows the call";
  return finding;
}

std::vector<DiagnosisFinding> find_fingerprints(const std::vector<Witness>& witnesses) {
  using Key = std::pair<std::pair<std::int64_t, std::int64_t>, DiagnosisKind>;
  std::map<Key, Case> cases;
  for (const Witness& witness : witnesses) {
    for (const CallPair& pair : witness.contradictions) {
      const SeenCall a{&witness, &pair.first};
      const SeenCall b{&witness, &pair.second};
      const DiagnosisKind kind = kind_of(a, b);
      const auto numbers = std::minmax(pair.first.number, pair.second.number);
      Case& about = cases.try_emplace({{numbers.first, numbers.second}, kind}, Case{kind, {}, {}})
                        .first->second;
      for (const SeenCall& seen : {a, b}) {
        add_side(about.sides, value_of(seen, kind), seen.call->rank);
        about.seen.push_back(seen);
      }
    }
  }
  std::vector<DiagnosisFinding> findings;
  for (const auto& [key, about] : cases) findings.push_back(finding_for(about));
  return findings;
}

}  // namespace

extern const Verdict kFingerprints;
constinit const Verdict kFingerprints{
    .name = "fingerprints",
    .summary = "What does PyTorch itself say that ranks disagree about?",
    .find = find_fingerprints,
};

}  // namespace commlens
