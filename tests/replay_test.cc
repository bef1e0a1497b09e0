// The dependency graph, the critical path and the replay: against values computed by hand, against
// what simulated jobs really waited for, and their invariants over random jobs.
#include "replay/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>

#include "ingest/load.h"
#include "made_recording.h"
#include "replay/critical_path.h"
#include "replay/what_if.h"
#include "simulate/path_truth.h"
#include "simulate/recording.h"
#include "staged_job.h"

namespace commlens {
namespace {

Job job_of(Made& made) {
  std::vector<Recording> recordings;
  recordings.push_back(made.done());
  return staged_job(std::move(recordings));
}

// The only rank's kernels take so many times as long.
Assumption slower(double factor) {
  Assumption assumption;
  assumption.compute = {factor};
  return assumption;
}

Ns of(const CriticalPath& path, PathClass kind) {
  return path.sums[static_cast<std::size_t>(kind)];
}

void expect_tiles(const CriticalPath& path) {
  Ns at = path.window.start;
  Ns sum = 0;
  for (const PathSegment& segment : path.segments) {
    EXPECT_EQ(segment.time.start, at);
    EXPECT_GT(segment.time.length(), 0);
    at = segment.time.end;
    sum += segment.time.length();
  }
  EXPECT_EQ(at, path.window.end);
  EXPECT_EQ(sum, path.window.length());
  Ns classes = 0;
  for (const Ns part : path.sums) classes += part;
  EXPECT_EQ(classes, path.window.length());
  Ns ranks = 0;
  for (const Ns part : path.by_rank) ranks += part;
  EXPECT_EQ(ranks, path.window.length());
}

// Nothing changed: every instant as recorded.
void expect_identity(const Graph& graph) {
  const Outcome outcome = replay(graph, {});
  for (std::uint32_t rank = 0; rank < graph.job().ranks.size(); ++rank) {
    const Work& work = graph.work(rank);
    for (std::uint32_t node = 0; node < work.size(); ++node) {
      ASSERT_EQ(outcome.start[graph.node(rank, node)], work.start[node]);
      ASSERT_EQ(outcome.end[graph.node(rank, node)], work.end[node]);
    }
  }
  const Prediction same = predict(graph, {});
  EXPECT_EQ(same.step, same.predicted);
  EXPECT_EQ(same.lower, same.upper);
}

TEST(Replay, APredictionLiesInItsInterval) {
  EXPECT_EQ(interval_around(100, 30), (Interval{70, 130}));
  EXPECT_EQ(interval_around(100, 300), (Interval{0, 400}));
  constexpr Ns kMost = std::numeric_limits<Ns>::max();
  for (const Ns predicted : {-kMost, Ns{-5}, Ns{0}, kMost}) {
    for (const double half : {-1e30, -3.0, 0.0, 1e30}) {
      const Interval around = interval_around(predicted, half);
      EXPECT_LE(0, around.start) << predicted << " " << half;
      EXPECT_LE(around.start, around.end) << predicted << " " << half;
    }
  }
}

// methods.md, worked case 9, in microseconds: the launch makes a kernel ready at 10, its stream is
// free at 100, it starts at 100.5. Were the kernel before it over at 5, it would start at 10.
TEST(Replay, AHiddenDependencyTakesOver) {
  Made made;
  made.kernel(7, 0, 100'000, 0).kernel(7, 100'500, 110'000, 5'000);
  const Job job = job_of(made);
  const Graph graph(job);
  expect_identity(graph);
  const Outcome outcome = replay(graph, slower(0.05));
  EXPECT_EQ(outcome.end[0] - kOrigin, 5'000);
  EXPECT_EQ(outcome.start[1] - kOrigin, 10'000);
}

// The host sleeps for 1 ms before it launches the first kernel of a second stream. Had it not
// slept, that kernel would have begun with what was launched before it, not stayed where it was.
TEST(Replay, TheFirstOfAStreamMovesWithWhatWasLaunchedBeforeIt) {
  Made made;
  made.kernel(7, 1'000, 21'000, 0).kernel(7, 22'000, 30'000, 10'000);
  made.kernel(20, 1'025'000, 1'030'000, 1'020'000);
  const Job job = job_of(made);
  const Graph graph(job);
  expect_identity(graph);
  Assumption in_time;
  in_time.host_in_time = {true};
  const Outcome outcome = replay(graph, in_time);
  EXPECT_EQ(outcome.start[1] - kOrigin, 22'000);
  // The latency of a launch that bound is taken off with the launch.
  EXPECT_LE(outcome.start[2] - kOrigin, 26'000);
  EXPECT_GE(outcome.start[2] - kOrigin, 22'000);
}

// methods.md, worked case 7: the path goes through rank 1's long compute, then both transfers.
TEST(CriticalPath, FollowsTheLastArrivalFromRankToRank) {
  const Ns compute[] = {10'000, 14'000, 10'000, 10'000};
  const char* first[] = {"[0, 1]", "[0, 1]", "[2, 3]", "[2, 3]"};
  const char* second[] = {"[0, 2]", "[1, 3]", "[0, 2]", "[1, 3]"};
  const Ns met[] = {16'000, 16'000, 12'000, 12'000};
  std::vector<Recording> recordings;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    Made made(rank, 4);
    made.kernel(7, 0, compute[rank], 0)
        .all_reduce(7, compute[rank], met[rank], std::string("tp") + first[rank], first[rank], 2, 1,
                    1)
        .all_reduce(7, met[rank], 19'000, std::string("dp") + second[rank], second[rank], 2, 1, 2);
    recordings.push_back(made.done());
  }
  const Job job = staged_job(std::move(recordings));
  ASSERT_EQ(job.matching.matched, 4);
  const Graph graph(job);
  expect_identity(graph);
  const CriticalPath path = find_critical_path(graph);
  expect_tiles(path);
  EXPECT_EQ(path.window.length(), 19'000);
  EXPECT_EQ(of(path, PathClass::compute), 14'000);
  EXPECT_EQ(of(path, PathClass::transfer), 5'000);
  // All-reduces leave rank 1 as they leave its partner; the path ends on the lowest rank.
  EXPECT_GE(path.by_rank[1], 14'000);
  // With rank 1 at its peers' pace all is over at 10 + 2 + 3.
  Question question;
  question.fix_ranks = {1};
  const Prediction fixed = predict(graph, question);
  EXPECT_EQ(fixed.predicted, 15'000);
}

// The host waits for a kernel, and launches the next one only then.
//   host  [launch]  [== sync ==][launch]
//   GPU      [== a ==]            [== b ==]
TEST(CriticalPath, GoesThroughTheHostWhereItWaitedForTheGpu) {
  Made made;
  made.kernel(7, 5'000, 50'000, 0).synchronise(2'000, 54'000).kernel(7, 70'000, 90'000, 66'000);
  const Job job = job_of(made);
  const Graph graph(job);
  expect_identity(graph);
  const CriticalPath path = find_critical_path(graph);
  expect_tiles(path);
  EXPECT_EQ(of(path, PathClass::compute), 65'000);
  EXPECT_EQ(of(path, PathClass::host), 20'000);
  EXPECT_EQ(of(path, PathClass::unexplained), 0);
  // The first kernel at half its length: everything behind it comes 22.5 us earlier.
  const Outcome outcome = replay(graph, slower(0.5));
  EXPECT_EQ(outcome.start[1] - kOrigin, 70'000 - 22'500);
}

// One rank of two: what it waited for the other counts as transfer, and that is said.
TEST(CriticalPath, IsDoubtfulWhereRanksAreMissing) {
  for (const std::int64_t world : {1, 2}) {
    Made made(0, world);
    made.kernel(7, 0, 10'000, 0).all_reduce(7, 10'000, 40'000, "dp", "[0, 1]", 2, 1, 1);
    const Job job = job_of(made);
    const CriticalPath path = find_critical_path(Graph(job));
    EXPECT_EQ(of(path, PathClass::transfer), 30'000);
    EXPECT_EQ(path.sure, world == 1) << path.doubt;
  }
}

// One stream waits for an event of another.
TEST(CriticalPath, FollowsARecordedEvent) {
  Made made;
  made.kernel(7, 0, 40'000, 0).wait(20, 7, 2'000).kernel(20, 41'500, 60'000, 3'000, "other");
  const Job job = job_of(made);
  const Graph graph(job);
  EXPECT_EQ(job.ranks[0].work.inferred_edges, 0);
  expect_identity(graph);
  const CriticalPath path = find_critical_path(graph);
  expect_tiles(path);
  EXPECT_EQ(of(path, PathClass::compute), 58'500);
  EXPECT_EQ(of(path, PathClass::host), 1'500);
}

// The same without records: what starts right behind other work waited for it, and that is said.
TEST(CriticalPath, InfersAWaitFromTiming) {
  Made made;
  made.kernel(7, 0, 40'000, 0).kernel(20, 41'500, 60'000, 3'000, "other");
  const Job job = job_of(made);
  const Graph graph(job);
  EXPECT_EQ(job.ranks[0].work.inferred_edges, 1);
  const CriticalPath path = find_critical_path(graph);
  expect_tiles(path);
  EXPECT_EQ(of(path, PathClass::compute), 58'500);
  EXPECT_EQ(path.inferred_on_path, 1);
}

// Nothing was running or launched for 300 us before the second kernel: nothing explains that.
// Compute that waits for an all-reduce four times; the third time its launch comes late and
// explains its start by itself. `beside`: the last time it begins while the all-reduce runs.
std::size_t waits_for_communication(bool beside) {
  Made made(0, 2);
  for (Ns i = 0; i < 4; ++i) {
    const Ns at = i * 1'000'000;
    const Ns start = at + (i == 2 ? 500'000 : beside && i == 3 ? 150'000 : 201'000);
    made.kernel(7, at + 10'000, at + 50'000, at + 1'000);
    made.all_reduce(20, at + 52'000, at + 200'000, "tp", "[0, 1]", 2, i + 1, at + 2'000);
    made.kernel(7, start, start + 100'000, i == 2 ? at + 495'000 : at + 3'000);
  }
  const Job job = job_of(made);
  const Work& work = job.ranks[0].work;
  return static_cast<std::size_t>(
      std::count_if(work.edges.begin(), work.edges.end(), [&work](const WorkEdge& edge) {
        return work.kind[edge.source] == ActivityClass::communication;
      }));
}

TEST(Dependencies, AWaitThatALateLaunchHidesIsThatOfItsLike) {
  EXPECT_EQ(waits_for_communication(false), 4U);
  // What once did not wait for it need not have waited where nothing shows it.
  EXPECT_EQ(waits_for_communication(true), 2U);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> waits_of(const Job& job) {
  const Work& work = job.ranks[0].work;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> waits;  // node, of what it waits for
  for (const WorkEdge& edge : work.edges) {
    if (work.kind[edge.source] == ActivityClass::communication)
      waits.emplace_back(edge.node, edge.source);
  }
  return waits;
}

// Parameters are gathered one ahead: kernel i needs gather i, which gather i + 1 follows before it.
// The last kernel's launch comes late, which hides what it waited for; the call is there.
TEST(Dependencies, AWaitBehindCallsIsThatOfItsLike) {
  Made made(0, 2);
  made.all_gather(20, 0, 100'000, "dp", "[0, 1]", 2, 1, 0, 1024);
  for (Ns i = 0; i < 5; ++i) {
    const Ns launch = 10'000 * (i + 1) + (i == 4 ? 700'000 : 0);
    const Ns free = 101'000 * (i + 1);
    made.all_gather(20, free, free + 100'000, "dp", "[0, 1]", 2, i + 2, 10'000 * (i + 1) - 5'000,
                    1024);
    made.some_wait(launch - 1'000);
    const Ns start = i == 4 ? launch + 5'000 : free + 500;
    made.kernel(7, start, start + 20'000, launch);
  }
  const Job job = job_of(made);
  EXPECT_FALSE(job.ranks[0].work.recorded_waits);
  // Rows 0 to 5 are the gathers.
  EXPECT_EQ(waits_of(job), (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                               {6, 0}, {7, 1}, {8, 2}, {9, 3}, {10, 4}}));
}

// Each launch comes late, so that nothing shows what kernels waited for: calls and communications
// are as many and in one order. `early`: one kernel begins while what it would have waited for
// runs.
std::size_t waits_in_order(bool early, bool calls) {
  Made made(0, 2);
  for (Ns i = 0; i < 4; ++i) {
    const Ns at = i * 1'000'000;
    made.kernel(7, at + 10'000, at + 50'000, at + 5'000);
    made.all_reduce(20, at + 105'000, at + 200'000, "tp", "[0, 1]", 2, i + 1, at + 100'000);
    const Ns launch = at + (early && i == 3 ? 145'000 : 495'000);
    if (calls) made.some_wait(launch - 1'000);
    made.kernel(7, launch + 5'000, launch + 100'000, launch);
  }
  return waits_of(job_of(made)).size();
}

TEST(Dependencies, CallsStandForCommunicationsInOrder) {
  EXPECT_EQ(waits_in_order(false, true), 4U);
  EXPECT_EQ(waits_in_order(true, true), 0U);
  EXPECT_EQ(waits_in_order(false, false), 0U);
}

// Sparing a call of 30 us brings what its thread does behind it forward, and nothing before it.
TEST(Replay, SparedCallsBringLaterLaunchesForward) {
  Made made;
  made.kernel(7, 5'000, 10'000, 0).kernel(7, 105'000, 110'000, 100'000);
  made.kernel(7, 205'000, 210'000, 200'000).synchronise(210'000, 260'000);
  made.kernel(7, 305'000, 310'000, 300'000);
  const Job job = job_of(made);
  const Graph graph(job);
  Assumption spared;
  spared.spared = {{{.stretch = job.ranks[0].work.stretch[1],
                     .at = job.ranks[0].work.launch[1],
                     .until = 30'000}}};
  const Outcome outcome = replay(graph, spared);
  EXPECT_EQ(outcome.start[0] - kOrigin, 5'000);
  EXPECT_EQ(outcome.start[1] - kOrigin, 105'000);  // the call itself is behind
  EXPECT_EQ(outcome.start[2] - kOrigin, 175'000);
  EXPECT_EQ(outcome.start[3] - kOrigin, 275'000);  // the thread returns from its wait earlier
}

TEST(CriticalPath, LeavesUnexplainedWhatNothingExplains) {
  Made made;
  made.kernel(7, 0, 40'000, 0).kernel(7, 340'000, 350'000, 3'000);
  const Job job = job_of(made);
  const Graph graph(job);
  const CriticalPath path = find_critical_path(graph);
  expect_tiles(path);
  EXPECT_EQ(of(path, PathClass::unexplained), 300'000 - 1'000);  // but for the usual gap
  EXPECT_FALSE(path.sure);
}

// Hosts that are never late: what only a launch held up begins as soon as its stream is free.
TEST(Replay, WithoutHostDelayOnlyTheGpuBinds) {
  Made made;
  made.kernel(7, 5'000, 50'000, 0).kernel(7, 205'000, 210'000, 200'000);
  const Job job = job_of(made);
  const Graph graph(job);
  Assumption in_time;
  in_time.host_in_time = {true};
  const Outcome outcome = replay(graph, in_time);
  EXPECT_EQ(outcome.start[1] - kOrigin, 51'000);  // the usual gap behind the first
}

// Kernels of one graph keep their order and gaps, whatever moves the first.
TEST(Replay, AGraphMovesAsAWhole) {
  Made made;
  made.kernel(7, 0, 50'000, 0)
      .graph(1'000, {{7, {51'000, 60'000}}, {8, {58'000, 70'000}}, {7, {72'000, 80'000}}});
  const Job job = job_of(made);
  const Graph graph(job);
  expect_identity(graph);
  const Outcome outcome = replay(graph, slower(0.9));
  const Work& work = job.ranks[0].work;
  ASSERT_EQ(work.size(), 4U);
  // The first kernel ends 5 us earlier; of the graph, kernels become a tenth shorter.
  EXPECT_EQ(outcome.start[1], work.start[1] - 5'000);
  EXPECT_EQ(outcome.start[3], work.start[3] - 5'000 - 900);  // overlapping by 2 us
  EXPECT_EQ(outcome.start[2], work.start[2] - 5'000 - 900 - 1'200);
}

// The backward pass has a thread of its own: its launches follow the main thread's.
TEST(Replay, AThreadThatWasHandedWorkMovesWithTheGiver) {
  Made made;
  made.kernel(7, 5'000, 900'000, 0)
      .synchronise(1'000, 905'000)
      .kernel(7, 912'000, 920'000, 907'000)
      .thread(2)
      .kernel(7, 1'205'000, 1'300'000, 1'200'000);
  const Job job = job_of(made);
  const Graph graph(job);
  expect_identity(graph);
  const Outcome outcome = replay(graph, slower(0.5));
  const Ns saved = 895'000 / 2;
  EXPECT_EQ(outcome.start[1] - kOrigin, 912'000 - saved);
  EXPECT_EQ(outcome.start[2] - kOrigin, 1'205'000 - saved);
}

// --- Simulated jobs ---

simulate::JobSpec layout_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  simulate::JobSpec spec{.seed = seed};
  switch (seed % 6) {
    case 0: spec.dp = 4; break;
    case 1:
      spec.dp = 2;
      spec.tp = 2;
      break;
    case 2:
      spec.dp = 2;
      spec.pp = 2;
      spec.microbatches = 4;
      break;
    case 3:
      spec.dp = 4;
      spec.fsdp = true;
      break;
    case 4:
      spec.dp = 4;
      spec.moe = true;
      break;
    default:
      spec.dp = 2;
      spec.tp = 2;
      spec.pp = 2;
      spec.microbatches = 2;
      break;
  }
  spec.layers = 4;
  spec.steps = 3;
  spec.inter.gbs = static_cast<double>(10 + random() % 100);
  spec.intra.gbs = static_cast<double>(50 + random() % 300);
  spec.layer_forward_ns = static_cast<Ns>(200'000 + random() % 2'000'000);
  return spec;
}

Job simulated(const simulate::SimulatedJob& made, bool records) {
  std::vector<Recording> recordings;
  simulate::RecordOptions options;
  options.sync_records = records;
  for (int rank = 0; rank < made.spec.world(); ++rank)
    recordings.push_back(simulate::record_rank(made, rank, options));
  return staged_job(std::move(recordings));
}

// Share of the window that is in another class than in truth.
double misplaced(const CriticalPath& path, const simulate::PathTruth& truth) {
  const auto off = [&](PathClass own, simulate::PathClass true_class) {
    return std::abs(static_cast<double>(of(path, own) - truth.of(true_class)));
  };
  const double sum = off(PathClass::compute, simulate::PathClass::compute) +
                     off(PathClass::transfer, simulate::PathClass::transfer) +
                     off(PathClass::host, simulate::PathClass::host) +
                     off(PathClass::memory, simulate::PathClass::memory) +
                     static_cast<double>(of(path, PathClass::unexplained));
  return sum / 2 / static_cast<double>(truth.window());
}

TEST(CriticalPath, IsThatOfSimulatedJobsWithRecords) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const simulate::SimulatedJob made = simulate::simulate(layout_of(seed));
    const Job job = simulated(made, true);
    const Graph graph(job);
    EXPECT_EQ(graph.contradictions(), 0) << seed;
    expect_identity(graph);
    const CriticalPath path = find_critical_path(graph);
    expect_tiles(path);
    const simulate::PathTruth truth = simulate::find_critical_path(made);
    EXPECT_EQ(path.window.length(), truth.window()) << seed;
    EXPECT_LE(misplaced(path, truth), 0.01) << seed;
  }
}

TEST(CriticalPath, IsNearThatOfSimulatedJobsWithoutRecords) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const simulate::SimulatedJob made = simulate::simulate(layout_of(seed));
    const Job job = simulated(made, false);
    const Graph graph(job);
    expect_identity(graph);
    const CriticalPath path = find_critical_path(graph);
    expect_tiles(path);
    EXPECT_TRUE(misplaced(path, simulate::find_critical_path(made)) <= 0.05 || !path.sure) << seed;
  }
}

// --- Real runs ---

// Each folder of the corpus is a job, but that of single files.
std::vector<std::vector<std::string>> corpus_jobs(const std::filesystem::path& corpus) {
  std::vector<std::vector<std::string>> jobs;
  for (const auto& folder : std::filesystem::directory_iterator(corpus / "kineto")) {
    if (!folder.is_directory()) continue;
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(folder.path()))
      files.push_back(file.path().string());
    std::sort(files.begin(), files.end());
    if (folder.path().filename().string().find("ranks") != std::string::npos) {
      jobs.push_back(files);
    } else {
      for (const std::string& file : files) jobs.push_back({file});
    }
  }
  return jobs;
}

// Nothing changed: every start and end of every real job comes out as recorded.
TEST(Replay, LeavesRealJobsAsTheyWere) {
  const char* set = std::getenv("COMMLENS_CORPUS");
  const std::filesystem::path corpus = set != nullptr ? set : COMMLENS_DEFAULT_CORPUS;
  if (!std::filesystem::is_directory(corpus / "kineto"))
    GTEST_SKIP() << "no corpus at " << corpus << " (COMMLENS_CORPUS)";
  std::int64_t replayed = 0;
  for (const std::vector<std::string>& files : corpus_jobs(corpus)) {
    std::vector<Recording> recordings;
    for (const std::string& file : files) {
      std::vector<LoadedInput> inputs =
          load({{file, true}}, {.input_format = {}, .jobs = 1, .progress = {}});
      if (inputs.front().usable) recordings.push_back(std::move(inputs.front().recording));
    }
    if (recordings.empty()) continue;
    const Job job = staged_job(std::move(recordings));
    const Graph graph(job);
    const CriticalPath path = find_critical_path(graph);
    if (!path.known) continue;
    SCOPED_TRACE(files.front());
    expect_identity(graph);
    expect_tiles(path);
    ++replayed;
  }
  EXPECT_GE(replayed, 15);
}

}  // namespace
}  // namespace commlens
