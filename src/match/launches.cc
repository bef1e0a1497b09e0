#include "match/launches.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace commlens {

LaunchIndex::LaunchIndex(const Launches& launches) : launches_(launches) {
  const auto& ids = launches.correlation;
  if (std::is_sorted(ids.begin(), ids.end())) return;
  order_.resize(ids.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::stable_sort(order_.begin(), order_.end(),
                   [&ids](std::uint32_t a, std::uint32_t b) { return ids[a] < ids[b]; });
}

std::optional<std::size_t> LaunchIndex::find(std::uint64_t correlation, Ns activity_start) const {
  if (correlation == 0) return std::nullopt;
  const auto row = [this](std::size_t i) { return order_.empty() ? i : order_[i]; };
  // First position whose correlation is not smaller.
  std::size_t low = 0;
  std::size_t high = launches_.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (launches_.correlation[row(middle)] < correlation) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::optional<std::size_t> best;
  const auto distance = [&](std::size_t r) {
    return std::llabs(launches_.start[r] - activity_start);
  };
  for (; low < launches_.size() && launches_.correlation[row(low)] == correlation; ++low) {
    if (!best || distance(row(low)) <= distance(*best)) best = row(low);
  }
  return best;
}

}  // namespace commlens
