// What relating many ranks costs: matching, clocks, waiting with origins, stragglers, on a made
// job, on two threads.
//
//   build/release/bin/ranks [RANKS ...]      default: 256 512 1024, each with 2,000 operations a
//   rank
//
// Each rank is in two groups of 32: neighbours, and every 32nd; 8 ranks share a host, hosts' clocks
// differ. Operations have the framework's numbers. One row a size: seconds a stage, and peak
// memory.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "match/clocks.h"
#include "match/collectives.h"
#include "match/stragglers.h"
#include "match/waiting.h"

namespace {

using namespace commlens;

constexpr std::size_t kOperations = 2000;  // of a rank
constexpr std::size_t kGroup = 32;
constexpr std::size_t kOnHost = 8;
constexpr Ns kTransfer = 50'000;

class Maker {
 public:
  explicit Maker(std::size_t ranks) : ranks_(ranks), ready_(ranks, 0), compute_(ranks, 0) {
    for (std::size_t rank = 0; rank < ranks; ++rank) add_rank(rank);
  }
  Job job() {
    for (std::size_t i = 0; i < kOperations; ++i) {
      for (std::size_t group = 0; group < ranks_ / kGroup; ++group) meet(group, i % 2 == 0);
    }
    return std::move(job_);
  }

 private:
  std::size_t member(std::size_t group, bool neighbours, std::size_t i) const {
    return neighbours ? group * kGroup + i : group + i * (ranks_ / kGroup);
  }

  void add_rank(std::size_t rank) {
    RankTimeline& row = job_.ranks.emplace_back();
    row.rank = static_cast<std::int64_t>(rank);
    row.ready = true;
    row.host = "node" + std::to_string(rank / kOnHost);
    row.recording.clock = ClockBase::epoch;
    row.recording.clock_base =
        1'700'000'000'000'000'000 + static_cast<Ns>(rank / kOnHost) * 137'000;
    row.devices.emplace_back();
    row.devices[0].device = 0;
    row.devices[0].launches_known = true;
    for (const bool neighbours : {true, false}) {
      GroupIdentity identity;
      identity.name = neighbours ? "1" : "2";
      identity.description = neighbours ? "mesh_tp" : "mesh_dp";
      identity.size = kGroup;
      const std::size_t group = neighbours ? rank / kGroup : rank % (ranks_ / kGroup);
      for (std::size_t i = 0; i < kGroup; ++i)
        identity.ranks.push_back(static_cast<int>(member(group, neighbours, i)));
      row.groups.push_back(std::move(identity));
    }
  }

  void meet(std::size_t group, bool neighbours) {
    Ns last = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::size_t rank = member(group, neighbours, i);
      const Ns work = 400'000 + static_cast<Ns>(random_() % 20'000) + (rank == 5 ? 100'000 : 0);
      ready_[rank] += work;
      compute_[rank] += work;
      last = std::max(last, ready_[rank]);
    }
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::size_t rank = member(group, neighbours, i);
      const Ns end = last + kTransfer + static_cast<Ns>(random_() % 3'000);
      DeviceTimeline& device = job_.ranks[rank].devices[0];
      CommOp op;
      op.time = {ready_[rank], end};
      op.op = Op::all_reduce;
      op.evidence = Evidence::metadata;
      op.group = neighbours ? 0 : 1;
      op.group_size = kGroup;
      op.bytes = 1 << 20;
      op.seq = static_cast<std::int64_t>(device.comm.size() / 2);
      op.source = device.comm.size();
      device.comm.push_back(op);
      device.own_at_start.push_back({.compute = compute_[rank]});
      device.own_at_end.push_back({.compute = compute_[rank]});
      device.exposures.push_back({.in_window = true, .starts_inside = true});
      device.extent.end = end;
      device.breakdown.window = device.extent;
      device.breakdown.compute_only = compute_[rank];
      ready_[rank] = end;
    }
  }

  std::size_t ranks_;
  std::vector<Ns> ready_;
  std::vector<Ns> compute_;
  std::mt19937 random_{1};
  Job job_;
};

template <class Work>
double seconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

void measure(std::size_t ranks) {
  Job job = Maker(ranks).job();
  const double made = peak_megabytes();
  const double match = seconds([&] { job.matching = match_collectives(job); });
  const double clocks = seconds([&] { job.clocks = relate_clocks(job); });
  const double waits = seconds([&] { job.waits = find_waits(job, 2); });
  const double who = seconds([&] { job.stragglers = find_stragglers(job); });
  std::printf("%6zu %9zu %8.2f %8.2f %8.2f %8.2f %8.2f %9.0f %9.0f  %s\n", ranks,
              ranks * kOperations, match, clocks, waits, who, match + clocks + waits + who, made,
              peak_megabytes(),
              job.stragglers.rows.empty() ? "nobody" : job.stragglers.rows[0].evidence.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::printf(
      " ranks    events    match   clocks    waits      who    total   made MB   peak MB\n");
  if (argc < 2) {
    for (const std::size_t ranks : {256, 512, 1024}) measure(ranks);
  }
  for (int i = 1; i < argc; ++i) measure(static_cast<std::size_t>(std::atoi(argv[i])));
  return 0;
}
