// Jobs in which one thing is otherwise, each small enough to work out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bare_job.h"
#include "base/error.h"
#include "simulate/change.h"
#include "simulate/fault_words.h"
#include "simulate/path_truth.h"
#include "simulate/truth.h"

namespace commlens::simulate {
namespace {

using Span = std::pair<Ns, Ns>;

std::vector<Span> activities(const SimulatedJob& job, std::size_t rank) {
  std::vector<Span> spans;
  for (const GpuEvent& event : job.ranks[rank].gpu) spans.emplace_back(event.start, event.end);
  return spans;
}

std::vector<Span> communications(const SimulatedJob& job, std::size_t rank) {
  std::vector<Span> spans;
  for (const GpuEvent& event : job.ranks[rank].gpu) {
    if (event.collective >= 0) spans.emplace_back(event.start, event.end);
  }
  return spans;
}

void expect_same(const SimulatedJob& a, const SimulatedJob& b) {
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank)
    EXPECT_EQ(activities(a, rank), activities(b, rank));
}

Ns window(const Scenario& scenario, const std::vector<Change>& changes) {
  return find_step_time(simulate_changed(scenario, changes)).window;
}

// The healthy two replicas of bare_job.h, in us: all-reduce of the mlp's gradients 2030-2060 under
// attention's backward, of the rest 3070-3090, optimizer until 3190, a copy until 3192.
const Scenario kHealthy{.spec = two_replicas()};

Scenario with(std::vector<Fault> faults, Ns end_jitter_ns = 0) {
  return {.spec = two_replicas(),
          .faults = {.list = std::move(faults), .end_jitter_ns = end_jitter_ns}};
}

TEST(Change, NoneIsTheJobItself) {
  const Scenario scenario = with({parse_slow("1:1.5"), parse_late("0:400")}, 3'000);
  expect_same(simulate_changed(scenario, {}), simulate(scenario.spec, scenario.faults));
}

TEST(Change, CommunicationIsFaster) {
  const Change twice{.speed_ppm = 2'000'000};
  const SimulatedJob job = simulate_changed(kHealthy, {twice});
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{2'030'000, 2'045'000}, {3'070'000, 3'080'000}}));
  EXPECT_EQ(find_step_time(job).window, 3'182'000);
  EXPECT_EQ(window(kHealthy, {{.speed_ppm = 500'000}}), 3'212'000);
  // Both together.
  EXPECT_EQ(window(kHealthy, {twice, twice}), 3'177'000);
}

TEST(Change, OnlyTheOperationsOfAKindAreFaster) {
  const auto faster = [](Change change) {
    change.speed_ppm = 2'000'000;
    return window(kHealthy, {change});
  };
  EXPECT_EQ(faster({.op = Op::all_reduce}), 3'182'000);
  EXPECT_EQ(faster({.op = Op::all_gather}), 3'192'000);
  EXPECT_EQ(faster({.op = Op::send}), 3'192'000);
  EXPECT_EQ(faster({.group = "DATA_PARALLEL_GROUP"}), 3'182'000);
  EXPECT_EQ(faster({.group = "TENSOR_MODEL_PARALLEL_GROUP"}), 3'192'000);
  EXPECT_EQ(faster({.between_hosts = true}), 3'192'000);
}

TEST(Change, LinksBetweenHosts) {
  Scenario apart = kHealthy;
  apart.spec.ranks_per_host = 1;
  EXPECT_EQ(window(apart, {{.between_hosts = true, .speed_ppm = 500'000}}), 3'212'000);
}

TEST(Change, AllOfAPairIsMeantByEitherName) {
  JobSpec spec = bare_job();
  spec.pp = spec.layers = 2;
  for (const Op op : {Op::send, Op::recv, Op::send_recv}) {
    const SimulatedJob job = simulate_changed({.spec = spec}, {{.op = op, .speed_ppm = 2'000'000}});
    for (const Collective& pair : job.collectives) {
      // 10 us + 8388608 B / 100 GB/s = 93887 ns, rounded up.
      EXPECT_EQ(pair.transfer, 46'943);
    }
  }
}

TEST(Change, LateExitsAreTransferToo) {
  const Scenario scenario = with({}, 3'000);
  const SimulatedJob before = simulate(scenario.spec, scenario.faults);
  const SimulatedJob after = simulate_changed(scenario, {{.speed_ppm = 2'000'000}});
  for (std::size_t i = 0; i < before.collectives.size(); ++i) {
    for (std::size_t member = 0; member < 2; ++member) {
      EXPECT_EQ(after.collectives[i].members[member].late_exit,
                before.collectives[i].members[member].late_exit / 2);
    }
  }
}

// Rank 1: forward 70-1570, the mlp's backward until 3010, attention's until 4570, optimizer 150,
// copy 2. Rank 0 does not wait for it any more.
TEST(Change, ARemovedOperationMakesNobodyWait) {
  const Change removed{.kind = ChangeKind::remove, .op = Op::all_reduce};
  const SimulatedJob job = simulate_changed(with({parse_slow("1:1.5")}), {removed});
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{2'030'000, 2'030'000}, {3'070'000, 3'070'000}}));
  EXPECT_EQ(communications(job, 1),
            (std::vector<Span>{{3'010'000, 3'010'000}, {4'570'000, 4'570'000}}));
  EXPECT_EQ(find_step_time(job).window_of_rank, (std::vector<Ns>{3'172'000, 4'722'000}));
  const Truth truth = find_truth(job);
  EXPECT_EQ(truth.waits.total, 0);
  EXPECT_EQ(truth.ops.at(Op::all_reduce).transfer, 0);
  const PathTruth path = find_critical_path(job);
  EXPECT_EQ(path.sums, (PathTruth::Sums{4'650'000, 0, 0, 72'000}));
  EXPECT_EQ(path.rank_changes, 0);
}

TEST(Change, ARankLikeItsPeers) {
  const Scenario scenario = with({parse_slow("1:1.5"), parse_slow("0:1.2"), parse_late("1:300")});
  expect_same(simulate_changed(scenario, {{.kind = ChangeKind::like_peers, .rank = 1}}),
              simulate(scenario.spec, {.list = {parse_slow("0:1.2"), parse_late("1:300")}}));
}

TEST(Change, HostsOnTime) {
  const Scenario scenario = with({parse_slow("1:1.5"), parse_late("0:200"), parse_late("1:300")});
  expect_same(simulate_changed(scenario, {{.kind = ChangeKind::hosts_on_time}}),
              simulate(scenario.spec, {.list = {parse_slow("1:1.5")}}));
}

// Launches that bind everywhere, a late host and input to wait for: none of it is left, and the
// steps adjoin.
TEST(Change, NothingWaitsForAHost) {
  Scenario scenario = with({parse_late("1:300")});
  scenario.spec.steps = 2;
  const SimulatedJob bare = simulate(scenario.spec);
  scenario.spec.launch_ns = 2'000'000;
  scenario.spec.range_ns = scenario.spec.event_call_ns = 700;
  scenario.spec.launch_latency_ns = 5'000;
  scenario.spec.input_ns = 400'000;
  EXPECT_GT(window(scenario, {}), 2 * 3'192'000);
  const SimulatedJob job = simulate_changed(scenario, {{.kind = ChangeKind::no_host}});
  expect_same(job, bare);
  EXPECT_EQ(find_step_time(job).window, 2 * 3'192'000);
  EXPECT_EQ(find_step_time(job).pace, 3'192'000);
}

TEST(Change, LargerBuckets) {
  const SimulatedJob job =
      simulate_changed(kHealthy, {{.kind = ChangeKind::bucket, .bytes = 3'000'000}});
  // 10 us + 3 MB / 100 GB/s.
  EXPECT_EQ(communications(job, 0), (std::vector<Span>{{3'070'000, 3'110'000}}));
  EXPECT_EQ(find_step_time(job).window, 3'212'000);
  EXPECT_EQ(window(kHealthy,
                   {{.speed_ppm = 2'000'000}, {.kind = ChangeKind::bucket, .bytes = 3'000'000}}),
            3'192'000);
}

struct Durations {
  std::map<int, std::vector<Ns>> gpu;  // by stream; of communications the transfer
  std::vector<Ns> host;                // calls that launch compute
};

Durations durations_without_buckets(const SimulatedJob& job, std::size_t rank) {
  Durations found;
  for (const GpuEvent& event : job.ranks[rank].gpu) {
    if (event.stream == 24) continue;
    const bool comm = event.collective >= 0;
    found.gpu[event.stream].push_back(
        comm ? job.collectives[static_cast<std::size_t>(event.collective)].transfer
             : event.end - event.start);
    if (comm) {
      const Collective& whole = job.collectives[static_cast<std::size_t>(event.collective)];
      found.gpu[event.stream].push_back(
          whole.members[static_cast<std::size_t>(event.member)].late_exit);
    }
  }
  for (const RuntimeCall& call : job.ranks[rank].calls) {
    if (call.kind == CallKind::launch) found.host.push_back(call.end - call.start);
  }
  return found;
}

TEST(Change, OtherBucketsLeaveAllElseAsItWas) {
  const Scenario scenario{
      .spec = {.dp = 2, .tp = 2, .pp = 2, .layers = 4, .steps = 2, .microbatches = 2, .noise = 0.1},
      .faults = {.list = {parse_slow("1:1.5"), parse_late("2:500"), parse_slow_link("0-1:3")},
                 .end_jitter_ns = 3'000}};
  const SimulatedJob before = simulate(scenario.spec, scenario.faults);
  for (const std::int64_t bytes : {7'000'000, 60'000'000}) {
    const SimulatedJob after =
        simulate_changed(scenario, {{.kind = ChangeKind::bucket, .bytes = bytes}});
    EXPECT_NE(after.collectives.size(), before.collectives.size());
    for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
      const Durations a = durations_without_buckets(before, rank);
      const Durations b = durations_without_buckets(after, rank);
      EXPECT_EQ(a.gpu, b.gpu);
      EXPECT_EQ(a.host, b.host);
    }
  }
  expect_same(simulate_changed(scenario,
                               {{.kind = ChangeKind::bucket, .bytes = scenario.spec.bucket_bytes}}),
              before);
}

TEST(Change, RefusesWhatCannotBe) {
  EXPECT_THROW(window(kHealthy, {{.speed_ppm = 0}}), Error);
  EXPECT_THROW(window(kHealthy, {{.kind = ChangeKind::like_peers, .rank = 2}}), Error);
  EXPECT_THROW(window(kHealthy, {{.kind = ChangeKind::bucket, .bytes = 0}}), Error);
}

TEST(StepTime, IsTheDistanceBetweenSteps) {
  JobSpec spec = two_replicas();
  spec.steps = 3;
  spec.input_ns = 8'000;
  const StepTime time = find_step_time(simulate(spec));
  EXPECT_EQ(time.steps, 3);
  EXPECT_EQ(time.pace, 3'200'000);
  EXPECT_EQ(time.window, 3 * 3'192'000 + 2 * 8'000);
  EXPECT_EQ(time.pace_of_rank, (std::vector<Ns>{3'200'000, 3'200'000}));
  // Of a single step there is no distance.
  EXPECT_EQ(find_step_time(simulate(two_replicas())).pace, 3'192'000);
}

}  // namespace
}  // namespace commlens::simulate
