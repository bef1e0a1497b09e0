#include "model/interval_set.h"

#include <algorithm>

namespace commlens {

Interval clip(Interval interval, Interval window) {
  const Ns start = std::clamp(interval.start, window.start, window.end);
  return {start, std::clamp(interval.end, start, window.end)};
}

IntervalSet::IntervalSet(std::vector<Interval> intervals) {
  const auto by_start = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_start))
    std::sort(intervals.begin(), intervals.end(), by_start);
  // The union is never longer than its input: it is built in the same memory.
  std::size_t kept = 0;
  for (const Interval next : intervals) {
    if (next.end <= next.start) continue;
    if (kept > 0 && next.start <= intervals[kept - 1].end) {
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    } else {
      intervals[kept++] = next;
    }
  }
  intervals.resize(kept);
  parts_ = std::move(intervals);
}

Ns IntervalSet::length() const {
  Ns total = 0;
  for (const Interval part : parts_) total += part.length();
  return total;
}

std::size_t IntervalSet::first_ending_after(Ns instant) const {
  const auto found =
      std::partition_point(parts_.begin(), parts_.end(),
                           [instant](const Interval& part) { return part.end <= instant; });
  return static_cast<std::size_t>(found - parts_.begin());
}

Ns IntervalSet::overlap(Interval interval) const {
  Ns total = 0;
  for (std::size_t i = first_ending_after(interval.start);
       i < parts_.size() && parts_[i].start < interval.end; ++i) {
    total += clip(parts_[i], interval).length();
  }
  return total;
}

void IntervalSet::append(Interval next) {
  if (next.end <= next.start) return;
  if (!parts_.empty() && next.start <= parts_.back().end) {
    parts_.back().end = std::max(parts_.back().end, next.end);
  } else {
    parts_.push_back(next);
  }
}

IntervalSet set_union(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  result.parts_.reserve(a.parts_.size() + b.parts_.size());
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.parts_.size() || j < b.parts_.size()) {
    const bool from_a =
        j == b.parts_.size() || (i < a.parts_.size() && a.parts_[i].start <= b.parts_[j].start);
    result.append(from_a ? a.parts_[i++] : b.parts_[j++]);
  }
  return result;
}

IntervalSet set_intersection(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.parts_.size() && j < b.parts_.size()) {
    result.append({std::max(a.parts_[i].start, b.parts_[j].start),
                   std::min(a.parts_[i].end, b.parts_[j].end)});
    if (a.parts_[i].end < b.parts_[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

IntervalSet set_difference(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  std::size_t j = 0;
  for (const Interval part : a.parts_) {
    Ns from = part.start;
    while (j < b.parts_.size() && b.parts_[j].end <= from) ++j;
    for (std::size_t k = j; k < b.parts_.size() && b.parts_[k].start < part.end; ++k) {
      result.append({from, b.parts_[k].start});
      from = std::max(from, b.parts_[k].end);
    }
    result.append({from, part.end});
  }
  return result;
}

}  // namespace commlens
