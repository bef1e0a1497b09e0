// Calls that PyTorch itself found to differ (TORCH_DISTRIBUTED_DEBUG=DETAIL), two ranks a line. The
// lines of several ranks that speak of one number are put together; with a majority among them the
// others are odd, as far as these lines go: a job may have more ranks. Without one it stays open
// who is wrong.
#include <algorithm>
#include <map>
#include <set>

#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

// What two calls differ in. `nothing`: in none of what is printed of them.
enum class FingerprintAspect : std::uint8_t { op, sizes, dtype, device, number, nothing };

struct PrintedCall {
  SeenCall seen;
  StringId device;
};

std::string value_of(const PrintedCall& printed, FingerprintAspect aspect) {
  const SeenCall& seen = printed.seen;
  switch (aspect) {
    case FingerprintAspect::op: return op_word(seen);
    case FingerprintAspect::sizes: return std::string(seen.text(seen.call->in_shape));
    case FingerprintAspect::dtype: return std::string(seen.text(seen.call->in_dtype));
    case FingerprintAspect::device: return std::string(seen.text(printed.device));
    case FingerprintAspect::number: return std::to_string(seen.call->number);
    case FingerprintAspect::nothing: break;
  }
  return "the same";
}

std::string_view field_of(FingerprintAspect aspect) {
  switch (aspect) {
    case FingerprintAspect::op: return "op";
    case FingerprintAspect::sizes: return "input_sizes";
    case FingerprintAspect::dtype: return "dtype";
    case FingerprintAspect::device: return "device";
    case FingerprintAspect::number: return "seq";
    case FingerprintAspect::nothing: break;
  }
  return "anything that is printed";
}

// There is no kind for tensors on different devices: like a type, a device is what a tensor is of.
DiagnosisKind kind_of(FingerprintAspect aspect) {
  switch (aspect) {
    case FingerprintAspect::op: return DiagnosisKind::op_mismatch;
    case FingerprintAspect::sizes: return DiagnosisKind::size_mismatch;
    case FingerprintAspect::dtype:
    case FingerprintAspect::device: return DiagnosisKind::dtype_mismatch;
    case FingerprintAspect::number: return DiagnosisKind::rank_ahead;
    case FingerprintAspect::nothing: break;
  }
  return DiagnosisKind::crash;
}

// In what the two differ first.
FingerprintAspect aspect_of(const PrintedCall& a, const PrintedCall& b) {
  for (const auto aspect : {FingerprintAspect::op, FingerprintAspect::sizes,
                            FingerprintAspect::dtype, FingerprintAspect::device}) {
    // Where the text does not say of which device, nothing follows.
    if (aspect == FingerprintAspect::device && (!a.device.valid() || !b.device.valid())) continue;
    if (value_of(a, aspect) != value_of(b, aspect)) return aspect;
  }
  return a.seen.call->number != b.seen.call->number ? FingerprintAspect::number
                                                    : FingerprintAspect::nothing;
}

using Sides = std::map<std::string, std::vector<std::int64_t>>;

void add_side(Sides& sides, const std::string& value, std::int64_t rank) {
  std::vector<std::int64_t>& ranks = sides[value];
  if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
}

// All lines of one witness that speak of the same numbers and differ in the same.
struct Case {
  FingerprintAspect aspect;
  Sides sides;
  std::vector<SeenCall> seen;
};

bool on_several_sides(const Sides& sides) {
  std::set<std::int64_t> seen;
  for (const auto& [value, ranks] : sides) {
    for (const std::int64_t rank : ranks) {
      if (!seen.insert(rank).second) return true;
    }
  }
  return false;
}

void name_odd(const Case& about, DiagnosisFinding& finding) {
  if (about.aspect == FingerprintAspect::nothing) return;
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
  if (on_several_sides(about.sides)) {
    finding.message +=
        "; a rank that stands on both sides ran twice, or the lines are of several groups: it "
        "cannot be said who is wrong";
    return;
  }
  // Only ranks whose lines are here are counted, and one that differs is named in each of these.
  finding.message += "; of the " + std::to_string(all) +
                     " ranks that these lines name: the logs of all ranks tell";
  for (const auto& [value, ranks] : about.sides) {
    if (value == most->first) continue;
    for (const std::int64_t rank : ranks)
      finding.differing.push_back({rank, std::string(field_of(about.aspect)), value, most->first});
  }
}

// The odd ones run an earlier call than most: they are missing in the later one. Of two numbers one
// is the greater: all odd ones are behind, or all ahead.
void name_behind(DiagnosisFinding& finding) {
  if (finding.differing.empty()) return;
  const DifferingRank& odd = finding.differing.front();
  if (odd.expected != std::to_string(*finding.seq)) return;
  finding.kind = DiagnosisKind::missing_rank;
  for (const DifferingRank& row : finding.differing) finding.missing_ranks.push_back(row.rank);
  finding.message += "; " + rank_words(finding.missing_ranks) + " " +
                     std::string(is_or_are(finding.missing_ranks)) + " behind";
}

DiagnosisFinding finding_for(const Case& about) {
  DiagnosisFinding finding;
  const SeenCall& first = about.seen.front();
  finding.kind = kind_of(about.aspect);
  const auto later = std::max_element(
      about.seen.begin(), about.seen.end(),
      [](const SeenCall& a, const SeenCall& b) { return a.call->number < b.call->number; });
  finding.seq = later->call->number;
  finding.op = op_word(first);
  const std::string call = finding.op + " " + std::to_string(*finding.seq);
  if (about.aspect == FingerprintAspect::nothing) {
    finding.message = "PyTorch stopped the program since ranks do not agree at " + call +
                      ", but does not print what differs";
  } else {
    finding.message = "PyTorch found that ranks do not agree in " +
                      std::string(field_of(about.aspect)) + " at " + call + ":";
  }
  name_odd(about, finding);
  if (about.aspect == FingerprintAspect::number) name_behind(finding);
  for (const SeenCall& seen : about.seen) {
    finding.held.push_back(seen.call->rank);
    if (finding.evidence.size() < 8) finding.evidence.push_back(evidence_line(seen));
  }
  if (about.aspect == FingerprintAspect::device) {
    finding.advice = "look for a tensor that only some ranks moved to the GPU";
    return finding;
  }
  finding.advice =
      "look for a branch that only some ranks take, and for sizes that depend on the data of a "
      "rank; the program's stack in the log shows the call";
  return finding;
}

std::vector<DiagnosisFinding> find_fingerprints(const std::vector<Witness>& witnesses) {
  using Key = std::pair<std::pair<std::int64_t, std::int64_t>, FingerprintAspect>;
  std::map<Key, Case> cases;
  for (const Witness& witness : witnesses) {
    for (const CallPair& pair : witness.contradictions) {
      const PrintedCall a{{&witness, &pair.first}, pair.first_device};
      const PrintedCall b{{&witness, &pair.second}, pair.second_device};
      const FingerprintAspect aspect = aspect_of(a, b);
      const auto numbers = std::minmax(pair.first.number, pair.second.number);
      Case& about =
          cases.try_emplace({{numbers.first, numbers.second}, aspect}, Case{aspect, {}, {}})
              .first->second;
      for (const PrintedCall& printed : {a, b}) {
        add_side(about.sides, value_of(printed, aspect), printed.seen.call->rank);
        about.seen.push_back(printed.seen);
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
