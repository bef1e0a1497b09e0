// Which communications of different ranks are one operation.
#pragma once

#include "model/job.h"

namespace commlens {

// From the ranks' communications (DeviceTimeline::comm, groups, peers). Nothing of the job changes.
// The result does not depend on the order in which ranks were read.
Matching match_collectives(const Job& job);

}  // namespace commlens
