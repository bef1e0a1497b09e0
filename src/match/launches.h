// From a GPU activity to the call on the host that launched it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

// An index over a recording's launches; the recording must outlive it.
class LaunchIndex {
 public:
  explicit LaunchIndex(const Launches& launches);

  // The launch of an activity, as a row of the launches. One correlation may stand on several calls
  // (a profiler restarted within one file, ROCm's doubled rows): the nearest in time wins, then the
  // last. Nothing for none.
  std::optional<std::size_t> find(std::uint64_t correlation, Ns activity_start) const;

 private:
  std::size_t row(std::size_t i) const { return order_.empty() ? i : order_[i]; }
  const Launches& launches_;
  // Whether position `i` (in order of correlation) is the only launch of its correlation.
  bool alone(std::size_t i) const;

  bool twins_ = false;                // some correlation stands on several launches
  std::vector<std::uint32_t> order_;  // rows by correlation; empty where they come sorted already
  mutable std::size_t last_ = 0;      // where the last question was answered: the next is near
};

// Fills `rank.launches`.
void find_launches(RankTimeline& rank);

}  // namespace commlens
