// The tracks of one rank's GPU (or of its host, where communication runs there):
//
//   rank 3 (node-a, GPU 0)
//     steps                        |  step 12              |  step 13           |
//     stream 7: compute, memory     ### ##### ####  ######
//     stream 24: communication        |= all_reduce (hidden 97 %) =| |= all_gather (exposed 95 %)
//     =| stream 24: communication (2)           |= what overlaps the one above =| exposed
//     communication                                       |=== exposed ===|
//
// Every activity is one slice on one track; none is cut, none is dropped.
#pragma once

#include <cstdint>

#include "model/job.h"
#include "report/timeline_names.h"
#include "report/timeline_out.h"
#include "report/timeline_placement.h"

namespace commlens {

// One process of the timeline.
struct TimelineProcess {
  const RankTimeline& rank;
  const DeviceTimeline& device;
  const Placement& place;
  std::int64_t id = 0;
  bool clip_to_window = false;  // only what meets the window of the device's breakdown
};

void write_device_tracks(const TimelineProcess& process, RankNames& names, TimelineOut& out);

}  // namespace commlens
