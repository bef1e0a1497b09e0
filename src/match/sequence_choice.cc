// Problem: a rank's log has a communicator for each of its groups, and names none of them. Data
// parallel groups of one job have equal sizes and often equal calls.
//
// Method: the first of these that decides.
//   the identifier     of the communicator, where the timeline has it too
//   the name           of the process group, where both have it
//   size, place        of the rank among the members: what has others is another group's
//   numbers            both count the group's operations, and equal numbers are equal operations
//                      (the n-th call of a log stands for a number; as lines can be lost without a
//                      sign, it is certain only where no other communicator can be meant)
//   order              most of the operations are among the calls, in their order
// Where two communicators are left that fit about as well, nothing is chosen: a wrong one would say
// another way of the data with the same confidence.
//
// Where a timeline names no group, the operations of one stream stand for one, and nothing but
// their order tells which. A stream can hold several groups' operations, and a log can have lost a
// communicator's lines: so nine of ten must have a call, of what the name tells for certain; equal
// operations in a row tell nothing, unless the log is whole; and where sizes are not known, no call
// may be missing between them. When it is wrong: a communicator whose lines are lost, with the same
// sequence of operations and sizes as another one that the recording holds nothing of.
#include "match/sequence_choice.h"

#include <algorithm>
#include <optional>
#include <set>

#include "match/sequence_match.h"

namespace commlens {
namespace {

// A call is made before its operation runs, and rarely longer than this before.
constexpr Ns kMostBefore = 3'600'000'000'000;
constexpr Ns kMostBehind = 60'000'000'000;  // by clocks that differ
// What nothing else explains: so many of the operations have a call.
constexpr std::size_t kNeededOfThree = 2;

// Fewer operations than this must all have a call, where several communicators can be meant.
constexpr std::size_t kFewOperations = 12;
// Operations of a stream that has no group: so many must have a call.
constexpr std::size_t kNeededOfTen = 9;
constexpr std::size_t kFewestAlone = 4;

// Lines of a communicator that may be lost without a sign.
constexpr std::int64_t kMostLostLines = 64;

struct Fit {
  const CallSequence* sequence = nullptr;
  CallOrder order;
};

bool can_be(const GroupIdentity& group, std::int64_t rank, const CallSequence& sequence) {
  return can_be_of(group, rank, sequence.name, sequence.members, sequence.size, sequence.place);
}

// Equal numbers are equal operations, as matching of ranks asks for it. Positions stand for times,
// which a call does not have.
std::optional<CallOrder> by_numbers(const std::vector<CommEvent>& ops,
                                    const CallSequence& sequence) {
  std::vector<Member> sides(2);
  sides[0].events = ops;
  sides[1].events = sequence.calls;
  for (Member& side : sides) {
    for (CommEvent& event : side.events) event.end = event.seq * 1'000'000;
  }
  if (!sequence.numbered) return std::nullopt;
  const std::optional<Slots> slots = place_by_sequence(sides);
  if (!slots) return std::nullopt;
  std::vector<std::int32_t> call_of_slot(slots->slots.size(), -1);
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    if (slots->of[1][c] != kNoSlot)
      call_of_slot[static_cast<std::size_t>(slots->of[1][c])] = static_cast<std::int32_t>(c);
  }
  CallOrder order{.call_of = std::vector<std::int32_t>(ops.size(), -1), .paired = 0};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::int32_t slot = slots->of[0][i];
    const std::int32_t call = slot == kNoSlot ? -1 : call_of_slot[static_cast<std::size_t>(slot)];
    if (call < 0 || !fits(ops[i], sequence.calls[static_cast<std::size_t>(call)])) continue;
    order.call_of[i] = call;
    ++order.paired;
  }
  return order;
}

// Whether a communicator's calls can be the operations under smaller numbers, since lines before
// or between them were lost: each operation has the call that its number less the lines lost so
// far names, or its own line is one of these. Three quarters of `best` are enough.
bool can_have_lost(const std::vector<CommEvent>& ops, const CallSequence& sequence,
                   std::size_t best) {
  if (!sequence.numbered) return is_rival(lay_beside(ops, sequence.calls), best);
  std::int64_t last = 0;
  for (const CommEvent& op : ops) last = std::max(last, op.seq);
  const auto most =
      static_cast<std::size_t>(std::clamp<std::int64_t>(last / 8 + 1, 1, kMostLostLines));
  std::vector<std::size_t> paired(most + 1, 0);  // by lines lost so far
  for (const CommEvent& op : ops) {
    for (std::size_t lost = most + 1; lost-- > 0;) {
      const std::int64_t call = op.seq - 1 - static_cast<std::int64_t>(lost);
      const bool fit = op.seq > 0 && call >= 0 &&
                       call < static_cast<std::int64_t>(sequence.calls.size()) &&
                       fits(op, sequence.calls[static_cast<std::size_t>(call)]);
      // One line fewer was lost before, and this one is.
      const std::size_t skipped = lost > 0 ? paired[lost - 1] : 0;
      paired[lost] = std::max(fit ? paired[lost] + 1 : 0, skipped);
    }
  }
  return 4 * *std::max_element(paired.begin(), paired.end()) >= 3 * best;
}

// Whether most of what is paired was made at the time of the timeline. A job that is run again has
// the same groups, numbers and operations.
bool at_this_time(const std::vector<CommEvent>& ops, const Fit& fit) {
  if (fit.sequence->made.empty()) return true;
  std::size_t known = 0;
  std::size_t near = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (fit.order.call_of[i] < 0) continue;
    const Ns made = fit.sequence->made[static_cast<std::size_t>(fit.order.call_of[i])];
    if (made <= 0) continue;
    ++known;
    near += ops[i].start > made - kMostBehind && ops[i].start - kMostBefore < made ? 1 : 0;
  }
  return 2 * near >= known;
}

// Whether the operations may be a communicator's whose lines were lost, though one that `best` of
// them are told by fits better. Where it is known how many lines were lost where, it is where all
// operations have a place; else where three quarters of `best` calls in a row are operations.
bool may_be_remains(const std::vector<CommEvent>& ops, const CallSequence& sequence,
                    std::size_t best) {
  if (!sequence.lost_before.empty())
    return sequence.lost > 0 && may_have_lost(ops, sequence.calls, sequence.lost_before);
  return 4 * longest_remains(ops, sequence.calls) >= 3 * best;
}

class Chooser {
 public:
  // `clock_known`: times of `ops` are since the epoch.
  Chooser(const GroupIdentity& group, const std::vector<CommEvent>& ops, bool clock_known)
      : group_(group), ops_(ops), clock_known_(clock_known) {}

  SequenceChoice by_identifier(std::uint64_t id,
                               const std::vector<const CallSequence*>& candidates) const {
    for (const CallSequence* candidate : candidates) {
      if (candidate->communicator != id) continue;
      SequenceChoice choice = taken(candidate, lay_beside(ops_, candidate->calls));
      choice.by = JoinedBy::communicator;
      choice.confidence = Confidence::certain;
      return choice;
    }
    return refused("no communicator has its identifier " + group_.name);
  }

  SequenceChoice run(const std::vector<const CallSequence*>& candidates) const {
    const bool calls = std::any_of(candidates.begin(), candidates.end(),
                                   [](const auto* sequence) { return !sequence->calls.empty(); });
    if (!calls) return by_members(candidates);
    if (auto choice = by_number(candidates)) return std::move(*choice);
    // Who names the group numbers its operations as the timeline does: where no number is in both,
    // they are of different times.
    const bool numbered =
        std::any_of(ops_.begin(), ops_.end(), [](const CommEvent& op) { return op.seq >= 0; });
    if (numbered && !candidates.front()->name.empty())
      return refused("no number of its operations is in both, with the same operation");
    return by_order(candidates);
  }

  static SequenceChoice refused(std::string reason) {
    SequenceChoice choice;
    choice.reason = std::move(reason);
    return choice;
  }

 private:
  SequenceChoice taken(const CallSequence* sequence, CallOrder order) const {
    SequenceChoice choice;
    choice.sequence = sequence;
    choice.order = std::move(order);
    return choice;
  }

  SequenceChoice by_members(const std::vector<const CallSequence*>& candidates) const {
    if (candidates.size() > 1)
      return refused(std::to_string(candidates.size()) +
                     " communicators have as many ranks, and no calls are recorded that would tell "
                     "them apart (NCCL_DEBUG_SUBSYS=COLL)");
    SequenceChoice choice = taken(candidates.front(), {});
    choice.order.call_of.assign(ops_.size(), -1);
    choice.by = JoinedBy::members;
    choice.confidence = Confidence::likely;
    return choice;
  }

  std::optional<SequenceChoice> by_number(
      const std::vector<const CallSequence*>& candidates) const {
    std::vector<Fit> fits_found;
    std::vector<const CallSequence*> others;
    for (const CallSequence* candidate : candidates) {
      auto order = by_numbers(ops_, *candidate);
      const bool fit = order && order->paired > 0;
      if (!fit || (candidate->name.empty() && !enough(order->paired))) {
        others.push_back(candidate);
        continue;
      }
      fits_found.push_back({candidate, std::move(*order)});
      if (clock_known_ && !at_this_time(ops_, fits_found.back()))
        return refused(
            "its numbers are there, but were given at another time: it is of another run");
    }
    if (fits_found.empty()) return std::nullopt;
    SequenceChoice choice = best_of(std::move(fits_found));
    if (choice.sequence == nullptr) return choice;
    // A line that was lost moves all numbers behind it: another communicator's calls may be the
    // operations under other numbers.
    for (const CallSequence* other : others) {
      if (!choice.sequence->name.empty() || !(can_have_lost(ops_, *other, choice.order.paired) ||
                                              may_be_remains(ops_, *other, choice.order.paired)))
        continue;
      return refused(
          "one communicator has its numbers and another one its order, so that lines may be lost");
    }
    choice.by = JoinedBy::sequence;
    // Nor does what is left of another one's lines always show that it can be meant.
    const bool only_one = !choice.sequence->name.empty() || candidates.size() == 1;
    choice.confidence = only_one && choice.sequence->same_process && choice.sequence->lost == 0
                            ? Confidence::certain
                            : Confidence::likely;
    return choice;
  }

  SequenceChoice by_order(const std::vector<const CallSequence*>& candidates) const {
    std::vector<Fit> fits_found;
    bool any = false;
    for (const CallSequence* candidate : candidates) {
      CallOrder order = lay_beside(ops_, candidate->calls);
      // A few of few can be another communicator's by chance.
      const bool few = candidates.size() > 1 && ops_.size() < kFewOperations;
      any = any || (enough(order.paired) && (!few || order.paired == ops_.size()));
      if (order.paired > 0) fits_found.push_back({candidate, std::move(order)});
    }
    if (!any)
      return refused("its operations are not among the calls of any communicator of its size");
    SequenceChoice choice = best_of(std::move(fits_found), true);
    if (choice.sequence == nullptr) return choice;
    choice.by = JoinedBy::order;
    choice.confidence = Confidence::likely;
    return choice;
  }

  bool enough(std::size_t paired) const {
    return paired > 0 && 3 * paired >= kNeededOfThree * ops_.size();
  }

  SequenceChoice best_of(std::vector<Fit> found, bool by_order = false) const {
    const auto best = std::max_element(found.begin(), found.end(), [](const Fit& a, const Fit& b) {
      return a.order.paired < b.order.paired;
    });
    const auto rivals = std::count_if(found.begin(), found.end(), [&](const Fit& fit) {
      return is_rival(fit.order, best->order.paired) ||
             (by_order && may_be_remains(ops_, *fit.sequence, best->order.paired));
    });
    if (rivals > 1)
      return refused(std::to_string(rivals) +
                     " communicators have its size and fit its operations equally well");
    return taken(best->sequence, std::move(best->order));
  }

  const GroupIdentity& group_;
  const std::vector<CommEvent>& ops_;
  bool clock_known_;
};

// How well a stream's operations fit one communicator's calls.
struct FitAlone {
  const CallSequence* sequence = nullptr;
  CallOrder order;
  std::size_t told = 0;     // pairs of operations that are known for certain
  bool in_a_row = true;     // no call is passed over between two pairs
  bool sizes_known = true;  // of all pairs
  std::set<std::pair<Op, std::int64_t>> kinds;
};

FitAlone fit_alone(const std::vector<CommEvent>& ops, const CallSequence& sequence) {
  FitAlone fit{.sequence = &sequence, .order = lay_beside(ops, sequence.calls), .kinds = {}};
  std::int32_t last = -1;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::int32_t call = fit.order.call_of[i];
    if (call < 0) continue;
    fit.in_a_row = fit.in_a_row && (last < 0 || call == last + 1);
    last = call;
    const CommEvent& called = sequence.calls[static_cast<std::size_t>(call)];
    if (ops[i].any_op || called.any_op) continue;
    ++fit.told;
    if (size_may_differ(ops[i].op)) continue;
    fit.sizes_known = fit.sizes_known && ops[i].bytes >= 0 && called.bytes >= 0;
    fit.kinds.insert({ops[i].op, std::min(ops[i].bytes, called.bytes)});
  }
  return fit;
}

// Whether the order tells more than that the communicator makes such calls.
bool tells(const FitAlone& fit, std::size_t ops, bool whole) {
  if (!fit.sizes_known && !(fit.in_a_row && fit.order.paired == ops)) return false;
  return fit.kinds.size() > 1 || whole;
}

bool has_call_of(Op op, const std::vector<const CallSequence*>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [op](const CallSequence* sequence) {
    return std::any_of(sequence->calls.begin(), sequence->calls.end(),
                       [op](const CommEvent& call) { return call.op == op; });
  });
}

// Without operations that libraries make of sends and receives, where the witness has none of them.
std::vector<CommEvent> comparable(const std::vector<CommEvent>& ops,
                                  const std::vector<const CallSequence*>& candidates) {
  std::vector<CommEvent> kept = ops;
  for (const Op op : {Op::all_to_all, Op::gather, Op::scatter}) {
    if (has_call_of(op, candidates)) continue;
    std::erase_if(kept, [op](const CommEvent& event) { return event.op == op; });
  }
  return kept;
}

}  // namespace

bool can_be_of(const GroupIdentity& group, std::int64_t rank, const std::string& name,
               const std::vector<int>& members, std::int64_t size, std::int64_t place) {
  if (!name.empty() && name != group.name) return false;
  if (group.size > 0 && size > 0 && group.size != size) return false;
  if (group.ranks.empty()) return true;
  if (!members.empty() && members != group.ranks) return false;
  const auto own = std::lower_bound(group.ranks.begin(), group.ranks.end(), rank);
  return place < 0 || place == own - group.ranks.begin();
}

SequenceChoice choose_sequence(const GroupIdentity& group, std::int64_t rank,
                               const std::vector<CommEvent>& ops, bool clock_known,
                               const std::vector<const CallSequence*>& candidates) {
  std::vector<const CallSequence*> possible;
  for (const CallSequence* candidate : candidates) {
    if (can_be(group, rank, *candidate)) possible.push_back(candidate);
  }
  const std::uint64_t id = communicator_number(group.name);
  const bool by_id = id != 0 && std::any_of(candidates.begin(), candidates.end(),
                                            [](const auto* c) { return c->communicator != 0; });
  const std::vector<CommEvent> compared = comparable(ops, by_id ? candidates : possible);
  SequenceChoice choice;
  if (by_id) {
    choice = Chooser(group, compared, clock_known).by_identifier(id, candidates);
  } else if (possible.empty()) {
    return Chooser::refused("no communicator or group there has its size and members");
  } else if (compared.empty()) {
    return Chooser::refused("it holds nothing but exchanges, which are made of sends and receives");
  } else {
    choice = Chooser(group, compared, clock_known).run(possible);
  }
  if (choice.sequence == nullptr || compared.size() == ops.size()) return choice;
  // Back to all operations: those that were left out have no call.
  std::vector<std::int32_t> call_of(ops.size(), -1);
  std::size_t next = 0;
  for (std::size_t i = 0; i < ops.size() && next < compared.size(); ++i) {
    if (compared[next].row == ops[i].row) call_of[i] = choice.order.call_of[next++];
  }
  choice.order.call_of = std::move(call_of);
  return choice;
}

SequenceChoice choose_by_order_alone(const std::vector<CommEvent>& ops, bool clock_known,
                                     const std::vector<const CallSequence*>& candidates) {
  if (ops.size() < kFewestAlone)
    return Chooser::refused(
        "the timeline does not name its group, and its stream holds too few "
        "operations to find them among the calls");
  std::vector<FitAlone> found;
  bool whole = true;
  for (const CallSequence* candidate : candidates) {
    if (candidate->size == 1) continue;  // runs no kernels
    whole = whole && candidate->facts != nullptr && candidate->numbered;
    FitAlone fit = fit_alone(ops, *candidate);
    if (fit.told > 0) found.push_back(std::move(fit));
  }
  const auto best =
      std::max_element(found.begin(), found.end(),
                       [](const FitAlone& a, const FitAlone& b) { return a.told < b.told; });
  if (best == found.end() || 10 * best->told < kNeededOfTen * ops.size())
    return Chooser::refused(
        "the timeline does not name its group, and no communicator's calls are "
        "its stream's operations");
  const auto rivals = std::count_if(found.begin(), found.end(), [&](const FitAlone& fit) {
    return is_rival(fit.order, best->told) || may_be_remains(ops, *fit.sequence, best->told);
  });
  if (rivals > 1)
    return Chooser::refused("the timeline does not name its group, and " + std::to_string(rivals) +
                            " communicators fit its stream's operations");
  if (!tells(*best, ops.size(), whole))
    return Chooser::refused(
        "the timeline does not name its group, and its stream's operations are "
        "too much alike to tell the communicator");
  if (clock_known && !at_this_time(ops, {best->sequence, best->order}))
    return Chooser::refused(
        "the timeline does not name its group, and the calls that fit its "
        "stream's operations were made at another time");
  SequenceChoice choice;
  choice.sequence = best->sequence;
  choice.order = std::move(best->order);
  choice.by = JoinedBy::order;
  choice.confidence = Confidence::likely;
  return choice;
}

}  // namespace commlens
