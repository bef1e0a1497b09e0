// Offsets between the ranks' clocks: bounds by causality, and an estimate inside them.
#pragma once

#include "model/job.h"

namespace commlens {

// From `job.matching`. Nothing of the job changes.
Clocks relate_clocks(const Job& job);

}  // namespace commlens
