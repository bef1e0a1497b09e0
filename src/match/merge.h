// Pieces of one recording, put together.
#pragma once

#include "model/job.h"

namespace commlens {

// From the first to the last thing recorded, on the recording's own clock.
Interval recorded_extent(const Recording& recording);

// Adds `piece` to `whole`: another file of the same process's recording. GPU activities that stand
// in both are kept once and counted in the notes.
void merge_recording(Recording& whole, const Recording& piece);

// Keeps of a rank what analyses read, and lets go of the recorded columns: three quarters of the
// memory. A folder of a thousand ranks would not fit otherwise.
void let_go_of_columns(RankTimeline& rank);

}  // namespace commlens
