// Sums of what an input says, which may be anything.
#pragma once

#include <cstdint>
#include <limits>

namespace commlens {

// Neither is negative. A sum that leaves 64 bits stays at the most that they hold.
inline std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

}  // namespace commlens
