// Who waited for whom, and where each wait came from.
#pragma once

#include "model/job.h"

namespace commlens {

// From `job.matching` and `job.clocks`. Nothing of the job changes.
Waits find_waits(const Job& job);

}  // namespace commlens
