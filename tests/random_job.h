// Jobs by chance, of all layouts, with work that may be nothing and hosts that may be slow.
#pragma once

#include "simulate/job.h"
#include "simulate/prng.h"

namespace commlens::simulate {

inline JobSpec random_job(std::uint64_t seed) {
  Prng chance(seed);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(chance.below(high - low + 1));
  };
  JobSpec spec{.dp = pick(1, 4), .tp = pick(1, 3), .pp = pick(1, 4)};
  spec.ranks_per_host = pick(1, 8);
  spec.layers = spec.pp + pick(0, 3);
  spec.steps = pick(1, 3);
  spec.microbatches = pick(1, 6);
  spec.fsdp = spec.dp > 1 && pick(0, 2) == 0;
  spec.moe = spec.dp > 1 && pick(0, 2) == 0;
  if (spec.moe && spec.dp == 4 && pick(0, 1) == 0) spec.expert_ranks = 2;
  spec.layer_forward_ns = pick(0, 2'000'000);
  spec.layer_bytes = pick(2, 80'000'000);
  spec.bucket_bytes = spec.layer_bytes / pick(1, 9) + 2;
  spec.activation_bytes = pick(2, 20'000'000);
  spec.launch_ns = pick(0, 60'000);  // up to hosts that are slower than their GPUs
  spec.noise = pick(0, 5) / 10.0;
  spec.moe_imbalance = pick(0, 5) / 10.0;
  spec.seed = chance.next();
  return spec;
}

}  // namespace commlens::simulate
