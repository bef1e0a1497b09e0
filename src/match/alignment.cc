// Problem: windows begin and end at different operations, and events are lost anywhere. A match by
// counting would be wrong from the first lost event on.
//
// Method: every member is compared with the one that has the most events, the reference: once it is
// known how their clocks relate (one host, operations that steps decided, or a search for the
// shift), events that end together are one operation. What the reference lost is gathered from the
// others, brought to its clock: ends that lie together and come from different ranks. Linear in the
// number of events, but for sorting.
//
//   reference  A  B  A     B          slots  1  2  3  -  4
//   member 1   A  B  A  C  B                 1  2  3  5  4     C: gathered from 1 and 2
//   member 2   A     A  C  B                 1     3  5  4
#include "match/alignment.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "match/shift_search.h"

namespace commlens {
namespace {

constexpr std::size_t kEnoughAnchors = 3;
// So many operations of which hardly any end together say that two ranks share no clock.
constexpr std::size_t kEnoughToContradict = 10;

class Aligner {
 public:
  Aligner(const std::vector<Member>& members, MatchedBy by, bool one_clock, Slots& slots)
      : members_(members),
        by_(by),
        one_clock_(one_clock),
        slots_(slots),
        reference_(longest_member(members)) {
    for (const Member& member : members) by_end_.emplace_back(member.events);
    relations_.resize(members.size());
  }

  void run() {
    place_reference();
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (m == reference_ || members_[m].events.empty()) continue;
      relations_[m] = relate(m);
      if (relations_[m]) place_member(m);
    }
    gather_leftovers();
    for (std::size_t m = 0; m < members_.size(); ++m) place_alone(m);
  }

 private:
  // Every event of the reference has a slot.
  void place_reference() {
    const std::vector<CommEvent>& events = members_[reference_].events;
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (slots_.of[reference_][e] == kNoSlot)
        slots_.place(reference_, e, slots_.add(events[e].end, by_));
    }
    event_of_slot_.assign(slots_.slots.size(), -1);
    for (std::size_t e = 0; e < events.size(); ++e)
      event_of_slot_[static_cast<std::size_t>(slots_.of[reference_][e])] =
          static_cast<std::int32_t>(e);
  }

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

  std::optional<Relation> relate(std::size_t m) const {
    const std::vector<EndDifference> known = anchors(m);
    if (one_clock_) return on_one_clock(m);
    if (share_clock(members_[reference_], members_[m])) {
      if (known.size() >= kEnoughAnchors)
        return Relation{.line = {}, .spread = spread_around({}, known), .sure = true};
      if (const auto relation = on_one_clock(m)) return relation;
    }
    if (known.size() >= kEnoughAnchors) {
      const EndFit fit = fit_line(known);
      return Relation{.line = fit.line, .spread = fit.spread, .sure = true};
    }
    return search_shift(by_end_[reference_], by_end_[m]);
  }

  // Nothing where hardly anything ends together of what both recorded at the same time: then they
  // do not share a clock after all.
  std::optional<Relation> on_one_clock(std::size_t m) const {
    const EventsByEnd& reference = by_end_[reference_];
    const EventsByEnd& own = by_end_[m];
    const std::vector<TimePair> pairs = match_by_time(reference, own, {}, first_tolerance(own));
    const OrderRange both =
        own.between(reference.at(0).end, reference.at(reference.size() - 1).end);
    if (10 * pairs.size() < both.last - both.first && both.last - both.first >= kEnoughToContradict)
      return std::nullopt;
    if (pairs.empty()) return Relation{};
    const auto differences = end_differences(reference, own, pairs);
    return Relation{.line = {}, .spread = spread_around({}, differences), .sure = true};
  }

  void place_member(std::size_t m) {
    if (all_placed(m)) return;
    const Relation& relation = *relations_[m];
    const Tolerance tolerance = tolerance_of(relation.spread, by_end_[m]);
    std::vector<char> taken(slots_.slots.size(), 0);
    for (const std::int32_t slot : slots_.of[m]) {
      if (slot != kNoSlot) taken[static_cast<std::size_t>(slot)] = 1;
    }
    std::vector<TimePair> pairs =
        match_by_time(by_end_[reference_], by_end_[m], relation.line, tolerance.most);
    settle_by_order(pairs, tolerance.sure);
    for (const TimePair& pair : pairs) place_pair(m, pair, pair.off <= tolerance.sure, taken);
    if (relation.sure && !all_placed(m)) place_others(m, tolerance.scatter, taken);
  }

  // Operations so close together that ends alone do not say which is which: where both ranks have
  // the same number of them between two sure ones, their order does.
  //
  //   reference  A    B  B    A        ends of the Bs: 30 us apart, with 20 us of scatter
  //   own        A    B  B    A
  static void settle_by_order(std::vector<TimePair>& pairs, Ns near) {
    for (std::size_t first = 1; first < pairs.size(); ++first) {
      if (pairs[first].sure || !pairs[first - 1].sure) continue;
      std::size_t last = first;
      while (last < pairs.size() && !pairs[last].sure && pairs[last].off <= near) ++last;
      if (last == pairs.size() || !pairs[last].sure) continue;
      const TimePair& before = pairs[first - 1];
      bool in_order = true;
      for (std::size_t i = first; i <= last; ++i) {
        const auto steps = static_cast<std::uint32_t>(i - first + 1);
        in_order = in_order && pairs[i].reference == before.reference + steps &&
                   pairs[i].own == before.own + steps;
      }
      for (std::size_t i = first; in_order && i < last; ++i) pairs[i].sure = true;
    }
  }

  bool all_placed(std::size_t m) const {
    return std::find(slots_.of[m].begin(), slots_.of[m].end(), kNoSlot) == slots_.of[m].end();
  }

  void place_pair(std::size_t m, const TimePair& pair, bool near, std::vector<char>& taken) {
    const std::int32_t slot = slots_.of[reference_][pair.reference];
    if (slots_.of[m][pair.own] != kNoSlot || taken[static_cast<std::size_t>(slot)] != 0) return;
    taken[static_cast<std::size_t>(slot)] = 1;
    slots_.place(m, pair.own, slot);
    slots_.doubtful[m][pair.own] = relations_[m]->sure && pair.sure && near ? 0 : 1;
  }

  // What is left on both sides and ends together although it does not fit: one operation about
  // which the ranks disagree.
  void place_others(std::size_t m, Ns tolerance, std::vector<char>& taken) {
    std::vector<CommEvent> theirs;
    std::vector<CommEvent> mine;
    std::vector<std::uint32_t> their_events;
    std::vector<std::uint32_t> my_events;
    for (std::uint32_t e = 0; e < members_[reference_].events.size(); ++e) {
      if (taken[static_cast<std::size_t>(slots_.of[reference_][e])] != 0) continue;
      their_events.push_back(e);
      theirs.push_back(members_[reference_].events[e]);
      theirs.back().any_op = true;
    }
    for (std::uint32_t e = 0; e < members_[m].events.size(); ++e) {
      if (slots_.of[m][e] != kNoSlot) continue;
      my_events.push_back(e);
      mine.push_back(members_[m].events[e]);
    }
    const EventsByEnd their_ends(theirs);
    const EventsByEnd my_ends(mine);
    for (TimePair pair : match_by_time(their_ends, my_ends, relations_[m]->line, tolerance)) {
      if (!pair.sure) continue;
      pair.reference = their_events[pair.reference];
      pair.own = my_events[pair.own];
      place_pair(m, pair, true, taken);
    }
  }

  struct Leftover {
    Ns end = 0;  // by the reference's clock
    std::uint32_t member = 0;
    std::uint32_t event = 0;
    Ns tolerance = 0;
    bool sure = true;
  };

  std::vector<Leftover> leftovers() const {
    std::vector<Leftover> found;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (!relations_[m] || all_placed(m)) continue;
      const Ns tolerance = tolerance_of(relations_[m]->spread, by_end_[m]).sure;
      for (std::size_t e = 0; e < members_[m].events.size(); ++e) {
        if (slots_.of[m][e] != kNoSlot) continue;
        found.push_back({relations_[m]->line.to_reference(members_[m].events[e].end),
                         static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(e), tolerance,
                         relations_[m]->sure});
      }
    }
    std::sort(found.begin(), found.end(), [](const Leftover& a, const Leftover& b) {
      return std::tie(a.end, a.member, a.event) < std::tie(b.end, b.member, b.event);
    });
    return found;
  }

  // What the reference does not have: ends that lie together, of one kind, one of each rank.
  void gather_leftovers() {
    const std::vector<Leftover> all = leftovers();
    std::vector<std::size_t> there(members_.size(), all.size());  // by member: `first` of its slot
    for (std::size_t first = 0; first < all.size();) {
      const CommEvent& lead = members_[all[first].member].events[all[first].event];
      std::size_t last = first;
      for (; last < all.size(); ++last) {
        const Leftover& next = all[last];
        if (next.end - all[first].end > std::max(next.tolerance, all[first].tolerance)) break;
        if (there[next.member] == first || !fits(lead, members_[next.member].events[next.event]))
          break;
        there[next.member] = first;
      }
      const std::int32_t slot = slots_.add(all[first].end, by_);
      for (std::size_t i = first; i < last; ++i) {
        slots_.place(all[i].member, all[i].event, slot);
        slots_.doubtful[all[i].member][all[i].event] = all[i].sure ? 0 : 1;
      }
      first = last;
    }
  }

  // What cannot be related to anything stands alone.
  void place_alone(std::size_t m) {
    for (std::size_t e = 0; e < members_[m].events.size(); ++e) {
      if (slots_.of[m][e] == kNoSlot)
        slots_.place(m, e, slots_.add(members_[m].events[e].end, by_));
    }
  }

  const std::vector<Member>& members_;
  MatchedBy by_;
  bool one_clock_;
  Slots& slots_;
  std::size_t reference_;
  std::vector<EventsByEnd> by_end_;                 // by member
  std::vector<std::optional<Relation>> relations_;  // by member; the reference's is not set
  std::vector<std::int32_t> event_of_slot_;         // of the reference; -1: it has none
};

}  // namespace

void place_by_alignment(const std::vector<Member>& members, MatchedBy by, Slots& slots) {
  if (!members.empty()) Aligner(members, by, false, slots).run();
}

void place_on_one_clock(const std::vector<Member>& members, MatchedBy by, Slots& slots) {
  if (!members.empty()) Aligner(members, by, true, slots).run();
}

}  // namespace commlens
