// Puts what logs and dumps of a job say on the operations of its timelines.
#pragma once

#include <vector>

#include "model/job.h"
#include "model/measured.h"
#include "model/witness.h"

namespace commlens {

// `witnesses`: those that are no timelines. `measured`: what was measured without one, call by
// call.
Joined join_witnesses(const Job& job, const std::vector<Witness>& witnesses,
                      const std::vector<Measured>& measured);

}  // namespace commlens
