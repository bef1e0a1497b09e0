// The description of a training job to simulate: what a user of `commlens simulate` can say.
//
// All times are integer nanoseconds, all sizes bytes, bandwidths GB/s of 1e9. Defaults are those of
// a healthy job on one host of eight current GPUs.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace commlens::simulate {

// What one path between GPUs costs: a message of b bytes takes alpha + b / bandwidth.
struct Link {
  Ns alpha_ns = 10'000;
  double gbs = 150.0;
};

struct JobSpec {
  // Layout: world = dp * tp * pp ranks; rank = (stage * dp + replica) * tp + slice, that is:
  // tensor-parallel ranks are neighbours, then data-parallel ones, then pipeline stages.
  int dp = 2;
  int tp = 1;
  int pp = 1;
  int ranks_per_host = 8;  // rank r runs on host r / ranks_per_host

  // What a step does.
  int layers = 8;  // of the whole model; stages get them as evenly as possible
  int steps = 4;
  int microbatches = 1;  // forward and backward passes a step; with pp > 1 in 1F1B order
  bool fsdp =
      false;  // shard parameters over dp: all-gather and reduce-scatter instead of all-reduce
  bool moe =
      false;  // the second half of each layer is a mixture of experts: all-to-all there and back
  int expert_ranks = 0;  // ranks that share the experts; divides dp; 0: all of dp

  // Sizes, as one rank has them (after the split over tp). Elements are bf16.
  std::int64_t layer_bytes =
      50'000'000;  // parameters of a layer: a third attention, two thirds the rest
  std::int64_t activation_bytes = 8'388'608;  // of one microbatch between two layers
  std::int64_t bucket_bytes = 25'000'000;     // gradients that DDP collects before it sends them
  std::int64_t hidden = 2048;  // elements of one token: the row that all-to-all splits count in
  int top_k = 2;               // experts that each token is sent to

  // Times on the GPU.
  // One layer, one microbatch, no communication; backward is twice that.
  Ns layer_forward_ns = 1'200'000;
  Ns embedding_ns = 60'000;      // first stage, each way
  Ns loss_ns = 200'000;          // last stage, each way
  Ns optimizer_ns = 900'000;     // once a step
  Ns launch_latency_ns = 2'000;  // from the end of a launch call to the earliest start on the GPU
  Ns kernel_gap_ns = 800;        // between kernels that are queued behind each other on a stream
  Ns event_latency_ns = 1'500;   // from the end of work on a stream to what waits on another

  // Times on the host thread.
  Ns launch_ns = 4'500;    // launching a kernel or copy; three halves of it for a collective
  Ns event_call_ns = 900;  // recording an event, making a stream wait for one
  Ns range_ns = 700;       // entering or leaving an operator
  Ns input_ns = 400'000;   // waiting for the next batch of data, each step

  // Links.
  Link intra{};                                 // inside a host
  Link inter{.alpha_ns = 25'000, .gbs = 40.0};  // between hosts; a group on several hosts uses it

  // Chance.
  std::uint64_t seed = 1;
  double noise = 0.02;         // relative standard deviation of every duration; 0: none
  double moe_imbalance = 0.1;  // relative standard deviation of the experts' popularity

  int first_step = 10;  // N of the first ProfilerStep#N

  int world() const { return dp * tp * pp; }
  int expert_group() const { return expert_ranks == 0 ? dp : expert_ranks; }
  // Throws Error(usage) with one sentence when no job can be like this.
  void validate() const;
};

inline constexpr int kMaxRanks = 4096;

// `noise` and the like as whole millionths: what the simulation computes with.
std::int64_t to_ppm(double fraction);

}  // namespace commlens::simulate
