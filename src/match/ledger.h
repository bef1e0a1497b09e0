// The ledger of a job: its step time, split without remainder.
#pragma once

#include "model/job.h"
#include "model/rates.h"

namespace commlens {

// Needs the windows' figures of every rank, and what relates the ranks where that is known. Throws
// Error(usage) where `rates` names a group that the job does not have.
Ledger find_ledger(const Job& job, const RateOptions& rates);

}  // namespace commlens
