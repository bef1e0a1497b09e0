// Problem: a rank computes longer than its peers. The same kernels taking longer each is a slow
// GPU; more or other kernels are more work. Method: count and total time by kernel name, of the few
// names that matter: these are kept for every rank to the end, whole names and all.
#include "match/kernel_times.h"

#include <algorithm>

namespace commlens {

std::vector<KernelTime> KernelTimes::most(const StringPool& names) const {
  Ns all = 0;
  for (const Sum& sum : sums_) all += sum.total;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i].total > 0 && sums_[i].total >= all / kSmallestShare) rows.push_back(i);
  }
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return sums_[a].total != sums_[b].total
               ? sums_[a].total > sums_[b].total
               : names.get(StringId::from(a)) < names.get(StringId::from(b));
  });
  if (rows.size() > kMost) rows.resize(kMost);
  std::vector<KernelTime> times;
  times.reserve(rows.size());
  for (const std::size_t row : rows) {
    times.push_back({.name = std::string(names.get(StringId::from(row))),
                     .count = sums_[row].count,
                     .total = sums_[row].total});
  }
  return times;
}

}  // namespace commlens
