// A whole simulated run on disk: what `commlens simulate -o FOLDER` does.
#pragma once

#include <string>

#include "simulate/faults.h"

namespace commlens::simulate {

// Makes the folder (and those above it) if it is missing, and writes `rank-<r>.json` for every rank
// that has a trace, and `truth.json`. An earlier run's files are replaced; a folder with ranks that
// this job has not is refused, as readers would take them for part of it. Throws Error(usage) for
// that, for an impossible scenario and for a folder that cannot be made, before any work.
void write_run(const Scenario& scenario, const std::string& folder);

}  // namespace commlens::simulate
