#include "report/timeline_lanes.h"

#include <algorithm>
#include <functional>

namespace commlens {

std::uint32_t Lanes::place(Interval slice) {
  while (!busy_.empty() && busy_.front().first <= slice.start) {
    free_.push_back(busy_.front().second);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
    std::pop_heap(busy_.begin(), busy_.end(), std::greater<>());
    busy_.pop_back();
  }
  std::uint32_t lane = count_;
  if (free_.empty()) {
    ++count_;
  } else {
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    lane = free_.back();
    free_.pop_back();
  }
  busy_.emplace_back(slice.end, lane);
  std::push_heap(busy_.begin(), busy_.end(), std::greater<>());
  return lane;
}

}  // namespace commlens
