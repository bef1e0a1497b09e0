// Puts the ranks' work on one clock.
#pragma once

#include "model/job.h"

namespace commlens {

// Times of every rank's `work` become common times (Clocks::common). Once, before a Graph is made.
void place_on_common_time(Job& job);

}  // namespace commlens
