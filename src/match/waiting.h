// Who waited for whom, and where each wait came from.
#pragma once

#include "model/job.h"

namespace commlens {

// From `job.matching` and `job.clocks`. Nothing of the job changes. The result is the same for any
// number of threads.
Waits find_waits(const Job& job, unsigned threads = 1);

}  // namespace commlens
