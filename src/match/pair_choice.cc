// Problem: one kernel carries out a whole group of sends and receives, and each of them has a line
// of its own. Which lines were one group is not written; NCCL's opCount is no number of a group.
//
//   timeline   [->1 <-3]            [exchange of 4 ranks    ]
//   log        Send 1, Recv 3,      Send 0, Recv 0, Send 1, Recv 1, ... Recv 3
//
// Method: a grouped kernel's calls are known in their order (grouped_calls), so both sides are
// sequences of (direction, peer, size), laid beside each other as those of collectives are. An
// exchange is one send to and one receive from each rank of the communicator, itself too, in any
// order: such a run of calls counts as one, with their sum. An operation is joined where all of its
// calls stand together. The communicator is what the group's collectives, or its identifier, say;
// else the only one of its size and place whose calls these are. Where the calls repeat, the n-th
// may be told of another repetition: so no order is more than likely. A dump numbers single calls
// as the timeline does, and then equal numbers decide. When it is wrong: exchanges
// in which a rank sends nothing to another have fewer calls, and are not found.
#include "match/pair_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "match/call_order.h"
#include "match/sequence_choice.h"

namespace commlens {
namespace {

constexpr Ns kPairMostBefore = 3'600'000'000'000;
constexpr Ns kPairMostBehind = 60'000'000'000;  // by clocks that differ

// A sequence's calls with whole exchanges as one; and which calls each stands for.
struct PairTokens {
  std::vector<CommEvent> events;
  std::vector<std::pair<std::size_t, std::size_t>> spans;
};

CommEvent token_of(const PairCall& call) {
  CommEvent event;
  event.op = call.op;
  event.bytes = call.bytes;
  // Compared where both are known; 0 is not known.
  event.dtype = call.peer >= 0 ? static_cast<std::uint32_t>(call.peer) + 1 : 0;
  return event;
}

// Whether one call to and one from each rank begin here; then how many bytes, -1: not known.
bool exchange_at(const PairSequence& sequence, std::size_t at, CommEvent& event) {
  const auto count = static_cast<std::size_t>(2 * sequence.size);
  if (sequence.size < 2 || sequence.calls.size() - at < count) return false;
  std::set<std::pair<Op, std::int64_t>> seen;
  std::int64_t sent = 0;
  std::int64_t received = 0;
  bool known = true;
  for (std::size_t i = at; i < at + count; ++i) {
    const PairCall& call = sequence.calls[i];
    if (call.peer < 0 || call.peer >= sequence.size) return false;
    if (!seen.insert({call.op, call.peer}).second) return false;
    std::int64_t& sum = call.op == Op::send ? sent : received;
    known = known && call.bytes >= 0 && !__builtin_add_overflow(sum, call.bytes, &sum);
  }
  event = {};
  event.op = Op::all_to_all;
  event.bytes = known ? std::max(sent, received) : kUnknown;
  return true;
}

PairTokens tokens_of(const PairSequence& sequence, bool exchanges) {
  PairTokens tokens;
  for (std::size_t at = 0; at < sequence.calls.size();) {
    CommEvent event;
    const bool whole = exchanges && exchange_at(sequence, at, event);
    const std::size_t count = whole ? static_cast<std::size_t>(2 * sequence.size) : 1;
    tokens.events.push_back(whole ? event : token_of(sequence.calls[at]));
    tokens.spans.emplace_back(at, count);
    at += count;
  }
  return tokens;
}

struct PairFit {
  const PairSequence* sequence = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>> calls_of;
  std::size_t joined = 0;
  CallOrder order;  // of single calls and exchanges
};

PairFit fit_pairs(const std::vector<PairOp>& ops, const PairSequence& sequence) {
  const bool exchanges =
      std::any_of(ops.begin(), ops.end(), [](const PairOp& op) { return op.op == Op::all_to_all; });
  const PairTokens tokens = tokens_of(sequence, exchanges);
  std::vector<CommEvent> flat;
  for (const PairOp& op : ops) {
    for (const PairCall& call : op.calls) flat.push_back(token_of(call));
  }
  const CallOrder order = lay_beside(flat, tokens.events);
  PairFit fit{.sequence = &sequence, .calls_of = {}, .order = {}};
  std::size_t next = 0;
  for (const PairOp& op : ops) {
    std::size_t together = 0;
    for (std::size_t i = 0; i < op.calls.size(); ++i) {
      const std::int32_t call = order.call_of[next + i];
      if (call >= 0 && call == order.call_of[next] + static_cast<std::int32_t>(i)) ++together;
    }
    if (together == op.calls.size() && together > 0) {
      const auto first = static_cast<std::size_t>(order.call_of[next]);
      const auto& [begin, ignored] = tokens.spans[first];
      const auto& [last, count] = tokens.spans[first + together - 1];
      fit.calls_of.emplace_back(begin, last + count - begin);
      ++fit.joined;
    } else {
      fit.calls_of.emplace_back(0, 0);
    }
    next += op.calls.size();
  }
  fit.order = order;
  return fit;
}

// Single calls that both number: equal numbers are equal calls. Nothing where either side numbers
// few or none; none joined where nine of ten do not fit.
std::optional<PairFit> fit_by_number(const std::vector<PairOp>& ops, const PairSequence& sequence) {
  std::map<std::int64_t, std::vector<std::size_t>> by_number;
  for (std::size_t call = 0; call < sequence.numbers.size(); ++call) {
    if (sequence.numbers[call] >= 0) by_number[sequence.numbers[call]].push_back(call);
  }
  PairFit fit{.sequence = &sequence, .calls_of = {}, .order = {}};
  std::size_t numbered = 0;
  std::size_t met = 0;
  for (const PairOp& op : ops) {
    fit.calls_of.emplace_back(0, 0);
    if (op.seq < 0 || op.calls.size() != 1) continue;
    ++numbered;
    const auto found = by_number.find(op.seq);
    if (found == by_number.end()) continue;
    ++met;
    // Calls that were put together have one number.
    if (found->second.size() > 1) continue;
    const std::size_t call = found->second.front();
    if (!fits(token_of(op.calls.front()), token_of(sequence.calls[call]))) continue;
    fit.calls_of.back() = {call, 1};
    ++fit.joined;
  }
  if (2 * numbered <= ops.size() || by_number.empty()) return std::nullopt;
  if (10 * fit.joined < 9 * met) fit.joined = 0;
  return fit;
}

bool pairs_at_this_time(const std::vector<PairOp>& ops, const PairFit& fit) {
  if (fit.sequence->made.empty()) return true;
  std::size_t known = 0;
  std::size_t near = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto& [first, count] = fit.calls_of[i];
    if (count == 0 || fit.sequence->made[first] <= 0) continue;
    const Ns made = fit.sequence->made[first];
    ++known;
    near += ops[i].start > made - kPairMostBehind && ops[i].start - kPairMostBefore < made ? 1 : 0;
  }
  return 2 * near >= known;
}

PairChoice refused_pairs(std::string reason) {
  PairChoice choice;
  choice.reason = std::move(reason);
  return choice;
}

std::vector<const PairSequence*> possible_pairs(
    const GroupIdentity& group, std::int64_t rank, const KnownCommunicator& known,
    const std::vector<const PairSequence*>& candidates) {
  std::vector<const PairSequence*> possible;
  for (const PairSequence* one : candidates) {
    const bool named = known.id != 0 && one->communicator != 0;
    if (known.facts != nullptr && one->facts != nullptr) {
      if (one->facts == known.facts) possible.push_back(one);
    } else if (named) {
      if (one->communicator == known.id) possible.push_back(one);
    } else if (can_be_of(group, rank, one->name, one->members, one->size, one->place)) {
      possible.push_back(one);
    }
  }
  return possible;
}

}  // namespace

PairChoice choose_pairs(const GroupIdentity& group, std::int64_t rank,
                        const std::vector<PairOp>& ops, bool clock_known,
                        const KnownCommunicator& known,
                        const std::vector<const PairSequence*>& candidates) {
  if (std::all_of(ops.begin(), ops.end(), [](const PairOp& op) { return op.calls.empty(); }))
    return refused_pairs("the timeline does not tell the peers of its sends and receives");
  const std::vector<const PairSequence*> possible = possible_pairs(group, rank, known, candidates);
  if (possible.empty())
    return refused_pairs(
        "no communicator or group of its size and members sends or receives there");
  std::vector<PairFit> fits;
  bool by_number = false;
  bool any = false;
  for (const PairSequence* one : possible) {
    auto numbered = fit_by_number(ops, *one);
    by_number = by_number || numbered;
    const std::size_t needed = numbered && !one->name.empty() ? 0 : 2 * ops.size();
    PairFit fit = numbered ? *numbered : fit_pairs(ops, *one);
    // A few of few can be another communicator's by chance.
    const bool few = !numbered && possible.size() > 1 && ops.size() < 12;
    any = any || (fit.joined > 0 && 3 * fit.joined >= needed && (!few || fit.joined == ops.size()));
    fits.push_back(std::move(fit));
  }
  if (!any && by_number)
    return refused_pairs("no number of its sends and receives is in both, with the same call");
  if (!any)
    return refused_pairs(
        "its sends and receives are not among those of any communicator of its size");
  const auto best =
      std::max_element(fits.begin(), fits.end(),
                       [](const PairFit& a, const PairFit& b) { return a.joined < b.joined; });
  const auto rivals = std::count_if(fits.begin(), fits.end(), [&best](const PairFit& fit) {
    return 4 * fit.joined >= 3 * best->joined || is_rival(fit.order, best->order.paired);
  });
  if (rivals > 1)
    return refused_pairs(
        std::to_string(rivals) +
        " communicators have its size and fit its sends and receives equally well");
  if (clock_known && !pairs_at_this_time(ops, *best))
    return refused_pairs("its sends and receives are there, but were called at another time");
  PairChoice choice;
  choice.sequence = best->sequence;
  choice.calls_of = std::move(best->calls_of);
  const bool named =
      known.facts != nullptr || (known.id != 0 && choice.sequence->communicator != 0);
  choice.by = by_number ? JoinedBy::sequence : named ? known.by : JoinedBy::order;
  // Numbers of a group that the witness does not name can be another group's, too.
  const bool only_one = !choice.sequence->name.empty() || possible.size() == 1;
  choice.confidence = by_number && only_one && choice.sequence->same_process ? Confidence::certain
                                                                             : Confidence::likely;
  return choice;
}

}  // namespace commlens
