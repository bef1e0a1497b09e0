// One rank of a simulated job as the recording that reading its Kineto file gives, without writing
// the file: thousands of jobs fit into one process.
#pragma once

#include "model/trace.h"
#include "simulate/record_options.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {

// Equal to reading what write_kineto writes, but for `path` ("rank-3.json") and `stored_bytes` (0).
// `events` counts the entries that the file would have.
Recording record_rank(const SimulatedJob& job, int rank, const RecordOptions& options = {});

}  // namespace commlens::simulate
