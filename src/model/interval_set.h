// The one place of interval algebra: half-open [start, end) in integer nanoseconds.
//
// Problem: a rank's compute kernels number millions, overlap each other, and come nearly but not
// quite sorted. Every question about overlap is a union, an intersection or a difference of such
// sets. Method: a set keeps its intervals disjoint, sorted and not touching; each operation is one
// linear sweep over two sorted lists. Building from n raw intervals sorts only when they are not
// sorted already. Cost: O(n log n) at worst to build, O(n + m) for everything else.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/id.h"

namespace commlens {

struct Interval {
  Ns start = 0;
  Ns end = 0;  // >= start; [start, end) is empty where equal
  Ns length() const { return end - start; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The part of `interval` inside `window`; an empty one (start == end) where they do not meet.
Interval clip(Interval interval, Interval window);

class IntervalSet {
 public:
  IntervalSet() = default;
  // The union of any intervals, in any order; empty and reversed ones add nothing.
  explicit IntervalSet(std::vector<Interval> intervals);

  std::span<const Interval> parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  Ns length() const;

  // Length of the intersection with one interval; O(log n + pieces met).
  Ns overlap(Interval interval) const;
  // Index of the first part that ends after `instant`.
  std::size_t first_ending_after(Ns instant) const;

 private:
  friend IntervalSet set_union(const IntervalSet&, const IntervalSet&);
  friend IntervalSet set_intersection(const IntervalSet&, const IntervalSet&);
  friend IntervalSet set_difference(const IntervalSet&, const IntervalSet&);
  void append(Interval next);  // next.start must not lie before the last part's start

  std::vector<Interval> parts_;  // disjoint, sorted, not touching, none empty
};

IntervalSet set_union(const IntervalSet& a, const IntervalSet& b);
IntervalSet set_intersection(const IntervalSet& a, const IntervalSet& b);
IntervalSet set_difference(const IntervalSet& a, const IntervalSet& b);

}  // namespace commlens
