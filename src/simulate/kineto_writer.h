// Writes one rank of a simulated job as the PyTorch profiler (Kineto, torch 2.7 and later) would
// have recorded it.
#pragma once

#include <string>

#include "base/sink.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {

// What the recorder was told to record, and how new it is.
struct KinetoOptions {
  bool sync_records = true;  // cuda_sync events (enable_cuda_sync_events); off in most real traces
  bool flows = true;         // ac2g arrows from launches to GPU activities
  bool kernel_seq = false;   // "Seq" and "Comms Id" on kernels too, as from torch 2.12 on
  bool host_name = true;     // the top-level "host_name", by which readers know who shares a clock
};

// baseTimeNanoseconds of all ranks, and the instant 0 of a job: event times are relative to the
// former.
inline constexpr Ns kBaseNs = 1'759'300'074'000'000'000;
inline constexpr Ns kJobEpochNs = kBaseNs + 3'216'540'987'654'321;

std::string host_name(int host);  // "node-0"

void write_kineto(const SimulatedJob& job, int rank, Sink& sink, const KinetoOptions& options = {});

}  // namespace commlens::simulate
