// Slices that overlap, spread over as few lanes as possible.
//
// Problem: a track of a timeline draws one thing at a time (a viewer drops, or draws as a call
// inside a call, what overlaps on one track), but a stream can hold kernels that run at the same
// time.
//
//   slices   |--- a ---|              lane 1  |--- a ---||-- d --|
//                |--- b ---|     =>   lane 2     |--- b ---|
//                   |- c -|           lane 3        |- c -|
//                      |-- d --|
//
// Method: by start, each to the lowest lane that is free by then: as many lanes as slices ever
// overlap. Cost: O(n log lanes). A slice without length takes part like any other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/interval_set.h"

namespace commlens {

class Lanes {
 public:
  // The lane (0, 1, ...) of the next slice; slices come by start. On one lane they never overlap.
  std::uint32_t place(Interval slice);
  std::uint32_t count() const { return count_; }

 private:
  std::vector<std::pair<Ns, std::uint32_t>> busy_;  // heap: end and lane, the earliest end first
  std::vector<std::uint32_t> free_;                 // heap: the lowest first
  std::uint32_t count_ = 0;
};

}  // namespace commlens
