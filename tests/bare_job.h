// Jobs whose every instant can be worked out by hand.
#pragma once

#include "simulate/job.h"

namespace commlens::simulate {

// Nothing but the work itself: no noise, no overheads, 100 GB/s with 10 us to start.
inline JobSpec bare_job() {
  JobSpec spec{.dp = 1, .layers = 1, .steps = 1};
  spec.noise = spec.moe_imbalance = 0;
  spec.embedding_ns = spec.loss_ns = 0;
  spec.launch_latency_ns = spec.kernel_gap_ns = spec.event_latency_ns = 0;
  spec.launch_ns = spec.event_call_ns = spec.range_ns = spec.input_ns = 0;
  spec.layer_forward_ns = 1'000'000;
  spec.optimizer_ns = 100'000;
  spec.intra = spec.inter = {.alpha_ns = 10'000, .gbs = 100.0};
  return spec;
}

// dp 2, one layer: copies 0-70; forward 70-1070; backward of the mlp 1070-2030, of attention
// 2030-3070 (us).
inline JobSpec two_replicas() {
  JobSpec spec = bare_job();
  spec.dp = 2;
  spec.layer_bytes = 3'000'000;
  spec.bucket_bytes = 2'000'000;
  return spec;
}

}  // namespace commlens::simulate
