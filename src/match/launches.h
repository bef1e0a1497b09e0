// From a GPU activity to the call on the host that launched it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/trace.h"

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
  const Launches& launches_;
  std::vector<std::uint32_t> order_;  // rows by correlation; empty where they come sorted already
};

}  // namespace commlens
