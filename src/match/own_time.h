// A rank's own time: what it did before each of its communications, each nanosecond in one class.
#pragma once

#include <vector>

#include "model/job.h"

namespace commlens {

// Fills own_at_start, own_at_end, compute_under_comm and launches_known of every device. Needs the
// recording's launches. Returns, by device, the idle time during which nothing was queued for it:
// empty where launches are not known.
std::vector<IntervalSet> find_own_times(RankTimeline& rank);

}  // namespace commlens
