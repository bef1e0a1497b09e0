#include "simulate/job.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "simulate/prng.h"

namespace commlens::simulate {
namespace {

[[noreturn]] void refuse_job(const std::string& sentence) {
  throw Error(ErrorKind::usage, "simulate: " + sentence);
}

void in_range(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  refuse_job(fmt::format("{} is {}, but must be from {} to {}", name, value, low, high));
}

// Not written as `value < low || value > high`: a NaN must be refused too.
void real_in_range(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  refuse_job(fmt::format("{} is {}, but must be from {} to {}", name, value, low, high));
}

// So that the times and bytes of the largest job still fit 64 bits.
constexpr std::int64_t kMaxBytes = 100'000'000'000;
constexpr std::int64_t kMaxActivationBytes = 10'000'000'000;
constexpr Ns kMaxNs = 10'000'000'000;

void validate_layout(const JobSpec& job) {
  in_range("dp", job.dp, 1, kMaxRanks);
  in_range("tp", job.tp, 1, kMaxRanks);
  in_range("pp", job.pp, 1, kMaxRanks);
  const std::int64_t ranks = std::int64_t{job.dp} * job.tp * job.pp;
  if (ranks > kMaxRanks) {
    refuse_job(
        fmt::format("dp * tp * pp is {} ranks, but at most {} can be simulated", ranks, kMaxRanks));
  }
  in_range("ranks per host", job.ranks_per_host, 1, kMaxRanks);
}

void validate_work(const JobSpec& job) {
  in_range("layers", job.layers, 1, 10'000);
  in_range("steps", job.steps, 1, 100'000);
  in_range("microbatches", job.microbatches, 1, 10'000);
  in_range("the first step", job.first_step, 0, 1'000'000'000);
  in_range("expert ranks", job.expert_ranks, 0, kMaxRanks);
  in_range("top k", job.top_k, 1, 64);
  if (job.layers < job.pp) {
    refuse_job(fmt::format("{} layers cannot fill {} pipeline stages", job.layers, job.pp));
  }
  if (job.fsdp && job.dp < 2) refuse_job("fsdp shards over dp, so dp must be at least 2");
  if (!job.moe) return;
  const int experts = job.expert_group();
  if (experts < 2)
    refuse_job("moe exchanges tokens over dp, so dp and expert ranks must be at least 2");
  if (job.dp % experts != 0) {
    refuse_job(fmt::format("{} expert ranks do not divide dp of {}", experts, job.dp));
  }
}

void validate_link(std::string_view name, const Link& link) {
  in_range(fmt::format("{} alpha in ns", name), link.alpha_ns, 0, kMaxNs);
  real_in_range(fmt::format("{} bandwidth in GB/s", name), link.gbs, 0.1, 1e6);
}

void validate_sizes(const JobSpec& job) {
  in_range("layer bytes", job.layer_bytes, 2, kMaxBytes);
  in_range("activation bytes", job.activation_bytes, 2, kMaxActivationBytes);
  in_range("bucket bytes", job.bucket_bytes, 2, kMaxBytes);
  in_range("hidden", job.hidden, 1, kMillion);
}

// Every pass of a layer on a rank costs about 20 kB of memory and 40 kB of trace: refuse_job before
// that is all there is.
void validate_volume(const JobSpec& job) {
  constexpr std::int64_t kMaxPasses = 250'000;
  constexpr double kPassesOfBucket = 0.1;  // a bucket costs a tenth of a pass
  // In floating point: the product of the largest values does not fit 64 bits.
  const double layers = 1.0 * job.dp * job.tp * job.layers * job.steps;
  const std::int64_t whole_buckets = job.layer_bytes / job.bucket_bytes;
  const auto buckets = static_cast<double>(whole_buckets);
  const double passes = layers * (job.microbatches + (job.fsdp ? 0.0 : buckets * kPassesOfBucket));
  if (passes <= static_cast<double>(kMaxPasses)) return;
  refuse_job(
      fmt::format("this job is about {:.0f} passes through a layer over all ranks and steps, but "
                  "at most {} can be "
                  "simulated; take fewer steps, layers, microbatches or ranks, or larger buckets",
                  passes, kMaxPasses));
}

void validate_times(const JobSpec& job) {
  in_range("layer forward time in ns", job.layer_forward_ns, 0, kMaxNs);
  in_range("embedding time in ns", job.embedding_ns, 0, kMaxNs);
  in_range("loss time in ns", job.loss_ns, 0, kMaxNs);
  in_range("optimizer time in ns", job.optimizer_ns, 0, kMaxNs);
  in_range("launch latency in ns", job.launch_latency_ns, 0, kMaxNs);
  in_range("kernel gap in ns", job.kernel_gap_ns, 0, kMaxNs);
  in_range("event latency in ns", job.event_latency_ns, 0, kMaxNs);
  in_range("launch time in ns", job.launch_ns, 0, kMaxNs);
  in_range("event call time in ns", job.event_call_ns, 0, kMaxNs);
  in_range("range time in ns", job.range_ns, 0, kMaxNs);
  in_range("input time in ns", job.input_ns, 0, kMaxNs);
}

}  // namespace

void JobSpec::validate() const {
  validate_layout(*this);
  validate_work(*this);
  validate_sizes(*this);
  validate_volume(*this);
  validate_times(*this);
  validate_link("intra-host", intra);
  validate_link("inter-host", inter);
  real_in_range("noise", noise, 0.0, 0.5);
  real_in_range("moe imbalance", moe_imbalance, 0.0, 0.5);
}

std::int64_t to_ppm(double fraction) {
  return static_cast<std::int64_t>(fraction * static_cast<double>(kMillion) + 0.5);
}

}  // namespace commlens::simulate
