#include "match/launches.h"

#include <algorithm>
#include <numeric>

namespace commlens {

LaunchIndex::LaunchIndex(const Launches& launches) : launches_(launches) {
  const auto before = [&launches](std::size_t a, std::size_t b) {
    if (launches.correlation[a] != launches.correlation[b])
      return launches.correlation[a] < launches.correlation[b];
    return launches.start[a] < launches.start[b];
  };
  // The usual case: ascending, each once.
  std::size_t in_order = 1;
  for (std::uint64_t last = launches.size() > 0 ? launches.correlation[0] : 0;
       in_order < launches.size(); ++in_order) {
    const std::uint64_t next = launches.correlation[in_order];
    if (last >= next) break;
    last = next;
  }
  if (in_order >= launches.size()) return;
  order_.resize(launches.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::stable_sort(order_.begin(), order_.end(), before);
  for (std::size_t i = 1; i < order_.size() && !twins_; ++i)
    twins_ = launches.correlation[order_[i]] == launches.correlation[order_[i - 1]];
}

bool LaunchIndex::alone(std::size_t i) const {
  if (!twins_) return true;
  const std::uint64_t id = launches_.correlation[row(i)];
  const bool twin_before = i > 0 && launches_.correlation[row(i - 1)] == id;
  const bool twin_behind = i + 1 < launches_.size() && launches_.correlation[row(i + 1)] == id;
  return !twin_before && !twin_behind;
}

std::optional<std::size_t> LaunchIndex::find(std::uint64_t correlation, Ns activity_start) const {
  if (correlation == 0) return std::nullopt;
  // Activities come about in the order of their launches.
  const std::size_t near = std::min(last_ + 8, launches_.size());
  for (std::size_t i = last_; i < near; ++i) {
    if (launches_.correlation[row(i)] != correlation) continue;
    if (!alone(i)) break;
    last_ = i;
    return row(i);
  }
  // First position from which on (correlation, start) is above these.
  const auto after = [&](std::uint64_t id, Ns start) {
    std::size_t low = 0;
    std::size_t high = launches_.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const std::size_t r = row(middle);
      const bool above = launches_.correlation[r] != id ? launches_.correlation[r] > id
                                                        : launches_.start[r] > start;
      if (above) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  const auto has_it = [&](std::size_t i) {
    return i < launches_.size() && launches_.correlation[row(i)] == correlation;
  };
  // The nearest are the last that starts no later and the first that starts later; of launches at
  // one instant, and of two as near, the last in the file counts.
  const std::size_t next = after(correlation, activity_start);
  last_ = next;
  std::optional<std::size_t> best;
  if (next > 0 && has_it(next - 1)) best = row(next - 1);
  if (!has_it(next)) return best;
  const std::size_t later = row(after(correlation, launches_.start[row(next)]) - 1);
  if (!best) return later;
  const Ns before = activity_start - launches_.start[*best];
  const Ns behind = launches_.start[later] - activity_start;
  return before != behind ? (before < behind ? *best : later) : std::max(*best, later);
}

// Once for all that ask: a search costs more than all else that most of them do with a launch.
void find_launches(RankTimeline& rank) {
  const GpuActivities& gpu = rank.recording.gpu;
  const LaunchIndex index(rank.recording.launches);
  rank.launches.resize(gpu.size());
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const auto launch = index.find(gpu.correlation[i], gpu.start[i]);
    rank.launches[i] = launch ? static_cast<std::uint32_t>(*launch) : RankTimeline::kNoLaunchRow;
  }
}

}  // namespace commlens
