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

#include "match/shift_search.h"

namespace commlens {
namespace {

// Fewer operations than this on one member are compared with nothing.
constexpr std::size_t kEnoughForLine = 3;
// Ends that scatter by more than this part of the time between operations may be of other ones.
constexpr Ns kSuspiciousPart = 32;

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
    for (const StepOfMember& step : steps_)
      longest_step_ = std::max<std::size_t>(longest_step_, step.count);
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
    reference_ = longest_member(members_);
    event_of_slot_.assign(slots_.slots.size(), -1);
    for (std::size_t e = 0; e < slots_.of[reference_].size(); ++e) {
      const std::int32_t slot = slots_.of[reference_][e];
      if (slot != kNoSlot)
        event_of_slot_[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(e);
    }
    for (std::size_t m = 0; m < members_.size(); ++m) relate(m);
    const std::vector<Ns> middles = middle_ends();
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (relations_[m]) check_member(m, middles);
    }
  }

  void relate(std::size_t m) {
    relations_.emplace_back();
    allowed_.push_back(0);
    const auto& placed = slots_.of[m];
    if (std::all_of(placed.begin(), placed.end(),
                    [](std::int32_t slot) { return slot == kNoSlot; }))
      return;
    const EventsByEnd own(members_[m].events);
    relations_[m] = m == reference_ ? Relation{} : relation_of(m, differences_of(m), own);
    if (!relations_[m]) return;
    allowed_[m] = tolerance_of(relations_[m]->spread, own).sure;
    if (own.usual_gap() > 0) allowed_[m] = std::min(allowed_[m], own.usual_gap() / 2);
  }

  // From what the steps paired with the reference.
  std::vector<EndDifference> differences_of(std::size_t m) const {
    std::vector<EndDifference> differences;
    for (std::size_t e = 0; e < members_[m].events.size(); ++e) {
      const std::int32_t slot = slots_.of[m][e];
      const CommEvent& own = members_[m].events[e];
      if (slot == kNoSlot || !synchronises(own.op)) continue;
      const std::int32_t other = event_of_slot_[static_cast<std::size_t>(slot)];
      if (other < 0) continue;
      const Ns end = members_[reference_].events[static_cast<std::size_t>(other)].end;
      differences.push_back({own.end, end - own.end});
    }
    return differences;
  }

  // Calls `visit(slot, end by the reference's clock)` for each event whose end tells something.
  template <class Visit>
  void for_each_end(Visit visit) const {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (!relations_[m]) continue;
      for (std::size_t e = 0; e < members_[m].events.size(); ++e) {
        const CommEvent& event = members_[m].events[e];
        if (slots_.of[m][e] == kNoSlot || !synchronises(event.op)) continue;
        visit(static_cast<std::size_t>(slots_.of[m][e]),
              relations_[m]->line.to_reference(event.end));
      }
    }
  }

  // By slot the middle one of its ends.
  std::vector<Ns> middle_ends() const {
    std::vector<std::uint32_t> next(slots_.slots.size() + 1, 0);
    for_each_end([&next](std::size_t slot, Ns) { ++next[slot + 1]; });
    for (std::size_t s = 1; s < next.size(); ++s) next[s] += next[s - 1];
    std::vector<Ns> ends(next.back());
    const std::vector<std::uint32_t> first = next;
    for_each_end([&](std::size_t slot, Ns end) { ends[next[slot]++] = end; });
    std::vector<Ns> middles(slots_.slots.size(), 0);
    for (std::size_t s = 0; s < middles.size(); ++s) {
      const auto from = ends.begin() + first[s];
      const auto to = ends.begin() + first[s + 1];
      if (from == to) continue;
      std::nth_element(from, from + (to - from - 1) / 2, to);
      middles[s] = *(from + (to - from - 1) / 2);
    }
    return middles;
  }

  void check_member(std::size_t m, const std::vector<Ns>& middles) {
    const Relation& relation = *relations_[m];
    for_each_step(m, [&](std::size_t first, std::size_t last) {
      bool off = false;
      for (std::size_t i = first; i < last; ++i) {
        const CommEvent& event = members_[m].events[orders_[m][i]];
        const std::int32_t slot = slots_.of[m][orders_[m][i]];
        if (slot == kNoSlot || !synchronises(event.op)) continue;
        const Ns middle = middles[static_cast<std::size_t>(slot)];
        off = off || std::abs(relation.line.to_reference(event.end) - middle) > allowed_[m];
      }
      for (std::size_t i = first; i < last; ++i) {
        if (off) slots_.of[m][orders_[m][i]] = kNoSlot;
        if (!relation.sure && last - first < longest_step_) slots_.doubtful[m][orders_[m][i]] = 1;
      }
    });
  }

  // How the clocks relate: by what the steps paired, unless that scatters so much that half of it
  // may be wrong.
  std::optional<Relation> relation_of(std::size_t m, const std::vector<EndDifference>& differences,
                                      const EventsByEnd& own) const {
    Relation relation;
    const bool enough = differences.size() >= kEnoughForLine;
    if (share_clock(members_[reference_], members_[m])) {
      relation.spread = own.usual_gap() / kSuspiciousPart;
      if (enough) relation.spread = std::min(relation.spread, spread_around({}, differences));
      return relation;
    }
    if (enough) {
      const EndFit fit = fit_line(differences);
      relation.line = fit.line;
      relation.spread = fit.spread;
      if (fit.spread <= own.usual_gap() / kSuspiciousPart) return relation;
    }
    const EventsByEnd theirs(members_[reference_].events);
    const std::optional<Relation> found = search_shift(theirs, own);
    if (found && found->sure && (!enough || 2 * found->spread < relation.spread)) return found;
    if (!enough) return std::nullopt;
    relation.sure = false;
    return relation;
  }

  template <class Visit>
  void for_each_step(std::size_t m, Visit visit) const {
    const std::vector<std::uint32_t>& order = orders_[m];
    for (std::size_t first = 0; first < order.size();) {
      std::size_t last = first;
      const std::int64_t step = members_[m].events[order[first]].step;
      while (last < order.size() && members_[m].events[order[last]].step == step) ++last;
      visit(first, last);
      first = last;
    }
  }

  const std::vector<Member>& members_;
  Slots slots_;
  std::vector<std::vector<std::uint32_t>> orders_;  // by member
  std::vector<StepOfMember> steps_;
  std::size_t longest_step_ = 0;                    // operations
  std::size_t reference_ = 0;                       // member
  std::vector<std::int32_t> event_of_slot_;         // of the reference; -1: it has none
  std::vector<std::optional<Relation>> relations_;  // by member: to the reference's clock
  std::vector<Ns> allowed_;                         // by member: how far its ends may lie off
};

}  // namespace

Slots place_by_steps(const std::vector<Member>& members) { return StepMatcher(members).run(); }

}  // namespace commlens
