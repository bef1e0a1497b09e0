// Problem: windows begin and end at different operations, and events are lost anywhere. A match by
// counting would be wrong from the first lost event on.
//
// Method: every member's clock is related to that of one, the reference (member_relations). Then
// events that end together are one operation: first with those of the reference and what is known
// already, then what these lack is gathered from the others, brought to the reference's clock: ends
// that lie together and come from different ranks. Linear in the number of events, but for sorting.
//
//   reference  A  B  A     B          slots  1  2  3  -  4
//   member 1   A  B  A  C  B                 1  2  3  5  4     C: gathered from 1 and 2
//   member 2   A     A  C  B                 1     3  5  4
#include "match/alignment.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "match/member_relations.h"

namespace commlens {
namespace {

// Operations so close together that ends alone do not say which is which: where both sides have the
// same number of them between two sure ones, their order does.
//
//   reference  A    B  B    A        ends of the Bs: 30 us apart, with 20 us of scatter
//   own        A    B  B    A
void settle_by_order(std::vector<TimePair>& pairs, Ns near) {
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

// One event for each slot, by the reference's clock.
struct SlotEvents {
  std::vector<CommEvent> events;    // in order of their ends
  std::vector<std::int32_t> slots;  // of these
};

class Aligner {
 public:
  Aligner(const std::vector<Member>& members, MatchedBy by, bool one_clock, Slots& slots)
      : members_(members), by_(by), slots_(slots), reference_(reference_of(members, slots)) {
    by_end_.reserve(members.size());
    for (const Member& member : members) by_end_.emplace_back(member.events);
    relations_ = relate_members(members, by_end_, slots, reference_, one_clock);
  }

  void run() {
    if (!all_placed(reference_)) {
      if (!slots_.slots.empty()) place_member(reference_, slot_events());
      give_slots(reference_);
    }
    const SlotEvents known = slot_events();
    const EventsByEnd known_by_end(known.events);
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (relations_[m] && !all_placed(m)) place_member(m, known, known_by_end);
    }
    gather_leftovers();
    for (std::size_t m = 0; m < members_.size(); ++m) give_slots(m);
    const SlotEvents all = slot_events();
    for (std::size_t i = 0; i < all.slots.size(); ++i)
      slots_.slots[static_cast<std::size_t>(all.slots[i])].order = all.events[i].end;
  }

 private:
  bool all_placed(std::size_t m) const {
    return std::find(slots_.of[m].begin(), slots_.of[m].end(), kNoSlot) == slots_.of[m].end();
  }

  // Slots of its own for what has none.
  void give_slots(std::size_t m) {
    for (std::size_t e = 0; e < members_[m].events.size(); ++e) {
      if (slots_.of[m][e] == kNoSlot)
        slots_.place(m, e, slots_.add(members_[m].events[e].end, by_));
    }
  }

  // Of the reference where it is in a slot, else of the first member whose clock is related, else
  // of any.
  SlotEvents slot_events() const {
    std::vector<CommEvent> events(slots_.slots.size());
    std::vector<char> rank(slots_.slots.size(), 0);  // how good the event is; 0: there is none
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const char mine = m == reference_ ? 3 : relations_[m] ? 2 : 1;
      for (std::size_t e = 0; e < members_[m].events.size(); ++e) {
        if (slots_.of[m][e] == kNoSlot) continue;
        const auto slot = static_cast<std::size_t>(slots_.of[m][e]);
        if (rank[slot] >= mine) continue;
        rank[slot] = mine;
        events[slot] = members_[m].events[e];
        if (relations_[m]) events[slot].end = relations_[m]->line.to_reference(events[slot].end);
      }
    }
    SlotEvents sorted;
    for (std::size_t slot = 0; slot < events.size(); ++slot) {
      if (rank[slot] > 0) sorted.slots.push_back(static_cast<std::int32_t>(slot));
    }
    const auto end_of = [&events](std::int32_t slot) {
      return events[static_cast<std::size_t>(slot)].end;
    };
    std::stable_sort(sorted.slots.begin(), sorted.slots.end(),
                     [&](std::int32_t a, std::int32_t b) { return end_of(a) < end_of(b); });
    for (const std::int32_t slot : sorted.slots)
      sorted.events.push_back(events[static_cast<std::size_t>(slot)]);
    return sorted;
  }

  void place_member(std::size_t m, const SlotEvents& known) {
    place_member(m, known, EventsByEnd(known.events));
  }

  void place_member(std::size_t m, const SlotEvents& known, const EventsByEnd& known_by_end) {
    const Relation& relation = *relations_[m];
    const Tolerance tolerance = tolerance_of(relation.spread, by_end_[m]);
    std::vector<char> taken(slots_.slots.size(), 0);
    for (const std::int32_t slot : slots_.of[m]) {
      if (slot != kNoSlot) taken[static_cast<std::size_t>(slot)] = 1;
    }
    std::vector<TimePair> pairs =
        match_by_time(known_by_end, by_end_[m], relation.line, tolerance.most);
    settle_by_order(pairs, tolerance.sure);
    for (const TimePair& pair : pairs) {
      place_pair(m, pair.own, known.slots[pair.reference], pair.sure && pair.off <= tolerance.sure,
                 taken);
    }
    if (relation.sure && !all_placed(m)) place_others(m, known, tolerance.scatter, taken);
  }

  void place_pair(std::size_t m, std::uint32_t event, std::int32_t slot, bool sure,
                  std::vector<char>& taken) {
    if (slots_.of[m][event] != kNoSlot || taken[static_cast<std::size_t>(slot)] != 0) return;
    taken[static_cast<std::size_t>(slot)] = 1;
    slots_.place(m, event, slot);
    slots_.doubtful[m][event] = sure && relations_[m]->sure ? 0 : 1;
  }

  // What is left on both sides and ends together although it does not fit: one operation about
  // which the ranks disagree.
  void place_others(std::size_t m, const SlotEvents& known, Ns tolerance,
                    std::vector<char>& taken) {
    std::vector<CommEvent> theirs;
    std::vector<std::int32_t> their_slots;
    for (std::size_t i = 0; i < known.slots.size(); ++i) {
      if (taken[static_cast<std::size_t>(known.slots[i])] != 0) continue;
      their_slots.push_back(known.slots[i]);
      theirs.push_back(known.events[i]);
      theirs.back().any_op = true;
    }
    std::vector<CommEvent> mine;
    std::vector<std::uint32_t> my_events;
    for (std::uint32_t e = 0; e < members_[m].events.size(); ++e) {
      if (slots_.of[m][e] != kNoSlot) continue;
      my_events.push_back(e);
      mine.push_back(members_[m].events[e]);
    }
    const EventsByEnd their_ends(theirs);
    const EventsByEnd my_ends(mine);
    for (const TimePair& pair :
         match_by_time(their_ends, my_ends, relations_[m]->line, tolerance)) {
      if (pair.sure) place_pair(m, my_events[pair.own], their_slots[pair.reference], true, taken);
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

  // What the slots do not have: ends that lie together, of one kind, one of each rank.
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

  const std::vector<Member>& members_;
  MatchedBy by_;
  Slots& slots_;
  std::size_t reference_;
  std::vector<EventsByEnd> by_end_;                 // by member
  std::vector<std::optional<Relation>> relations_;  // by member, to the reference's clock
};

}  // namespace

void place_by_alignment(const std::vector<Member>& members, MatchedBy by, Slots& slots) {
  if (!members.empty()) Aligner(members, by, false, slots).run();
}

void place_on_one_clock(const std::vector<Member>& members, MatchedBy by, Slots& slots) {
  if (!members.empty()) Aligner(members, by, true, slots).run();
}

}  // namespace commlens
