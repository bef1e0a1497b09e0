// The critical path of simulated jobs: programs small enough to follow by hand, and properties of
// many random jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "bare_job.h"
#include "random_job.h"
#include "simulate/faults.h"
#include "simulate/path_truth.h"
#include "simulate/program.h"

namespace commlens::simulate {
namespace {

// Programs written down, instruction by instruction; all latencies are nothing until said.
class Script {
 public:
  explicit Script(int ranks, JobSpec spec = bare_job()) {
    spec.dp = ranks;
    plan_.spec = spec;
    plan_.layout = make_layout(spec);
    plan_.programs.resize(static_cast<std::size_t>(ranks));
  }
  JobSpec& spec() { return plan_.spec; }

  void work(int rank, Ns time) { add(rank, {.verb = Verb::work, .host = time}); }
  void kernel(int rank, Ns time, Ns launch = 0, int stream = kComputeStream) {
    add(rank, {.verb = Verb::kernel, .stream = stream, .host = launch, .gpu = time});
  }
  void copy(int rank, Ns time) {
    add(rank, {.verb = Verb::memcpy, .stream = kComputeStream, .name = 0, .gpu = time});
  }
  void record(int rank, int event, int stream = kComputeStream) {
    add(rank, {.verb = Verb::record_event, .stream = stream, .event = event});
  }
  void wait(int rank, int event, int stream) {
    add(rank, {.verb = Verb::wait_event, .stream = stream, .event = event});
  }
  void sync(int rank, int event) {
    add(rank, {.verb = Verb::sync_stream, .stream = kComputeStream, .event = event});
  }
  // All of them on their compute streams, behind what is there.
  Collective& together(const std::vector<int>& ranks, Ns transfer, Op op = Op::all_reduce) {
    const int index = static_cast<int>(plan_.collectives.size());
    Collective& made = plan_.collectives.emplace_back();
    made.op = op;
    made.group = 0;
    made.transfer = transfer;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      made.members.push_back({.rank = ranks[i], .op = op});
      add(ranks[i], {.verb = Verb::communicate,
                     .stream = kComputeStream,
                     .collective = index,
                     .member = static_cast<int>(i)});
    }
    return made;
  }
  PathTruth path() { return find_critical_path(run(plan_)); }

 private:
  void add(int rank, const Instruction& instruction) {
    plan_.programs[static_cast<std::size_t>(rank)].push_back(instruction);
  }
  Plan plan_;
};

using Sums = PathTruth::Sums;  // compute, transfer, host, memory

// A path in words: "1 compute 0-14, 0 transfer 14-16".
std::string words(const PathTruth& path) {
  constexpr const char* kNames[] = {"compute", "transfer", "host", "memory"};
  constexpr const char* kParts[] = {"host", "thread", "launch", "gap", "event"};
  std::string text;
  for (const PathSegment& segment : path.segments) {
    const bool host = segment.kind == PathClass::host;
    if (!text.empty()) text += ", ";
    text += std::to_string(segment.rank) + " " +
            (host ? kParts[static_cast<std::size_t>(segment.part)]
                  : kNames[static_cast<std::size_t>(segment.kind)]) +
            " " + std::to_string(segment.start) + "-" + std::to_string(segment.end);
  }
  return text;
}

// Worked case 7 of the methods: rank 1's 14 is handed on from group to group.
//
//   rank 0   [compute 0..10)[A waits .. 14..16)[C 16..19)
//   rank 1   [compute 0......14)[A 14..16)[D 16..19)
//   rank 2   [compute 0..10)[B 10..12)[C waits .. 16..19)[compute 19..23)
//   rank 3   [compute 0..10)[B 10..12)[D waits .. 16..19)
TEST(PathTruth, DelayHandedOn) {
  Script script(4);
  for (int rank = 0; rank < 4; ++rank) script.kernel(rank, rank == 1 ? 14 : 10);
  script.together({0, 1}, 2);
  script.together({2, 3}, 2);
  script.together({0, 2}, 3);
  script.together({1, 3}, 3);
  // All end at 19: rank 0's, the lowest.
  PathTruth path = script.path();
  EXPECT_EQ(words(path), "1 compute 0-14, 0 transfer 14-16, 0 transfer 16-19");
  EXPECT_EQ(path.window(), 19);
  EXPECT_EQ(path.sums, (Sums{14, 5, 0, 0}));
  EXPECT_EQ(path.rank_changes, 1);
  script.kernel(2, 4);
  path = script.path();
  EXPECT_EQ(words(path), "1 compute 0-14, 0 transfer 14-16, 2 transfer 16-19, 2 compute 19-23");
  EXPECT_EQ(path.sums, (Sums{18, 5, 0, 0}));
  EXPECT_EQ(path.by_rank, (std::vector<Sums>{{0, 2, 0, 0}, {14, 0, 0, 0}, {4, 3, 0, 0}, {}}));
  EXPECT_EQ(path.by_op, (std::map<std::pair<Op, int>, Ns>{{{Op::all_reduce, 0}, 5}}));
  EXPECT_EQ(path.rank_changes, 2);
}

TEST(PathTruth, LaunchesThatAreTooSlow) {
  Script script(1);
  script.spec().launch_latency_ns = 2;
  for (int i = 0; i < 3; ++i) script.kernel(0, 1, 5);
  // Calls end at 5, 10, 15; kernels start 2 later.
  EXPECT_EQ(words(script.path()), "0 thread 7-15, 0 launch 15-17, 0 compute 17-18");
}

TEST(PathTruth, KernelsThatAreQueued) {
  Script script(1);
  script.spec().launch_latency_ns = 2;
  script.spec().kernel_gap_ns = 1;
  for (int i = 0; i < 3; ++i) script.kernel(0, 20, 5);
  EXPECT_EQ(words(script.path()),
            "0 compute 7-27, 0 gap 27-28, 0 compute 28-48, 0 gap 48-49, 0 compute 49-69");
}

TEST(PathTruth, AHostThatWaitsForItsGpu) {
  Script script(1);
  script.spec().launch_latency_ns = 2;
  script.spec().event_latency_ns = 1;
  script.kernel(0, 20, 1);  // 3-23
  script.sync(0, 0);        // until 24
  script.work(0, 3);
  script.kernel(0, 10, 1);  // launched at 28
  const PathTruth path = script.path();
  EXPECT_EQ(words(path),
            "0 compute 3-23, 0 event 23-24, 0 thread 24-28, 0 launch 28-30, 0 compute 30-40");
  EXPECT_EQ(path.sums, (Sums{30, 0, 7, 0}));
}

TEST(PathTruth, ASynchronisationThatHeldNobodyUp) {
  Script script(1);
  script.kernel(0, 20);  // 0-20
  script.work(0, 25);
  script.sync(0, 0);
  script.kernel(0, 10);  // 25-35
  EXPECT_EQ(words(script.path()), "0 thread 0-25, 0 compute 25-35");
}

TEST(PathTruth, AnEventOfAnotherStream) {
  Script script(1);
  script.spec().event_latency_ns = 2;
  script.spec().kernel_gap_ns = 1;
  script.kernel(0, 10);               // 0-10
  script.record(0, 0);                // 10
  script.kernel(0, 5, 0, 24);         // 0-5
  script.wait(0, 0, 24);              // 12
  script.kernel(0, 30, 0, 24);        // 12-42
  script.record(0, 1, 24);            // 42
  script.kernel(0, 7);                // 11-18
  script.wait(0, 1, kComputeStream);  // 44
  script.copy(0, 3);                  // 44-47
  const PathTruth path = script.path();
  EXPECT_EQ(words(path),
            "0 compute 0-10, 0 event 10-12, 0 compute 12-42, 0 event 42-44, 0 memory 44-47");
  EXPECT_EQ(path.sums, (Sums{40, 0, 4, 3}));
}

// An event hands on what its stream waited for, though nothing ran there.
TEST(PathTruth, AnEventBehindAnEvent) {
  Script script(1);
  script.spec().event_latency_ns = 2;
  script.kernel(0, 10);
  script.record(0, 0);
  script.wait(0, 0, 24);
  script.record(0, 1, 24);  // 12
  script.wait(0, 1, 32);
  script.kernel(0, 5, 0, 32);  // 14-19
  EXPECT_EQ(words(script.path()), "0 compute 0-10, 0 event 10-14, 0 compute 14-19");
}

TEST(PathTruth, AnEventOfAnEmptyStreamIsTheHostsOwnTime) {
  Script script(1);
  script.spec().event_latency_ns = 6;
  script.kernel(0, 1);  // 0-1
  script.work(0, 9);
  script.record(0, 0, 24);  // 9
  script.wait(0, 0, kComputeStream);
  script.kernel(0, 5);  // 15-20
  EXPECT_EQ(words(script.path()), "0 thread 0-9, 0 launch 9-15, 0 compute 15-20");
}

TEST(PathTruth, WhereSeveralAllowedItTheStreamComesFirst) {
  Script script(1);
  script.kernel(0, 10);
  script.record(0, 0);
  script.wait(0, 0, 24);
  script.kernel(0, 10, 0, 24);  // 10-20
  script.record(0, 1, 24);
  script.kernel(0, 10);  // 10-20
  script.wait(0, 1, kComputeStream);
  script.work(0, 20);
  script.kernel(0, 4);  // 20: allowed by its stream, by stream 24 and by its launch
  EXPECT_EQ(words(script.path()), "0 compute 0-10, 0 compute 10-20, 0 compute 20-24");
}

TEST(PathTruth, WhereSeveralCameLastItStaysOrGoesToTheLowest) {
  Script script(3);
  for (int rank = 0; rank < 3; ++rank) script.kernel(rank, rank == 2 ? 5 : 10);
  script.together({0, 1, 2}, 4);
  script.kernel(1, 1);
  EXPECT_EQ(words(script.path()), "1 compute 0-10, 1 transfer 10-14, 1 compute 14-15");
  script.kernel(2, 9);
  EXPECT_EQ(words(script.path()), "0 compute 0-10, 2 transfer 10-14, 2 compute 14-23");
}

TEST(PathTruth, TransferLastsUntilTheMemberLeaves) {
  Script script(2);
  script.kernel(1, 6);
  Collective& whole = script.together({0, 1}, 4);
  whole.members[0].late_exit = 3;
  EXPECT_EQ(words(script.path()), "1 compute 0-6, 0 transfer 6-13");
}

TEST(PathTruth, ASenderWaitsForItsReceiver) {
  Script script(2);
  script.kernel(1, 8);
  Collective& pair = script.together({0, 1}, 4, Op::send);
  pair.point_to_point = true;
  pair.members[1].op = Op::recv;
  script.kernel(0, 2);
  const PathTruth path = script.path();
  EXPECT_EQ(words(path), "1 compute 0-8, 0 transfer 8-12, 0 compute 12-14");
  EXPECT_EQ(path.by_op.begin()->first.first, Op::send);
}

TEST(PathTruth, TheWindowOpensWithTheFirstOfAnyRank) {
  Script script(2);
  script.work(0, 3);
  script.kernel(0, 1);  // 3-4
  script.work(1, 50);
  script.kernel(1, 5);  // 50-55
  EXPECT_EQ(words(script.path()), "1 thread 3-50, 1 compute 50-55");
}

TEST(PathTruth, AJobWithoutGpuWorkHasNone) {
  const PathTruth path = Script(2).path();
  EXPECT_EQ(path.window(), 0);
  EXPECT_TRUE(path.segments.empty());
}

// The healthy two replicas of bare_job.h: everything but what the first bucket hides.
TEST(PathTruth, OfAWholeStep) {
  const PathTruth path = find_critical_path(simulate(two_replicas()));
  EXPECT_EQ(path.window(), 3'192'000);
  EXPECT_EQ(path.sums, (Sums{3'100'000, 20'000, 0, 72'000}));
  EXPECT_EQ(path.rank_changes, 0);
}

// --- Properties of random jobs ---

void expect_tiles(const SimulatedJob& job, const PathTruth& path) {
  Ns first = std::numeric_limits<Ns>::max();
  Ns last = 0;
  for (const RankTrace& trace : job.ranks) {
    for (const GpuEvent& event : trace.gpu) {
      first = std::min(first, event.start);
      last = std::max(last, event.end);
    }
  }
  EXPECT_EQ(path.start, first);
  EXPECT_EQ(path.end, last);
  Ns at = first;
  Sums sums{};
  for (const PathSegment& segment : path.segments) {
    EXPECT_EQ(segment.start, at);
    EXPECT_GT(segment.end, segment.start);
    sums[static_cast<std::size_t>(segment.kind)] += segment.end - segment.start;
    at = segment.end;
  }
  EXPECT_EQ(at, last);
  EXPECT_EQ(path.sums, sums);
  EXPECT_EQ(sums[0] + sums[1] + sums[2] + sums[3], path.window());
  Sums of_ranks{};
  for (const Sums& rank : path.by_rank) {
    for (std::size_t i = 0; i < rank.size(); ++i) of_ranks[i] += rank[i];
  }
  EXPECT_EQ(of_ranks, sums);
}

// Activities of the path run in their segments whole; of communications only what follows the last
// member's start.
void expect_activities(const SimulatedJob& job, const PathTruth& path) {
  for (const PathSegment& segment : path.segments) {
    if (segment.kind == PathClass::host) continue;
    const GpuEvent& event = job.ranks[static_cast<std::size_t>(segment.rank)]
                                .gpu[static_cast<std::size_t>(segment.activity)];
    EXPECT_EQ(segment.end, event.end);
    EXPECT_EQ(segment.kind == PathClass::transfer, event.collective >= 0);
    if (event.collective < 0) {
      EXPECT_EQ(segment.start, event.start);
      continue;
    }
    Ns together = 0;
    for (const Attendance& member : job.attendance[static_cast<std::size_t>(event.collective)])
      together = std::max(together, member.entry);
    EXPECT_EQ(segment.start, together);
  }
}

Ns last_end(const Plan& plan) {
  Ns last = 0;
  for (const RankTrace& trace : run(plan).ranks) {
    for (const GpuEvent& event : trace.gpu) last = std::max(last, event.end);
  }
  return last;
}

// What is on the path lengthens the job by what it is lengthened; what is not can be nothing at all
// without the job being shorter.
void expect_critical(const Plan& plan, const PathTruth& path, Prng& chance) {
  // Launches of a rank in the order of its activities.
  std::vector<std::vector<Instruction*>> launches;
  Plan changed = plan;
  for (std::vector<Instruction>& program : changed.programs) {
    std::vector<Instruction*>& own = launches.emplace_back();
    for (Instruction& instruction : program) {
      const Verb verb = instruction.verb;
      if (verb == Verb::kernel || verb == Verb::memcpy || verb == Verb::memset ||
          verb == Verb::communicate)
        own.push_back(&instruction);
    }
  }
  std::vector<std::vector<bool>> on(launches.size());
  std::vector<bool> moved(plan.collectives.size());
  for (std::size_t i = 0; i < on.size(); ++i) on[i].resize(launches[i].size());
  for (const PathSegment& segment : path.segments) {
    if (segment.kind == PathClass::host) continue;
    const auto rank = static_cast<std::size_t>(segment.rank);
    const auto activity = static_cast<std::size_t>(segment.activity);
    on[rank][activity] = true;
    const int collective = launches[rank][activity]->collective;
    if (collective >= 0) moved[static_cast<std::size_t>(collective)] = true;
  }
  for (int tries = 0; tries < 8; ++tries) {
    const auto rank = static_cast<std::size_t>(chance.below(std::ssize(launches)));
    const auto activity = static_cast<std::size_t>(chance.below(std::ssize(launches[rank])));
    Instruction& launch = *launches[rank][activity];
    Ns& length = launch.collective >= 0
                     ? changed.collectives[static_cast<std::size_t>(launch.collective)].transfer
                     : launch.gpu;
    const Ns before = length;
    // No segment is no length: whether it is on the path nobody can say.
    if (before == 0) continue;
    const bool critical = launch.collective >= 0
                              ? moved[static_cast<std::size_t>(launch.collective)]
                              : on[rank][activity];
    length = critical ? before + 12'345 : 0;
    EXPECT_EQ(last_end(changed), path.end + (critical ? 12'345 : 0))
        << "rank " << rank << " activity " << activity;
    length = before;
  }
}

void expect_sound(const Plan& plan, Prng& chance) {
  const SimulatedJob job = run(plan);
  const PathTruth path = find_critical_path(job);
  expect_tiles(job, path);
  expect_activities(job, path);
  expect_critical(plan, path, chance);
}

TEST(PathTruthProperties, HoldForRandomJobs) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Prng chance(seed, 99, 0);
    Plan plan = make_plan(random_job(seed));
    expect_sound(plan, chance);
    // A late host and a slow rank make others wait.
    const int world = plan.spec.world();
    apply_to_plan(plan, {.list = {{.kind = FaultKind::late,
                                   .rank = static_cast<int>(chance.below(world)),
                                   .amount_ns = 2'000'000},
                                  {.kind = FaultKind::slow,
                                   .rank = static_cast<int>(chance.below(world)),
                                   .factor_ppm = 1'500'000}},
                         .end_jitter_ns = 3'000});
    expect_sound(plan, chance);
    if (HasFailure()) return;
  }
}

TEST(PathTruthProperties, EveryLayoutHasComputeTransferAndHost) {
  const JobSpec layouts[] = {
      {.dp = 4, .layers = 2, .steps = 2},
      {.dp = 2, .tp = 2, .layers = 2, .steps = 2},
      {.dp = 2, .pp = 2, .layers = 2, .steps = 2, .microbatches = 3},
      {.dp = 4, .layers = 2, .steps = 2, .fsdp = true},
      {.dp = 4, .layers = 2, .steps = 2, .moe = true},
  };
  for (const JobSpec& spec : layouts) {
    const PathTruth path = find_critical_path(simulate(spec));
    EXPECT_GT(path.of(PathClass::compute), path.window() / 2);
    EXPECT_GT(path.of(PathClass::transfer), 0);
    EXPECT_GT(path.of(PathClass::host), 0);
    EXPECT_GT(path.of(PathClass::memory), 0);
  }
}

}  // namespace
}  // namespace commlens::simulate
