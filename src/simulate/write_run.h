// A whole simulated run on disk: what `commlens simulate -o FOLDER` does.
#pragma once

#include <string>

#include "simulate/job.h"
#include "simulate/kineto_writer.h"

namespace commlens::simulate {

// Makes the folder (and those above it) if it is missing, and writes `rank-<r>.json` for every rank
// and `truth.json`. Throws Error(usage) for an impossible spec or a folder that cannot be made,
// before any work.
void write_run(const JobSpec& spec, const std::string& folder, const KinetoOptions& options = {});

}  // namespace commlens::simulate
