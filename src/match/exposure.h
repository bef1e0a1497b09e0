// What communication costs inside a window: the five buckets, and each communication's share.
#pragma once

#include <vector>

#include "model/job.h"

namespace commlens {

struct WindowFigures {
  Breakdown breakdown;
  std::vector<Exposure> exposures;  // by communication, as DeviceTimeline::comm
};

// Answers for many windows of one device, each at the cost of what lies in it.
class ExposureFigures {
 public:
  explicit ExposureFigures(const DeviceTimeline& device);
  // `number` is only passed on.
  StepFigures of(std::int64_t number, Interval window) const;

 private:
  const DeviceTimeline& device_;
  std::vector<Ns> latest_end_;  // by communication: of it and all before it
};

// The figures of one window of one device. Invariants: the buckets sum to the window; hidden +
// exposed of an event is its busy time; the exclusive shares sum to the exposed communication.
WindowFigures window_figures(const DeviceTimeline& device, Interval window);

}  // namespace commlens
