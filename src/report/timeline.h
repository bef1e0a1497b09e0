// One timeline of all ranks, in a format that ui.perfetto.dev opens.
#pragma once

#include <vector>

#include "base/sink.h"
#include "model/job.h"
#include "report/timeline_out.h"

namespace commlens {

struct TimelineOptions {
  TimelineFormat format = TimelineFormat::chrome_json;
  // Only what meets the device's `breakdown.window`: whole slices, not cut. Exposed spans are cut,
  // so that their total is the window's exposed communication.
  bool clip_to_window = false;
  // Added to a rank's times to bring them to a common clock, by index into Job::ranks. Empty: none.
  std::vector<Ns> clock_offsets = {};
};

// The job is classified, and the figures of its devices' windows are there.
void write_timeline(const Job& job, const TimelineOptions& options, Sink& sink);

}  // namespace commlens
