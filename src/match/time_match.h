// Pairs of two ranks' events that end together, once it is known how their clocks relate.
#pragma once

#include <cstdint>
#include <vector>

#include "match/comm_sequence.h"
#include "match/end_line.h"

namespace commlens {

struct TimePair {
  std::uint32_t reference = 0;  // event of the reference
  std::uint32_t own = 0;        // event of the other
  Ns off = 0;                   // how far apart they end
  bool sure = true;             // no other event of the same kind is nearly as near
};

// Positions [first, last) in the order of the ends.
struct OrderRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// One rank's events by their ends: what is asked is "which event that can be this one ends nearest
// to an instant".
class EventsByEnd {
 public:
  explicit EventsByEnd(const std::vector<CommEvent>& events);

  struct Nearest {
    std::int32_t event = -1;  // -1: none within the tolerance
    Ns off = 0;
    Ns next_off = 0;  // of the next one that fits, where it is not much farther off
  };
  // `cursor` is where the last search ended: searches that go forward cost a step each.
  Nearest nearest(Ns end, const CommEvent& like, Ns tolerance, std::size_t& cursor) const;

  // Of the first event that ends at `end` or later.
  std::size_t position_of(Ns end) const;
  // The events that end in [from, to].
  OrderRange between(Ns from, Ns to) const;

  // The usual time from one end to the next; 0 where there is none.
  Ns usual_gap() const { return usual_gap_; }
  const std::vector<CommEvent>& events() const { return events_; }
  const CommEvent& at(std::size_t position) const { return events_[order_[position]]; }
  std::size_t size() const { return order_.size(); }
  const std::vector<std::uint32_t>& order() const { return order_; }

 private:
  const std::vector<CommEvent>& events_;
  std::vector<std::uint32_t> order_;
  std::vector<Ns> ends_;
  Ns usual_gap_ = 0;
};

// Whether two events can be one operation: they fit, and steps, where both are known, are equal.
bool can_be_one(const CommEvent& a, const CommEvent& b);

// Pairs in the order of the ends: each is the other's nearest that can be one with it, at most
// `tolerance` apart. Of the own events those in `range`.
std::vector<TimePair> match_by_time(const EventsByEnd& reference, const EventsByEnd& own,
                                    const EndLine& line, Ns tolerance, OrderRange range);
std::vector<TimePair> match_by_time(const EventsByEnd& reference, const EventsByEnd& own,
                                    const EndLine& line, Ns tolerance);

// The differences of pairs that synchronise; of all, where hardly any do. Of many pairs some.
std::vector<EndDifference> end_differences(const EventsByEnd& reference, const EventsByEnd& own,
                                           const std::vector<TimePair>& pairs);

}  // namespace commlens
