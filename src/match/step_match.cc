// Problem: without counters, the n-th operation on one rank need not be the n-th on another:
// windows begin at different operations. But step N of one rank is step N of the others.
//
//   step       |---- 7 ----|---- 8 ----|---- 9 ----|        A, B: operations with size and type
//   rank 0       A   B       A   B       A   B
//   rank 1           B       A   B       A   B              cut at its start: 7 is left to
//   alignment rank 2       A   B       A   B       A                  cut at its end: 9 is
//
// Method: in each step, the ranks whose sequences are equal and in the majority are matched n-th
// with n-th. A step in which two ranks lost different ones of equal operations looks whole: there
// the ends tell, and the step is left to alignment.
// When it is wrong: operations that do not end together (broadcast), in such a step.
#include "match/step_match.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "match/end_line.h"

namespace commlens {
namespace {

// Ends of a step that lie farther off than this, and than this many times the usual scatter, are
// those of other operations.
constexpr Ns kEndsOff = 50'000;
constexpr Ns kTimesSpread = 10;
// Fewer steps than this on one member are compared with nothing.
constexpr std::size_t kEnoughForLine = 3;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

// What a member did in one step.
struct StepOfMember {
  std::int64_t step = 0;
  std::uint64_t sequence = 0;  // equal for equal sequences of operations
  std::uint32_t count = 0;
  std::uint32_t member = 0;
  std::uint32_t first = 0;  // into `order` of its member
};

// A member's events that have a step, by step and then in their order.
std::vector<std::uint32_t> by_step(const Member& member) {
  std::vector<std::uint32_t> order;
  for (std::size_t e = 0; e < member.events.size(); ++e) {
    if (member.events[e].step != kUnknown) order.push_back(static_cast<std::uint32_t>(e));
  }
  std::stable_sort(order.begin(), order.end(), [&member](std::uint32_t a, std::uint32_t b) {
    return member.events[a].step < member.events[b].step;
  });
  return order;
}

void append_steps(const Member& member, std::uint32_t number,
                  const std::vector<std::uint32_t>& order, std::vector<StepOfMember>& steps) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const CommEvent& event = member.events[order[i]];
    if (i == 0 || steps.back().step != event.step)
      steps.push_back({event.step, 0, 0, number, static_cast<std::uint32_t>(i)});
    StepOfMember& step = steps.back();
    ++step.count;
    step.sequence =
        mixed(step.sequence, event.any_op ? 0 : static_cast<std::uint64_t>(event.op) + 1);
    step.sequence = mixed(step.sequence, event.dtype);
    step.sequence = mixed(step.sequence, static_cast<std::uint64_t>(event.bytes));
  }
}

class StepMatcher {
 public:
  explicit StepMatcher(const std::vector<Member>& members) : members_(members), slots_(members) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      orders_.push_back(by_step(members[m]));
      append_steps(members[m], static_cast<std::uint32_t>(m), orders_.back(), steps_);
    }
    std::sort(steps_.begin(), steps_.end(), [](const StepOfMember& a, const StepOfMember& b) {
      return std::tie(a.step, a.count, a.sequence, a.member) <
             std::tie(b.step, b.count, b.sequence, b.member);
    });
  }

  Slots run() {
    for (std::size_t first = 0; first < steps_.size();) {
      std::size_t last = first;
      while (last < steps_.size() && steps_[last].step == steps_[first].step) ++last;
      place_majority(first, last);
      first = last;
    }
    check_ends();
    return std::move(slots_);
  }

 private:
  // Steps [first, last) are one step of several members; equal sequences stand together.
  void place_majority(std::size_t first, std::size_t last) {
    std::size_t best = first;
    std::size_t best_count = 0;
    for (std::size_t from = first; from < last;) {
      std::size_t to = from;
      while (to < last && steps_[to].sequence == steps_[from].sequence &&
             steps_[to].count == steps_[from].count)
        ++to;
      if (to - from > best_count) {
        best = from;
        best_count = to - from;
      }
      from = to;
    }
    if (best_count < 2 || 2 * best_count <= last - first) return;
    for (std::uint32_t n = 0; n < steps_[best].count; ++n) {
      const std::uint32_t lead = event_of(steps_[best], n);
      const std::int32_t slot =
          slots_.add(members_[steps_[best].member].events[lead].end, MatchedBy::steps);
      for (std::size_t i = best; i < best + best_count; ++i)
        slots_.place(steps_[i].member, event_of(steps_[i], n), slot);
    }
  }

  std::uint32_t event_of(const StepOfMember& step, std::uint32_t n) const {
    return orders_[step.member][step.first + n];
  }

  // Takes a member out of the steps whose ends say that its operations are others.
  void check_ends() {
    const std::size_t reference = longest_member(members_);
    std::vector<std::int32_t> event_of_slot(slots_.slots.size(), -1);
    for (std::size_t e = 0; e < slots_.of[reference].size(); ++e) {
      if (slots_.of[reference][e] != kNoSlot)
        event_of_slot[static_cast<std::size_t>(slots_.of[reference][e])] =
            static_cast<std::int32_t>(e);
    }
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (m != reference) check_member(reference, m, event_of_slot);
    }
  }

  std::optional<EndDifference> difference(std::size_t reference, std::size_t m, std::uint32_t event,
                                          const std::vector<std::int32_t>& event_of_slot) const {
    const std::int32_t slot = slots_.of[m][event];
    if (slot == kNoSlot) return std::nullopt;
    const std::int32_t other = event_of_slot[static_cast<std::size_t>(slot)];
    const CommEvent& own = members_[m].events[event];
    if (other < 0 || !synchronises(own.op)) return std::nullopt;
    const Ns end = members_[reference].events[static_cast<std::size_t>(other)].end;
    return EndDifference{own.end, end - own.end};
  }

  void check_member(std::size_t reference, std::size_t m,
                    const std::vector<std::int32_t>& event_of_slot) {
    std::vector<EndDifference> differences;
    for (std::uint32_t e = 0; e < members_[m].events.size(); ++e) {
      if (const auto found = difference(reference, m, e, event_of_slot))
        differences.push_back(*found);
    }
    if (differences.size() < kEnoughForLine) return;
    const bool shared = share_clock(members_[reference], members_[m]);
    const EndLine line = shared ? EndLine{} : fit_line(differences).line;
    const Ns allowed = std::max(kEndsOff, kTimesSpread * spread_around(line, differences));
    const std::vector<std::uint32_t>& order = orders_[m];
    for (std::size_t first = 0; first < order.size();) {
      std::size_t last = first;
      bool off = false;
      const std::int64_t step = members_[m].events[order[first]].step;
      for (; last < order.size() && members_[m].events[order[last]].step == step; ++last) {
        const auto found = difference(reference, m, order[last], event_of_slot);
        off = off || (found && distance(line, *found) > allowed);
      }
      for (std::size_t i = first; off && i < last; ++i) slots_.of[m][order[i]] = kNoSlot;
      first = last;
    }
  }

  const std::vector<Member>& members_;
  Slots slots_;
  std::vector<std::vector<std::uint32_t>> orders_;  // by member
  std::vector<StepOfMember> steps_;
};

}  // namespace

Slots place_by_steps(const std::vector<Member>& members) { return StepMatcher(members).run(); }

}  // namespace commlens
