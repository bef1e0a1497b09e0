// Which device a stream belongs to, among those of a rank.
#pragma once

#include <algorithm>
#include <vector>

#include "model/job.h"

namespace commlens {

// By StreamId: the row of the rank's devices. Every stream's device must be there, as
// classification leaves them.
inline std::vector<std::size_t> device_of_stream(const RankTimeline& rank) {
  std::vector<std::size_t> rows;
  rows.reserve(rank.recording.streams.size());
  for (const Stream& stream : rank.recording.streams) {
    const auto device = std::partition_point(
        rank.devices.begin(), rank.devices.end(),
        [&stream](const DeviceTimeline& row) { return row.device < stream.device; });
    rows.push_back(static_cast<std::size_t>(device - rank.devices.begin()));
  }
  return rows;
}

}  // namespace commlens
