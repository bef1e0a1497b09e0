// Who makes the others wait, again and again.
#pragma once

#include "model/job.h"
#include "model/stragglers.h"

namespace commlens {

// From `job.waits` and what each rank did in each step. Nothing of the job changes.
Stragglers find_stragglers(const Job& job);

}  // namespace commlens
