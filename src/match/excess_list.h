// What late ranks had more of, for millions of waits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "match/comparison.h"

namespace commlens {

// A list of Excess in half its bytes: most are shorter than the 4 s that 32 bits hold, and those
// that are not stand aside. Several threads may set different rows at once.
class ExcessList {
 public:
  explicit ExcessList(std::size_t size) : rows_(size) {}

  void set(std::size_t row, const Excess& excess) {
    const std::array<Ns, 5> times = excess.weights();
    if (*std::max_element(times.begin(), times.end()) > kLongest || excess.since > kLastSince) {
      const std::lock_guard lock(guard_);
      aside_[row] = excess;
      rows_[row].aside = true;
      return;
    }
    Row& kept = rows_[row];
    for (std::size_t i = 0; i < times.size(); ++i)
      kept.times[i] = static_cast<std::uint32_t>(times[i]);
    kept.unequal = excess.unequal;
    kept.since = excess.since & kLastSince;
  }

  Excess operator[](std::size_t row) const {
    const Row& kept = rows_[row];
    if (kept.aside) return aside_.at(row);
    return {.compute = kept.times[0],
            .host = kept.times[1],
            .waiting = kept.times[2],
            .transfer = kept.times[3],
            .unknown = kept.times[4],
            .unequal = kept.unequal != 0,
            .since = kept.since};
  }

 private:
  static constexpr Ns kLongest = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kLastSince = (std::uint32_t{1} << 30U) - 1;
  struct Row {
    std::array<std::uint32_t, 5> times{};
    std::uint32_t aside : 1 = 0;
    std::uint32_t unequal : 1 = 0;
    std::uint32_t since : 30 = 0;
  };
  static_assert(sizeof(Row) == 24);

  std::vector<Row> rows_;
  std::unordered_map<std::size_t, Excess> aside_;
  std::mutex guard_;
};

}  // namespace commlens
