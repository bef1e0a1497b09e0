#include "simulate/profile.h"

#include <algorithm>

#include "simulate/prng.h"

namespace commlens::simulate {
namespace {

constexpr std::int64_t kFirstPid = 40'000;
constexpr std::uint64_t kProcessSeq = 6;  // purpose of a random stream

// The process id of rank 0. Another job has others, so that nobody takes two jobs' traces for
// pieces of one recording.
std::int64_t first_process(const JobSpec& spec) {
  std::uint64_t hash = spec.seed;
  for (const std::int64_t part :
       {std::int64_t{spec.dp}, std::int64_t{spec.tp}, std::int64_t{spec.pp},
        std::int64_t{spec.layers}, std::int64_t{spec.steps}, std::int64_t{spec.microbatches},
        std::int64_t{spec.fsdp ? 1 : 0}, std::int64_t{spec.moe ? 1 : 0}, spec.bucket_bytes,
        spec.layer_bytes}) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29U;
  }
  return kFirstPid + static_cast<std::int64_t>(hash % 400) * 5000;
}

}  // namespace

std::string host_name(int host) { return "node-" + std::to_string(host); }

Profile::Profile(const SimulatedJob& job, int rank, const RecordOptions& options)
    : job_(job),
      trace_(job.ranks[static_cast<std::size_t>(rank)]),
      options_(options),
      rank_(rank),
      process_(first_process(job.spec) + rank) {
  if (options_.seq == SeqKind::process) count_operations();
}

// Where hosts are to stay unknown, every process sees one GPU, its own.
int Profile::device() const {
  return options_.hosts ? job_.layout.places[static_cast<std::size_t>(rank_)].device : 0;
}

// More than eight are more than hosts have, but every rank needs its own.
int Profile::devices() const {
  return options_.hosts ? std::min(job_.spec.ranks_per_host, std::max(8, device() + 1)) : 1;
}

std::string Profile::host() const {
  return options_.hosts ? host_name(job_.layout.places[static_cast<std::size_t>(rank_)].host)
                        : std::string();
}

// Processes did different things before the window, so their counters stand at different numbers.
void Profile::count_operations() {
  constexpr std::int64_t kMostBefore = 8;
  std::int64_t seq =
      Prng(job_.spec.seed, kProcessSeq, static_cast<std::uint64_t>(rank_)).below(kMostBefore);
  for (const HostRange& range : trace_.ranges) {
    if (range.kind == RangeKind::record_comms) process_seq_[range.collective] = ++seq;
  }
}

CommsRecord Profile::comms(int collective, int member) const {
  const Collective& whole = job_.collectives[static_cast<std::size_t>(collective)];
  const auto index = static_cast<std::size_t>(member);
  return {.job = job_,
          .collective = whole,
          .member = whole.members[index],
          .index = index,
          .with_seq = options_.seq != SeqKind::none,
          .seq = options_.seq == SeqKind::process ? process_seq_.at(collective)
                                                  : whole.members[index].seq};
}

std::vector<GpuStep> Profile::gpu_steps() const {
  std::map<std::pair<int, int>, std::pair<Ns, Ns>> spans;  // by step, stream
  for (std::size_t i = 0; i < trace_.gpu.size(); ++i) {
    const GpuEvent& event = trace_.gpu[i];
    if (event.step < 0 || !kept_activity(i)) continue;
    const auto [found, fresh] =
        spans.try_emplace({event.step, event.stream}, event.start, event.end);
    found->second.first = std::min(found->second.first, event.start);
    found->second.second = std::max(found->second.second, event.end);
  }
  std::vector<int> ranges;  // of the steps
  for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
    if (trace_.ranges[i].kind == RangeKind::step) ranges.push_back(static_cast<int>(i));
  }
  std::vector<GpuStep> steps;
  for (const auto& [key, span] : spans) {
    steps.push_back({.range = ranges[static_cast<std::size_t>(key.first)],
                     .stream = key.second,
                     .span = own(span.first, span.second)});
  }
  return steps;
}

std::set<int> Profile::streams() const {
  std::set<int> streams;
  for (const GpuEvent& event : trace_.gpu) streams.insert(event.stream);
  return streams;
}

Interval Profile::span() const {
  Ns last = 0;
  for (const GpuEvent& event : trace_.gpu) last = std::max(last, event.end);
  for (const Step& step : trace_.steps) last = std::max(last, step.end);
  return own(std::max(Ns{0}, trace_.opens), last);
}

}  // namespace commlens::simulate
