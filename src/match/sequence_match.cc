// Problem: newer frameworks write with each operation its identifier and the value of a counter.
// Where they are right nothing is better. But some backends wrote one counter for the whole
// process, so that equal numbers of two ranks are different operations:
//
//   written       rank 0: 1 2 3 4      the group's own    rank 0: 1 . 2 .
//                 rank 1: 1 2 3 4                          rank 1: . 1 . 2    (the dots: another
//   by process    group A has 1 3 on rank 0, 2 4 on rank 1                       group's)
//
// Method: a counter is believed when it grows by one nearly always, equal numbers have equal
// operations nearly always, and ends of equal numbers agree about as well as those of neighbouring
// numbers would. An identifier is believed when it stands on few kernels and on several ranks.
// When it is wrong: a counter that starts elsewhere on each rank, in a sequence of equal operations
// whose steps all take the same time.
#include "match/sequence_match.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "match/shift_search.h"

namespace commlens {
namespace {

// Operations of equal numbers may disagree on a few: then the ranks did.
constexpr double kNearlyAll = 0.9;
// More kernels than this with one identifier on one rank: it does not identify.
constexpr std::size_t kMostKernelsOfOneId = 16;
// So many equal numbers, and no others, are no counter; two may be the kernels of one call.
constexpr std::size_t kFewestThatStand = 2;
// How far a wrong counter's shift is searched for.
constexpr std::int64_t kMostShift = 8;
// Fewer shared numbers than this say nothing of a shift.
constexpr std::size_t kEnoughShared = 4;
// A counter whose ends scatter more than this is looked at closely.
constexpr Ns kSuspicious = 50'000;
// What ends may differ by on real machines without telling anything.
constexpr Ns kEndNoise = 5'000;

// One event under its key; `nth` tells those of one key on one member apart.
struct Keyed {
  std::uint64_t key = 0;
  std::uint32_t nth = 0;
  std::uint32_t member = 0;
  std::uint32_t event = 0;
  friend auto operator<=>(const Keyed&, const Keyed&) = default;
};

template <class KeyOf>
std::vector<Keyed> sorted_by_key(const std::vector<Member>& members, KeyOf key_of) {
  std::vector<Keyed> keyed;
  std::size_t count = 0;
  for (const Member& member : members) count += member.events.size();
  keyed.reserve(count);
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t e = 0; e < members[m].events.size(); ++e) {
      if (const std::optional<std::uint64_t> key = key_of(members[m].events[e]))
        keyed.push_back({*key, 0, static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(e)});
    }
  }
  // First by key and member, to count; then by key and count, so that slots stand together.
  const auto by_member = [](const Keyed& a, const Keyed& b) {
    return std::tie(a.key, a.member, a.event) < std::tie(b.key, b.member, b.event);
  };
  std::sort(keyed.begin(), keyed.end(), by_member);
  bool repeated = false;
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    if (keyed[i].key != keyed[i - 1].key || keyed[i].member != keyed[i - 1].member) continue;
    keyed[i].nth = keyed[i - 1].nth + 1;
    repeated = true;
  }
  if (repeated) std::sort(keyed.begin(), keyed.end());
  return keyed;
}

// Calls `visit(first, last)` for each run of equal key and count: one operation.
template <class Visit>
void for_each_operation(const std::vector<Keyed>& keyed, Visit visit) {
  for (std::size_t first = 0; first < keyed.size();) {
    std::size_t last = first + 1;
    while (last < keyed.size() && keyed[last].key == keyed[first].key &&
           keyed[last].nth == keyed[first].nth)
      ++last;
    visit(first, last);
    first = last;
  }
}

bool nearly_all(std::size_t part, std::size_t all) {
  return static_cast<double>(part) >= kNearlyAll * static_cast<double>(all);
}

// Of the events that share their key with another rank, nearly all are the same operation.
bool operations_agree(const std::vector<Member>& members, const std::vector<Keyed>& keyed) {
  std::size_t shared = 0;
  std::size_t agreeing = 0;
  for_each_operation(keyed, [&](std::size_t first, std::size_t last) {
    const CommEvent& lead = members[keyed[first].member].events[keyed[first].event];
    for (std::size_t i = first + 1; i < last; ++i) {
      ++shared;
      agreeing += fits(lead, members[keyed[i].member].events[keyed[i].event]) ? 1 : 0;
    }
  });
  return nearly_all(agreeing, shared);
}

// One kernel more or less of the same key on two ranks: which is which cannot be told.
Slots slots_of(const std::vector<Member>& members, const std::vector<Keyed>& keyed, MatchedBy by,
               bool ordered_by_key) {
  Slots slots(members);
  std::uint64_t key = 0;
  std::size_t ranks_of_key = 0;
  std::size_t first_of_key = 0;
  for_each_operation(keyed, [&](std::size_t first, std::size_t last) {
    const bool continued = first > 0 && keyed[first].key == key;
    if (!continued) {
      key = keyed[first].key;
      ranks_of_key = last - first;
      first_of_key = slots.slots.size();
    }
    const Ns order = ordered_by_key ? static_cast<Ns>(key)
                                    : members[keyed[first].member].events[keyed[first].event].end;
    const std::int32_t slot = slots.add(order, by);
    for (std::size_t i = first; i < last; ++i) slots.place(keyed[i].member, keyed[i].event, slot);
    if (continued && last - first != ranks_of_key) {
      for (std::size_t s = first_of_key; s < slots.slots.size(); ++s) slots.slots[s].sure = false;
    }
  });
  return slots;
}

std::size_t events_of(const std::vector<Member>& members) {
  std::size_t count = 0;
  for (const Member& member : members) count += member.events.size();
  return count;
}

// Grows by one nearly always. One call's few kernels may have equal numbers; what stands still for
// longer, or never grows, counts nothing.
bool counts_by_one(const Member& member) {
  std::size_t steps = 0;
  std::size_t by_one = 0;
  std::size_t equal = 1;
  std::size_t most_equal = 1;
  for (std::size_t e = 1; e < member.events.size(); ++e) {
    const std::int64_t before = member.events[e - 1].seq;
    const std::int64_t after = member.events[e].seq;
    if (before < 0 || after < 0) continue;
    equal = before == after ? equal + 1 : 1;
    most_equal = std::max(most_equal, equal);
    if (before == after) continue;
    ++steps;
    by_one += after - before == 1 ? 1 : 0;
  }
  const bool stands_still = steps == 0 && most_equal > kFewestThatStand;
  return !stands_still && most_equal <= kMostKernelsOfOneId && 4 * by_one >= 3 * steps;
}

// Scatter of the ends' differences where `own` of one member goes with `own + shift` of the other.
// Nothing where too few numbers are shared, or the operations differ.
std::optional<Ns> spread_at(const Member& reference, const Member& member, std::int64_t shift) {
  std::vector<EndDifference> differences;
  std::size_t shared = 0;
  std::size_t r = 0;
  for (const CommEvent& event : member.events) {
    const std::int64_t wanted = event.seq + shift;
    while (r < reference.events.size() && reference.events[r].seq < wanted) ++r;
    if (r == reference.events.size()) break;
    if (reference.events[r].seq != wanted) continue;
    ++shared;
    if (fits(event, reference.events[r]))
      differences.push_back({event.end, reference.events[r].end - event.end});
  }
  if (differences.size() < kEnoughShared || !nearly_all(differences.size(), shared))
    return std::nullopt;
  return share_clock(reference, member) ? spread_around(EndLine{}, differences)
                                        : fit_line(differences).spread;
}

// Whether the counters of two ranks are shifted against each other: some other shift fits the ends
// clearly better than the numbers as written.
bool shifted(const Member& reference, const Member& member) {
  const std::optional<Ns> written = spread_at(reference, member, 0);
  if (written && *written <= kEndNoise) return false;
  const auto clearly_better = [&written](Ns spread) {
    return written && 3 * spread + kEndNoise < *written;
  };
  for (std::int64_t shift = -kMostShift; written && shift <= kMostShift; ++shift) {
    const std::optional<Ns> other = spread_at(reference, member, shift);
    if (shift != 0 && other && clearly_better(*other)) return true;
  }
  if (written && *written <= kSuspicious) return false;
  // Hardly any number is shared, or the ends are far apart: what do the sequences say themselves?
  const EventsByEnd theirs(reference.events);
  const EventsByEnd mine(member.events);
  const std::optional<Relation> found = search_shift(theirs, mine);
  if (!found || !found->sure) return false;
  std::size_t agreeing = 0;
  const std::vector<TimePair> pairs =
      match_by_time(theirs, mine, found->line, tolerance_of(found->spread, mine).most);
  for (const TimePair& pair : pairs)
    agreeing += reference.events[pair.reference].seq == member.events[pair.own].seq ? 1 : 0;
  return 2 * agreeing < pairs.size() && (!written || clearly_better(found->spread));
}

}  // namespace

std::optional<Slots> place_by_comms_id(const std::vector<Member>& members) {
  const std::vector<Keyed> keyed =
      sorted_by_key(members, [](const CommEvent& event) -> std::optional<std::uint64_t> {
        if (event.comms_id == 0) return std::nullopt;
        return event.comms_id;
      });
  if (keyed.empty() || 2 * keyed.size() < events_of(members)) return std::nullopt;
  std::size_t shared = 0;
  std::size_t most = 0;
  for_each_operation(keyed, [&](std::size_t first, std::size_t last) {
    if (last - first > 1) shared += last - first;
    most = std::max<std::size_t>(most, keyed[first].nth + 1);
  });
  if (most > kMostKernelsOfOneId || !operations_agree(members, keyed)) return std::nullopt;
  if (members.size() > 1 && shared == 0) return std::nullopt;
  return slots_of(members, keyed, MatchedBy::comms_id, false);
}

std::optional<Slots> place_by_sequence(const std::vector<Member>& members) {
  const std::vector<Keyed> keyed =
      sorted_by_key(members, [](const CommEvent& event) -> std::optional<std::uint64_t> {
        if (event.seq < 0) return std::nullopt;
        return static_cast<std::uint64_t>(event.seq);
      });
  if (keyed.empty() || 2 * keyed.size() < events_of(members)) return std::nullopt;
  if (!std::all_of(members.begin(), members.end(), counts_by_one)) return std::nullopt;
  if (!operations_agree(members, keyed)) return std::nullopt;
  const std::size_t reference = longest_member(members);
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (m != reference && shifted(members[reference], members[m])) return std::nullopt;
  }
  return slots_of(members, keyed, MatchedBy::sequence, true);
}

}  // namespace commlens
