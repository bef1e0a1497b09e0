// Method, the first that holds: one host has one clock; operations that are known to be one
// (counters, steps) give the difference; a search for the shift.
#include "match/member_relations.h"

#include <algorithm>

namespace commlens {
namespace {

constexpr std::size_t kEnoughAnchors = 3;
// So many operations of which hardly any end together say that two ranks share no clock.
constexpr std::size_t kEnoughToContradict = 10;

std::size_t count_placed(const std::vector<std::int32_t>& slots) {
  return slots.size() - static_cast<std::size_t>(std::count(slots.begin(), slots.end(), kNoSlot));
}

// Of one clock. Nothing where hardly anything ends together of what both recorded at the same time:
// then they do not share a clock after all.
std::optional<Relation> on_one_clock(const EventsByEnd& reference, const EventsByEnd& own) {
  const std::vector<TimePair> pairs = match_by_time(reference, own, {}, first_tolerance(own));
  const OrderRange both = own.between(reference.at(0).end, reference.at(reference.size() - 1).end);
  const std::size_t shared = both.last - both.first;
  if (10 * pairs.size() < shared && shared >= kEnoughToContradict) return std::nullopt;
  if (pairs.empty()) return Relation{};
  return Relation{.line = {},
                  .spread = spread_around({}, end_differences(reference, own, pairs)),
                  .sure = true};
}

class MemberRelating {
 public:
  MemberRelating(const std::vector<Member>& members, const std::vector<EventsByEnd>& by_end,
                 const Slots& slots, std::size_t reference, bool one_clock)
      : members_(members),
        by_end_(by_end),
        slots_(slots),
        reference_(reference),
        one_clock_(one_clock),
        event_of_slot_(slots.slots.size(), -1) {
    for (std::size_t e = 0; e < slots.of[reference].size(); ++e) {
      const std::int32_t slot = slots.of[reference][e];
      if (slot != kNoSlot)
        event_of_slot_[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(e);
    }
  }

  std::optional<Relation> relate(std::size_t m) const {
    const EventsByEnd& reference = by_end_[reference_];
    const EventsByEnd& own = by_end_[m];
    if (one_clock_) return on_one_clock(reference, own);
    const std::vector<EndDifference> known = anchors(m);
    if (share_clock(members_[reference_], members_[m])) {
      if (known.size() >= kEnoughAnchors)
        return Relation{.line = {}, .spread = spread_around({}, known), .sure = true};
      if (const auto relation = on_one_clock(reference, own)) return relation;
    }
    if (known.size() < kEnoughAnchors) return search_shift(reference, own);
    const EndFit fit = fit_line(known);
    return Relation{.line = fit.line, .spread = fit.spread, .sure = true};
  }

 private:
  // Pairs that are known already.
  std::vector<EndDifference> anchors(std::size_t m) const {
    std::vector<TimePair> pairs;
    for (const std::uint32_t e : by_end_[m].order()) {
      const std::int32_t slot = slots_.of[m][e];
      if (slot == kNoSlot || event_of_slot_[static_cast<std::size_t>(slot)] < 0) continue;
      pairs.push_back(
          {static_cast<std::uint32_t>(event_of_slot_[static_cast<std::size_t>(slot)]), e});
    }
    return end_differences(by_end_[reference_], by_end_[m], pairs);
  }

  const std::vector<Member>& members_;
  const std::vector<EventsByEnd>& by_end_;
  const Slots& slots_;
  std::size_t reference_;
  bool one_clock_;
  std::vector<std::int32_t> event_of_slot_;  // of the reference; -1: it has none
};

}  // namespace

std::size_t reference_of(const std::vector<Member>& members, const Slots& slots) {
  std::size_t best = 0;
  std::pair<std::size_t, std::size_t> most{0, 0};
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::pair size{count_placed(slots.of[m]), members[m].events.size()};
    if (size > most) best = m;
    most = std::max(most, size);
  }
  return best;
}

std::vector<std::optional<Relation>> relate_members(const std::vector<Member>& members,
                                                    const std::vector<EventsByEnd>& by_end,
                                                    const Slots& slots, std::size_t reference,
                                                    bool one_clock) {
  const MemberRelating relating(members, by_end, slots, reference, one_clock);
  std::vector<std::optional<Relation>> relations(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (m == reference) {
      relations[m] = Relation{};
    } else if (!members[m].events.empty()) {
      relations[m] = relating.relate(m);
    }
  }
  return relations;
}

}  // namespace commlens
