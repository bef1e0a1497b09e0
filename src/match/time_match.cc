// Problem: events are lost on either side, so that counting does not help, but operations that are
// one end together.
//
//   reference   A      A      A             A        the own third A has its partner lost: its
//   own         A      A         A          A        nearest is the reference's third, whose
//   nearest
//                                                     is... itself nearer to nobody: see tolerance
//
// Method: each event's nearest of the same kind; a pair is what is nearest to each other. Pairs
// that are not clearly nearer than the next of the kind are not sure. Each search looks at a fixed
// number of neighbours, so the cost is that of sorting.
#include "match/time_match.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace commlens {
namespace {

// How many events on each side of an instant are looked at.
constexpr std::size_t kNeighbours = 12;
// A pair is sure when the next event of the kind lies this many times farther off.
constexpr Ns kClearly = 2;
// So many pairs, evenly taken, say as much of a line as all of them.
constexpr std::size_t kEnoughToFit = 500;
constexpr Ns kNowhere = std::numeric_limits<Ns>::max() / 4;

}  // namespace

bool can_be_one(const CommEvent& a, const CommEvent& b) {
  if (a.step != kUnknown && b.step != kUnknown && a.step != b.step) return false;
  return fits(a, b);
}

EventsByEnd::EventsByEnd(const std::vector<CommEvent>& events) : events_(events) {
  order_.resize(events.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
  const auto earlier = [&events](std::uint32_t a, std::uint32_t b) {
    return events[a].end < events[b].end;
  };
  if (!std::is_sorted(order_.begin(), order_.end(), earlier))
    std::stable_sort(order_.begin(), order_.end(), earlier);
  ends_.reserve(order_.size());
  for (const std::uint32_t event : order_) ends_.push_back(events[event].end);
  std::vector<Ns> gaps;
  for (std::size_t i = 1; i < ends_.size(); ++i) gaps.push_back(ends_[i] - ends_[i - 1]);
  if (!gaps.empty()) usual_gap_ = median_in_place(gaps);
}

OrderRange EventsByEnd::between(Ns from, Ns to) const {
  const auto first = std::lower_bound(ends_.begin(), ends_.end(), from);
  const auto last = std::upper_bound(first, ends_.end(), to);
  return {static_cast<std::size_t>(first - ends_.begin()),
          static_cast<std::size_t>(last - ends_.begin())};
}

std::size_t EventsByEnd::position_of(Ns end) const {
  return static_cast<std::size_t>(std::lower_bound(ends_.begin(), ends_.end(), end) -
                                  ends_.begin());
}

EventsByEnd::Nearest EventsByEnd::nearest(Ns end, const CommEvent& like, Ns tolerance,
                                          std::size_t& cursor) const {
  Nearest found{-1, kNowhere, kNowhere};
  std::size_t at = std::min(cursor, ends_.size());
  while (at < ends_.size() && ends_[at] < end) ++at;
  while (at > 0 && ends_[at - 1] >= end) --at;
  cursor = at;
  // False: those behind it need not be looked at.
  const auto look = [&](std::size_t i) {
    const Ns off = std::abs(ends_[i] - end);
    if (off > tolerance && (found.event < 0 || off > kClearly * found.off)) return false;
    if (off >= found.next_off || !can_be_one(events_[order_[i]], like)) return true;
    if (off < found.off) {
      found = {static_cast<std::int32_t>(order_[i]), off, found.off};
    } else {
      found.next_off = off;
    }
    return found.event < 0 || off <= kClearly * found.off;
  };
  const std::size_t last = std::min(ends_.size(), at + kNeighbours);
  const std::size_t first = at - std::min(at, kNeighbours);
  for (std::size_t i = at; i < last && look(i);) ++i;
  for (std::size_t i = at; i > first && look(i - 1);) --i;
  return found;
}

std::vector<TimePair> match_by_time(const EventsByEnd& reference, const EventsByEnd& own,
                                    const EndLine& line, Ns tolerance) {
  return match_by_time(reference, own, line, tolerance, {0, own.size()});
}

std::vector<TimePair> match_by_time(const EventsByEnd& reference, const EventsByEnd& own,
                                    const EndLine& line, Ns tolerance, OrderRange range) {
  std::vector<TimePair> pairs;
  if (range.first >= range.last) return pairs;
  std::size_t there_cursor = reference.position_of(line.to_reference(own.at(range.first).end));
  std::size_t back_cursor = range.first;
  for (std::size_t position = range.first; position < range.last; ++position) {
    const std::uint32_t event = own.order()[position];
    const CommEvent& mine = own.events()[event];
    const auto there =
        reference.nearest(line.to_reference(mine.end), mine, tolerance, there_cursor);
    if (there.event < 0) continue;
    const CommEvent& other = reference.events()[static_cast<std::size_t>(there.event)];
    const auto back = own.nearest(line.from_reference(other.end), other, tolerance, back_cursor);
    if (back.event != static_cast<std::int32_t>(event)) continue;
    const bool sure = kClearly * there.off < there.next_off && kClearly * there.off < back.next_off;
    pairs.push_back({static_cast<std::uint32_t>(there.event), event, there.off, sure});
  }
  return pairs;
}

std::vector<EndDifference> end_differences(const EventsByEnd& reference, const EventsByEnd& own,
                                           const std::vector<TimePair>& pairs) {
  std::vector<EndDifference> all;
  std::vector<EndDifference> synchronising;
  const std::size_t stride = std::max<std::size_t>(1, pairs.size() / kEnoughToFit);
  for (std::size_t i = 0; i < pairs.size(); i += stride) {
    const CommEvent& mine = own.events()[pairs[i].own];
    all.push_back({mine.end, reference.events()[pairs[i].reference].end - mine.end});
    if (synchronises(mine.op)) synchronising.push_back(all.back());
  }
  return synchronising.size() >= 3 ? synchronising : all;
}

}  // namespace commlens
