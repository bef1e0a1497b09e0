// Which records of different ranks are one call, and what their durations say of waiting.
#pragma once

#include "model/measured_job.h"

namespace commlens {

// Fills everything of the job but its files.
void match_measured(MeasuredJob& job);

}  // namespace commlens
