// The majority is taken to be right: it has half of those who were seen and one more. Where nobody
// has, it is said who is on which side, and nobody is called odd.
//
// What has to be equal depends on the operation: all-to-all, scatter and gather move different
// sizes by design, of broadcast and scatter only the root's input is real.
#include "diagnose/joint_mismatch.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/words.h"

namespace commlens {
namespace {

using Calls = std::vector<SeenCall>;

bool has(const Calls& calls, Op op) {
  return std::any_of(calls.begin(), calls.end(),
                     [op](const SeenCall& seen) { return seen.call->op == op; });
}

// One text for all calls of a launch, "" where any of them does not say.
std::string joined(const Calls& calls, StringId WitnessCall::* field) {
  std::string text;
  for (const SeenCall& seen : calls) {
    if (seen.call->closes_coalesced) continue;
    const std::string_view one = seen.text(seen.call->*field);
    if (one.empty()) return {};
    text += (text.empty() ? "" : " + ") + std::string(one);
  }
  return text;
}

std::string ops_of(const Calls& calls) {
  std::string text;
  for (const SeenCall& seen : calls) text += (text.empty() ? "" : " + ") + op_word(seen);
  return text;
}

// What is compared, and what is shown of it. Empty: not to be compared.
struct ComparedValue {
  std::string key;
  std::string shown;
};

// By numbers of elements: "[[2, 512]]" is a view of "[[1024]]".
ComparedValue compared_sizes(const Calls& calls, StringId WitnessCall::* shape,
                             std::int64_t WitnessCall::* elements) {
  ComparedValue compared{.key = {}, .shown = joined(calls, shape)};
  if (compared.shown.empty()) return {};
  for (const SeenCall& seen : calls) {
    if (seen.call->closes_coalesced) continue;
    if (!compared.key.empty()) compared.key += " + ";
    compared.key += seen.call->*elements < 0 ? std::string(seen.text(seen.call->*shape))
                                             : std::to_string(seen.call->*elements);
  }
  return compared;
}

// "[[10], [11]]": a list of tensors that are not alike, one for each rank.
bool has_uneven(const Calls& calls, Op op, StringId WitnessCall::* shape) {
  return std::any_of(calls.begin(), calls.end(), [&](const SeenCall& seen) {
    std::string_view list = seen.text(seen.call->*shape);
    if (seen.call->op != op || !list.starts_with("[[") || !list.ends_with("]]")) return false;
    list = list.substr(2, list.size() - 4);
    constexpr std::string_view kBetween = "], [";
    const std::string_view first = list.substr(0, list.find(kBetween));
    for (std::size_t at = list.find(kBetween); at != std::string_view::npos;) {
      list.remove_prefix(at + kBetween.size());
      at = list.find(kBetween);
      if (list.substr(0, at) != first) return true;
    }
    return false;
  });
}

ComparedValue in_sizes(const Calls& calls) {
  if (has(calls, Op::all_to_all) || has(calls, Op::scatter) || has(calls, Op::barrier)) return {};
  if (has_uneven(calls, Op::all_gather, &WitnessCall::out_shape)) return {};
  return compared_sizes(calls, &WitnessCall::in_shape, &WitnessCall::in_elements);
}

ComparedValue out_sizes(const Calls& calls) {
  if (has(calls, Op::all_to_all) || has(calls, Op::gather) || has(calls, Op::barrier)) return {};
  if (has_uneven(calls, Op::reduce_scatter, &WitnessCall::in_shape)) return {};
  return compared_sizes(calls, &WitnessCall::out_shape, &WitnessCall::out_elements);
}

ComparedValue plain_value(const std::string& text) { return {.key = text, .shown = text}; }

ComparedValue compared_op(const Calls& calls) { return plain_value(ops_of(calls)); }

ComparedValue in_dtype(const Calls& calls) {
  if (has(calls, Op::broadcast) || has(calls, Op::scatter)) return {};
  return plain_value(joined(calls, &WitnessCall::in_dtype));
}

ComparedValue out_dtype(const Calls& calls) {
  if (has(calls, Op::gather)) return {};
  return plain_value(joined(calls, &WitnessCall::out_dtype));
}

struct Aspect {
  DiagnosisKind kind;
  std::string_view field;
  ComparedValue (*value)(const Calls& calls);
};

constexpr Aspect kAspects[] = {
    {DiagnosisKind::op_mismatch, "op", compared_op},
    {DiagnosisKind::size_mismatch, "input_sizes", in_sizes},
    {DiagnosisKind::size_mismatch, "output_sizes", out_sizes},
    {DiagnosisKind::dtype_mismatch, "dtype", in_dtype},
    {DiagnosisKind::dtype_mismatch, "output_dtype", out_dtype},
};

struct CallSide {
  std::string shown;
  std::vector<std::int64_t> ranks;
};
using CallSides = std::map<std::string, CallSide>;

// All-to-all moves different sizes by design, but what all send together is what all receive. Only
// where every member was seen; versions up to 2.3 wrote wrong sizes.
bool sums_differ(const JointGroup& group, const std::map<std::int64_t, const Calls*>& callers) {
  if (group.members.empty() || callers.size() != group.members.size()) return false;
  if (std::all_of(callers.begin(), callers.end(), [](const auto& row) {
        return row.second->front().call->state == CallState::completed;
      }))
    return false;
  std::int64_t in = 0;
  std::int64_t out = 0;
  for (const auto& [rank, calls] : callers) {
    if (calls->size() != 1) return false;
    const SeenCall& seen = calls->front();
    const std::string& version = seen.witness->version;
    const bool old = version == "2.0" || version == "2.1" || version == "2.2" || version == "2.3";
    if (seen.call->op != Op::all_to_all || seen.call->in_elements < 0 ||
        seen.call->out_elements < 0 || old)
      return false;
    if (__builtin_add_overflow(in, seen.call->in_elements, &in) ||
        __builtin_add_overflow(out, seen.call->out_elements, &out))
      return false;
  }
  return in != out;
}

std::size_t count(const CallSides& sides) {
  std::size_t all = 0;
  for (const auto& [key, side] : sides) all += side.ranks.size();
  return all;
}

CallMismatch judge(const Aspect& aspect, std::int64_t number, const CallSides& sides,
                   std::size_t group_size) {
  CallMismatch mismatch{.kind = aspect.kind,
                        .number = number,
                        .field = std::string(aspect.field),
                        .expected = {},
                        .odd = {},
                        .sides = {},
                        .sure = false};
  for (const auto& [key, side] : sides) mismatch.sides.emplace_back(side.shown, side.ranks);
  std::stable_sort(mismatch.sides.begin(), mismatch.sides.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  const std::size_t seen = count(sides);
  const std::size_t most = mismatch.sides.front().second.size();
  const std::size_t members = std::max(seen, group_size);
  // Those who were not seen could all be on the other side.
  if (2 * most <= seen || 2 * most < members) return mismatch;
  mismatch.sure = 2 * most > members;
  mismatch.expected = mismatch.sides.front().first;
  for (std::size_t i = 1; i < mismatch.sides.size(); ++i) {
    const auto& [value, ranks] = mismatch.sides[i];
    for (const std::int64_t rank : ranks)
      mismatch.odd.push_back({rank, mismatch.field, value, mismatch.expected});
  }
  std::sort(mismatch.odd.begin(), mismatch.odd.end(),
            [](const DifferingRank& a, const DifferingRank& b) { return a.rank < b.rank; });
  return mismatch;
}

// Alike in all that is compared, as nearly all calls are: seen without making texts.
bool are_alike(const Calls& a, const Calls& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SeenCall& one, const SeenCall& other) {
                      const auto same = [&](StringId WitnessCall::* field) {
                        return one.text(one.call->*field) == other.text(other.call->*field);
                      };
                      return same(&WitnessCall::op_text) && same(&WitnessCall::in_shape) &&
                             same(&WitnessCall::out_shape) && same(&WitnessCall::in_dtype) &&
                             same(&WitnessCall::out_dtype);
                    });
}

// Whether calls of this launch can have been lost: the oldest are overwritten one by one, and a cut
// file ends anywhere.
bool may_be_partial(const RankInGroup& rank, std::int64_t number) {
  const bool oldest = number == rank.calls.begin()->first;
  const bool newest = number == rank.calls.rbegin()->first;
  const auto& calls = rank.witness->calls;
  return (oldest && !calls.empty() && calls.front().record > 0) ||
         (newest && rank.witness->damaged);
}

// The ranks that call `number`, with all calls of that launch.
std::map<std::int64_t, const Calls*> callers_of(const JointGroup& group, std::int64_t number) {
  std::map<std::int64_t, const Calls*> callers;
  std::size_t most = 0;
  for (const auto& [rank, row] : group.ranks) {
    const auto found = row.calls.find(number);
    if (found == row.calls.end()) continue;
    callers.emplace(rank, &found->second);
    most = std::max(most, found->second.size());
  }
  std::erase_if(callers, [&](const auto& row) {
    return row.second->size() < most && may_be_partial(group.ranks.at(row.first), number);
  });
  return callers;
}

// What the ranks that call `number` disagree about. A rank that is odd in one respect is not
// compared in the next: another operation has other sizes anyway.
std::vector<CallMismatch> mismatches_at(const JointGroup& group, std::int64_t number) {
  std::map<std::int64_t, const Calls*> callers = callers_of(group, number);
  std::vector<CallMismatch> mismatches;
  if (sums_differ(group, callers)) {
    CallMismatch sums{.kind = DiagnosisKind::size_mismatch,
                      .number = number,
                      .field = "sums of sizes",
                      .expected = {},
                      .odd = {},
                      .sides = {},
                      .sure = false};
    for (const auto& [rank, calls] : callers)
      sums.sides.emplace_back(
          joined(*calls, &WitnessCall::in_shape) + " -> " + joined(*calls, &WitnessCall::out_shape),
          std::vector<std::int64_t>{rank});
    return {sums};
  }
  if (std::all_of(callers.begin(), callers.end(), [&callers](const auto& row) {
        return are_alike(*callers.begin()->second, *row.second);
      }))
    return mismatches;
  for (const Aspect& aspect : kAspects) {
    CallSides sides;
    for (const auto& [rank, calls] : callers) {
      ComparedValue value = aspect.value(*calls);
      if (value.key.empty()) continue;
      CallSide& side = sides[value.key];
      if (side.ranks.empty()) side.shown = std::move(value.shown);
      side.ranks.push_back(rank);
    }
    if (sides.size() < 2) continue;
    mismatches.push_back(judge(aspect, number, sides, group.members.size()));
    if (mismatches.back().odd.empty()) break;
    for (const DifferingRank& odd : mismatches.back().odd) callers.erase(odd.rank);
  }
  return mismatches;
}

// Everything that tells one call from another.
std::string fingerprint(const Calls& calls) {
  return ops_of(calls) + "|" + in_sizes(calls).key + "|" + out_sizes(calls).key + "|" +
         joined(calls, &WitnessCall::in_dtype);
}

// Whether two ranks made the same calls from `number` on in different order: some stretch of both
// holds the same calls.
std::optional<std::int64_t> reordered_until(const RankInGroup& a, const RankInGroup& b,
                                            std::int64_t number) {
  constexpr std::int64_t kLongest = 32;
  std::multiset<std::string> calls_a;
  std::multiset<std::string> calls_b;
  for (std::int64_t at = number; at < number + kLongest; ++at) {
    const auto in_a = a.calls.find(at);
    const auto in_b = b.calls.find(at);
    if (in_a == a.calls.end() || in_b == b.calls.end()) return std::nullopt;
    calls_a.insert(fingerprint(in_a->second));
    calls_b.insert(fingerprint(in_b->second));
    if (at > number && calls_a == calls_b) return at;
  }
  return std::nullopt;
}

std::set<std::string> threads_of(const RankInGroup& rank, std::int64_t from, std::int64_t to) {
  std::set<std::string> threads;
  for (std::int64_t at = from; at <= to; ++at) {
    const auto found = rank.calls.find(at);
    if (found == rank.calls.end()) continue;
    for (const SeenCall& seen : found->second) threads.emplace(seen.text(seen.call->thread));
  }
  threads.erase("");
  return threads;
}

// Turns a mismatch into one of order, where each side made the calls of the largest one.
void look_for_order(const JointGroup& group, CallMismatch& mismatch) {
  if (mismatch.sides.size() > 1 && mismatch.field == "sums of sizes") return;
  const RankInGroup& usual = group.ranks.at(mismatch.sides.front().second.front());
  bool several_threads = false;
  for (std::size_t i = 1; i < mismatch.sides.size(); ++i) {
    const RankInGroup& odd = group.ranks.at(mismatch.sides[i].second.front());
    const auto until = reordered_until(usual, odd, mismatch.number);
    if (!until) return;
    several_threads |= threads_of(odd, mismatch.number, *until).size() > 1 ||
                       threads_of(usual, mismatch.number, *until).size() > 1;
  }
  mismatch.kind = several_threads ? DiagnosisKind::concurrent_use : DiagnosisKind::order_mismatch;
}

// Completed on all who called it: it holds nobody.
bool is_over(const JointGroup& group, std::int64_t number) {
  return std::all_of(group.ranks.begin(), group.ranks.end(), [number](const auto& entry) {
    return !entry.second.calls.contains(number) || entry.second.at(number) == Standing::completed;
  });
}

std::vector<CallMismatch> find_first_mismatch(const JointGroup& group, bool over) {
  if (group.numbers_mixed) return {};
  std::set<std::int64_t> numbers;
  for (const auto& [rank, row] : group.ranks) {
    for (const auto& [number, calls] : row.calls) numbers.insert(number);
  }
  for (const std::int64_t number : numbers) {
    std::vector<CallMismatch> found = mismatches_at(group, number);
    if (found.empty() || is_over(group, number) != over) continue;
    for (CallMismatch& mismatch : found) look_for_order(group, mismatch);
    return found;
  }
  return {};
}

}  // namespace

std::vector<CallMismatch> first_mismatch(const JointGroup& group) {
  return find_first_mismatch(group, false);
}

std::vector<CallMismatch> first_completed_mismatch(const JointGroup& group) {
  return find_first_mismatch(group, true);
}

std::string mismatch_words(const JointGroup& group, const CallMismatch& mismatch) {
  const bool order = mismatch.kind == DiagnosisKind::order_mismatch ||
                     mismatch.kind == DiagnosisKind::concurrent_use;
  std::string text = "at " + operation_words(group, mismatch.number) + " ranks disagree (" +
                     (order                    ? "the same calls in another order, beginning with"
                      : mismatch.field == "op" ? "called"
                                               : mismatch.field) +
                     ")";
  for (std::size_t i = 0; i < mismatch.sides.size(); ++i)
    text += (i == 0 ? ": " : "; ") + rank_words(mismatch.sides[i].second) + ": " +
            mismatch.sides[i].first;
  return text + since_words(group.since(mismatch.number));
}

}  // namespace commlens
