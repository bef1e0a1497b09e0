// What every GPU activity of a rank had to wait for on that rank.
#pragma once

#include "model/job.h"

namespace commlens {

// Fills `rank.work`. Needs `classes`, `devices` and the recording's columns of activities, launches
// and synchronisations.
void find_dependencies(RankTimeline& rank);

}  // namespace commlens
