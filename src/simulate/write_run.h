// A whole simulated run on disk: what `commlens simulate -o FOLDER` does.
#pragma once

#include <string>

#include "simulate/job.h"
#include "simulate/kineto_writer.h"

namespace commlens::simulate {

// Makes the folder (and those above it) if it is missing, and writes `rank-<r>.json` for every rank
// and `truth.json`. An earlier run's files are replaced; a folder with ranks that this job has not
// is refused, as readers would take them for part of it. Throws Error(usage) for that, for an
// impossible spec and for a folder that cannot be made, before any work.
void write_run(const JobSpec& spec, const std::string& folder, const RecordOptions& options = {});

}  // namespace commlens::simulate
