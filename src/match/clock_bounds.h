// Bounds on the differences of clocks, by causality.
#pragma once

#include <cstdint>
#include <vector>

#include "match/clock_placement.h"

namespace commlens {

struct ClockBounds {
  std::size_t domains = 0;
  Ns bin_length = 1;
  // By bin: matrices as in `Clocks::most`, of what offsets differ from ClockPlacement::at_origin.
  std::vector<std::vector<Ns>> most;
};

// More clocks than this are not bounded: a matrix of them would not fit.
inline constexpr std::size_t kMostBoundedClocks = 2'896;

ClockBounds bound_offsets(const ClockEvidence& evidence, const ClockPlacement& placement,
                          Ns epsilon);

// Domains whose bounds contradict each other's, if any.
struct Contradiction {
  std::vector<std::uint32_t> partners;  // by domain: with how many others
  Ns worst = 0;                         // by how much, at most
  bool any() const { return worst > 0; }
};
Contradiction find_contradiction(const ClockBounds& bounds);

// Lets bounds go through other domains: x to z by x to y and y to z. Where that is too much work,
// only those to and from domain 0 in the first bin. Returns a contradiction that shows only so; the
// bounds are of no use then.
Contradiction close_bounds(ClockBounds& bounds);

// 200 parts per million of a length, for each of two clocks; and a little for measuring it with
// such clocks.
constexpr Ns drift_of_one(Ns length) { return length / 4'975 + 1; }
constexpr Ns drift_of_two(Ns length) { return length / 2'487 + 1; }

}  // namespace commlens
