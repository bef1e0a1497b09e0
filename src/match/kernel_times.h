// How long a rank's compute kernels take, by name.
#pragma once

#include <vector>

#include "model/job.h"

namespace commlens {

class KernelTimes {
 public:
  explicit KernelTimes(std::size_t names) : sums_(names) {}

  void add(StringId name, Ns length) {
    Sum& sum = sums_[name.index()];
    ++sum.count;
    sum.total += length;
  }

  // Those that make up most of the time, the longest first: no more than kMost, and none below
  // 0.5 % of all of it.
  std::vector<KernelTime> most(const StringPool& names) const;

 private:
  static constexpr std::size_t kMost = 64;
  static constexpr Ns kSmallestShare = 200;  // one 200th
  struct Sum {
    std::int64_t count = 0;
    Ns total = 0;
  };
  std::vector<Sum> sums_;  // by StringId
};

}  // namespace commlens
