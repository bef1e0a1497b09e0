// Writes one rank of a simulated job as the PyTorch profiler (Kineto, torch 2.7 and later) would
// have recorded it.
#pragma once

#include "base/sink.h"
#include "simulate/record_options.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {

void write_kineto(const SimulatedJob& job, int rank, Sink& sink, const RecordOptions& options = {});

}  // namespace commlens::simulate
