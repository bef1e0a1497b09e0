// Pieces of one recording, put together.
#pragma once

#include "model/trace.h"

namespace commlens {

// From the first to the last thing recorded, on the recording's own clock.
Interval recorded_extent(const Recording& recording);

// Adds `piece` to `whole`: another file of the same process's recording. GPU activities that stand
// in both are kept once and counted in the notes.
void merge_recording(Recording& whole, const Recording& piece);

}  // namespace commlens
