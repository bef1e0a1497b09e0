// Simulated jobs: hand-computed small ones, and properties of many random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

#include "bare_job.h"
#include "base/error.h"
#include "random_job.h"
#include "simulate/fault_words.h"
#include "simulate/kineto_writer.h"
#include "simulate/prng.h"
#include "simulate/simulated_job.h"
#include "simulate/truth.h"
#include "simulate/write_run.h"

namespace commlens::simulate {
namespace {

using Span = std::pair<Ns, Ns>;

// Entry and exit of every communication of a rank, in its order of launching.
std::vector<Span> communications(const SimulatedJob& job, std::size_t rank) {
  std::vector<Span> spans;
  for (const GpuEvent& event : job.ranks[rank].gpu) {
    if (event.collective >= 0) spans.emplace_back(event.start, event.end);
  }
  return spans;
}

TEST(Simulate, OverlapsTheFirstBucketAndExposesTheLast) {
  const SimulatedJob job = simulate(two_replicas());
  // 2 MB: 10 us + 2 * (1/2) * 2 MB / 100 GB/s = 30 us, under the backward of attention; then 1 MB:
  // 20 us.
  const std::vector<Span> expected{{2'030'000, 2'060'000}, {3'070'000, 3'090'000}};
  EXPECT_EQ(communications(job, 0), expected);
  EXPECT_EQ(communications(job, 1), expected);
  const Buckets buckets = find_truth(job).ranks[0].buckets;
  EXPECT_EQ(buckets.window, 3'192'000);  // 3090 + optimizer 100 + copy 2
  EXPECT_EQ(buckets.compute_only, 3'070'000);
  EXPECT_EQ(buckets.hidden_comm, 30'000);
  EXPECT_EQ(buckets.exposed_comm, 20'000);
  EXPECT_EQ(buckets.memory_only, 72'000);
  EXPECT_EQ(buckets.idle, 0);
}

TEST(Simulate, ChargesWaitingToTheRankWhosePlanIsSlower) {
  Plan plan = make_plan(two_replicas());
  const auto kernel = std::ranges::find(plan.programs[1], Verb::kernel, &Instruction::verb);
  kernel->gpu += 5'000;
  const SimulatedJob job = run(std::move(plan));
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{2'030'000, 2'065'000}, {3'070'000, 3'095'000}}));
  EXPECT_EQ(communications(job, 1),
            (std::vector<Span>{{2'035'000, 2'065'000}, {3'075'000, 3'095'000}}));
  const WaitTruth waits = find_truth(job).waits;
  EXPECT_EQ(waits.total, 10'000);
  EXPECT_EQ(waits.waited, (std::vector<Ns>{10'000, 0}));
  EXPECT_EQ(waits.exposed_waited, (std::vector<Ns>{5'000, 0}));
  EXPECT_EQ(waits.caused, (std::vector<Ns>{0, 10'000}));
  EXPECT_EQ(waits.blame, (std::map<std::pair<int, int>, Ns>{{{0, 1}, 10'000}}));
}

TEST(Simulate, SplitsTiesAmongTheLastToArrive) {
  JobSpec spec = two_replicas();
  spec.dp = 3;
  spec.bucket_bytes = 3'000'000;  // one all-reduce
  Plan plan = make_plan(spec);
  for (const std::size_t late : {std::size_t{1}, std::size_t{2}}) {
    std::ranges::find(plan.programs[late], Verb::kernel, &Instruction::verb)->gpu += 5'001;
  }
  const WaitTruth waits = find_truth(run(std::move(plan))).waits;
  EXPECT_EQ(waits.total, 5'001);
  EXPECT_EQ(waits.caused, (std::vector<Ns>{0, 2'501, 2'500}));
}

TEST(Simulate, RunsAPipelineInOneForwardOneBackwardOrder) {
  JobSpec spec = bare_job();
  spec.pp = 2;
  spec.layers = 2;
  spec.microbatches = 2;
  spec.activation_bytes = 1'000'000;  // 10 us + 10 us
  const SimulatedJob job = simulate(spec);
  // Stage 0: F0 70-1070, F1 1070-2070, B0 4110-6110, B1 7130-9130.
  // Stage 1: F0 1090-2090, B0 2090-4090, F1 4110-5110, B1 5110-7110.
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{1'070'000, 1'090'000},     // send F0
                               {2'070'000, 4'110'000},     // send F1, not yet wanted
                               {2'070'000, 4'110'000},     // recv B0
                               {6'110'000, 7'130'000}}));  // recv B1
  EXPECT_EQ(communications(job, 1), (std::vector<Span>{{70'000, 1'090'000},        // recv F0
                                                       {4'090'000, 4'110'000},     // send B0
                                                       {4'090'000, 4'110'000},     // recv F1
                                                       {7'110'000, 7'130'000}}));  // send B1
  const Truth truth = find_truth(job);
  EXPECT_EQ(truth.waits.total, 1'000'000 + 2'020'000 + 1'000'000);
  EXPECT_EQ(truth.waits_with_senders.total, truth.waits.total + 2'020'000);
}

TEST(Simulate, KeepsTensorParallelTrafficOnTheCriticalPath) {
  JobSpec spec = bare_job();
  spec.tp = 2;
  spec.activation_bytes = 1'000'000;  // all-reduce of two: 10 us + 10 us
  const SimulatedJob job = simulate(spec);
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{590'000, 610'000},
                               {1'090'000, 1'110'000},  // after 520, 480 of forward
                               {2'070'000, 2'090'000},
                               {3'130'000, 3'150'000}}));  // after 960, 1040 of backward
  EXPECT_EQ(find_truth(job).ranks[1].buckets.exposed_comm, 80'000);
}

TEST(Simulate, PrefetchesParametersOfTheNextLayer) {
  JobSpec spec = bare_job();
  spec.dp = 2;
  spec.fsdp = true;
  spec.layers = 2;
  spec.layer_bytes =
      2'000'000;  // all-gather or reduce-scatter: 10 us + (1/2) * 2 MB / 100 GB/s = 20 us
  const std::vector<Span> spans = communications(simulate(spec), 0);
  EXPECT_EQ(spans, (std::vector<Span>{
                       {70'000, 90'000},        // layer 0, nothing to hide behind
                       {90'000, 110'000},       // layer 1, issued before layer 0 computes
                       {2'090'000, 2'110'000},  // backward: layer 1 again, then layer 0 ahead
                       {2'110'000, 2'130'000},
                       {4'110'000, 4'130'000},     // gradients of layer 1
                       {6'110'000, 6'130'000}}));  // and of layer 0
}

TEST(Simulate, ExchangesWhatTheBusiestExpertGets) {
  JobSpec spec = bare_job();
  spec.dp = 2;
  spec.moe = true;
  spec.hidden = 500;
  spec.top_k = 1;
  spec.activation_bytes =
      2'000'000;  // 2000 rows of 1000 bytes, 1000 to each: 10 us + 1 MB / 100 GB/s
  const SimulatedJob job = simulate(spec);
  const Collective& dispatch = job.collectives[0];
  EXPECT_EQ(dispatch.op, Op::all_to_all);
  EXPECT_EQ(dispatch.transfer, 20'000);
  EXPECT_EQ(rows_sent(dispatch, 0), (std::vector<std::int64_t>{1000, 1000}));
  EXPECT_EQ(dispatch.members[0].in_elements, 1'000'000);
}

TEST(Simulate, UsesTheSlowLinkBetweenHosts) {
  JobSpec spec = two_replicas();
  spec.ranks_per_host = 1;
  spec.inter = {.alpha_ns = 50'000, .gbs = 10.0};
  const SimulatedJob job = simulate(spec);
  EXPECT_EQ(job.collectives[0].transfer, 250'000);
  EXPECT_EQ(job.layout.places[1].host, 1);
}

TEST(Simulate, LaysRanksOutTensorFirstThenDataThenPipeline) {
  const Layout layout = make_layout({.dp = 2, .tp = 2, .pp = 2, .layers = 3});
  const auto ranks = [&](int rank, GroupKind kind) {
    return layout
        .groups[static_cast<std::size_t>(
            layout.places[static_cast<std::size_t>(rank)].group_of(kind))]
        .ranks;
  };
  EXPECT_EQ(ranks(5, GroupKind::tensor), (std::vector<int>{4, 5}));
  EXPECT_EQ(ranks(5, GroupKind::data), (std::vector<int>{5, 7}));
  EXPECT_EQ(ranks(5, GroupKind::pipeline), (std::vector<int>{1, 5}));
  EXPECT_EQ(layout.places[3].layers, 2);
  EXPECT_EQ(layout.places[4].first_layer, 2);
}

TEST(Simulate, RefusesImpossibleJobsInOneSentence) {
  const auto message = [](const JobSpec& spec) -> std::string {
    try {
      spec.validate();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.dp = 0}), "simulate: dp is 0, but must be from 1 to 4096");
  EXPECT_EQ(message({.tp = -1}), "simulate: tp is -1, but must be from 1 to 4096");
  EXPECT_EQ(message({.dp = 4096, .tp = 2}),
            "simulate: dp * tp * pp is 8192 ranks, but at most 4096 can be simulated");
  EXPECT_EQ(message({.pp = 9}), "simulate: 8 layers cannot fill 9 pipeline stages");
  EXPECT_NE(message({.dp = 1, .fsdp = true}), "");
  EXPECT_NE(message({.dp = 1, .moe = true}), "");
  EXPECT_NE(message({.dp = 4, .moe = true, .expert_ranks = 3}), "");
  EXPECT_NE(message({.noise = std::nan("")}), "");
  EXPECT_NE(message({.intra = {.gbs = 0.0}}), "");
  EXPECT_NE(message({.layer_bytes = 1'000'000'000, .bucket_bytes = 2}), "");
  EXPECT_NE(message({.dp = 4096, .layers = 10'000, .steps = 100'000}).find("4915200000000 passes"),
            std::string::npos);
}

TEST(Simulate, FindsProgramsThatBlockEachOther) {
  Plan plan = make_plan(two_replicas());
  std::erase_if(plan.programs[1], [](const Instruction& instruction) {
    return instruction.verb == Verb::communicate && instruction.collective == 0;
  });
  EXPECT_THROW(run(std::move(plan)), Error);
}

TEST(Prng, GivesTheseNumbersEverywhere) {
  Prng chance(1);
  EXPECT_EQ(chance.next(), 0x910A2DEC89025CC1ULL);  // published for splitmix64 with seed 1
  EXPECT_EQ(Prng(5, 1, 2).jitter(1'000'000, 0), 1'000'000);
  Ns sum = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) sum += Prng(7, 1, i).jitter(1'000'000, 100'000);
  EXPECT_NEAR(static_cast<double>(sum), 1e9, 1e7);
}

// --- Properties ---

Ns sum_of(const Buckets& b) {
  return b.compute_only + b.hidden_comm + b.exposed_comm + b.memory_only + b.idle;
}

void expect_streams_in_order(const RankTrace& trace, Ns gap) {
  std::map<int, Ns> busy_until;
  for (const GpuEvent& event : trace.gpu) {
    const auto [last, fresh] = busy_until.try_emplace(event.stream, -gap);
    EXPECT_GE(event.start, last->second + gap);
    EXPECT_GE(event.end, event.start);
    EXPECT_GE(event.start, trace.calls[static_cast<std::size_t>(event.call)].end);
    last->second = event.end;
  }
}

void expect_host_in_order(const RankTrace& trace) {
  Ns last = 0;
  for (const RuntimeCall& call : trace.calls) {
    EXPECT_GE(call.start, last);
    last = call.end;
    if (call.range < 0) continue;
    const HostRange& range = trace.ranges[static_cast<std::size_t>(call.range)];
    EXPECT_TRUE(range.start <= call.start && call.end <= range.end);
  }
}

void expect_sound_waits(const SimulatedJob& job, const Truth& truth) {
  for (std::size_t i = 0; i < job.collectives.size(); ++i) {
    EXPECT_EQ(std::ranges::min(truth.member_waits[i]), 0);
    for (std::size_t member = 0; member < job.attendance[i].size(); ++member) {
      const Attendance& attendance = job.attendance[i][member];
      EXPECT_EQ(attendance.exit - attendance.entry - truth.member_waits[i][member],
                job.collectives[i].transfer);
      EXPECT_GT(message_bytes_of(job.collectives[i].members[member]), -1);
    }
  }
  for (const WaitTruth* waits : {&truth.waits, &truth.waits_with_senders}) {
    Ns waited = 0;
    Ns caused = 0;
    Ns blamed = 0;
    for (const Ns ns : waits->waited) waited += ns;
    for (const Ns ns : waits->caused) caused += ns;
    for (const auto& [pair, ns] : waits->blame) blamed += ns;
    EXPECT_EQ(waited, waits->total);
    EXPECT_EQ(caused, waits->total);
    EXPECT_EQ(blamed, waits->total);
  }
}

// Without cleverness: every nanosecond boundary's midpoint is looked up in every event.
Buckets slow_buckets(const RankTrace& trace, Ns start, Ns end) {
  std::vector<Ns> cuts{start, end};
  for (const GpuEvent& event : trace.gpu) {
    cuts.push_back(std::clamp(event.start, start, end));
    cuts.push_back(std::clamp(event.end, start, end));
  }
  std::ranges::sort(cuts);
  Buckets buckets;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto running = [&](auto kind) {
      return std::ranges::any_of(trace.gpu, [&](const GpuEvent& event) {
        return kind(event.kind) && event.start <= cuts[i] && cuts[i + 1] <= event.end;
      });
    };
    const bool compute = running([](GpuKind kind) { return kind == GpuKind::compute; });
    const bool comm = running([](GpuKind kind) { return kind == GpuKind::communication; });
    const bool any = running([](GpuKind) { return true; });
    const Ns length = cuts[i + 1] - cuts[i];
    buckets.window += length;
    (comm      ? compute ? buckets.hidden_comm : buckets.exposed_comm
     : compute ? buckets.compute_only
     : any     ? buckets.memory_only
               : buckets.idle) += length;
  }
  return buckets;
}

void expect_sound_windows(const RankTruth& truth) {
  EXPECT_EQ(sum_of(truth.buckets), truth.end - truth.start);
  EXPECT_LE(truth.buckets.hidden_comm, truth.whole_event_overlap);
  ASSERT_FALSE(truth.steps.empty());
  EXPECT_EQ(truth.steps.front().start, truth.start);
  EXPECT_EQ(truth.steps.back().end, truth.end);
  Buckets total;
  for (std::size_t i = 0; i < truth.steps.size(); ++i) {
    const StepTruth& step = truth.steps[i];
    EXPECT_EQ(sum_of(step.buckets), step.end - step.start);
    EXPECT_EQ(step.start, i > 0 ? truth.steps[i - 1].end : truth.start);
    total.hidden_comm += step.buckets.hidden_comm;
    total.idle += step.buckets.idle;
  }
  EXPECT_EQ(total.hidden_comm, truth.buckets.hidden_comm);
  EXPECT_EQ(total.idle, truth.buckets.idle);
}

TEST(SimulateProperties, HoldForRandomJobs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const JobSpec spec = random_job(seed);
    const SimulatedJob job = simulate(spec);
    const Truth truth = find_truth(job);
    for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
      expect_streams_in_order(job.ranks[rank], spec.kernel_gap_ns);
      expect_host_in_order(job.ranks[rank]);
      expect_sound_windows(truth.ranks[rank]);
    }
    expect_sound_waits(job, truth);
    const Buckets slow =
        slow_buckets(job.ranks[0], truth.ranks[0].steps[0].start, truth.ranks[0].steps[0].end);
    EXPECT_EQ(slow.hidden_comm, truth.ranks[0].steps[0].buckets.hidden_comm);
    EXPECT_EQ(slow.exposed_comm, truth.ranks[0].steps[0].buckets.exposed_comm);
    EXPECT_EQ(slow.memory_only, truth.ranks[0].steps[0].buckets.memory_only);
    EXPECT_EQ(slow.compute_only, truth.ranks[0].steps[0].buckets.compute_only);
    if (HasFailure()) return;
  }
}

// The largest values that are allowed, under the sanitizers of the asan preset.
TEST(SimulateProperties, TheLargestValuesFit) {
  JobSpec spec{
      .dp = 2, .tp = 2, .pp = 2, .ranks_per_host = 1, .layers = 2, .steps = 2, .microbatches = 2};
  spec.moe = true;
  spec.top_k = 64;
  spec.hidden = 1;
  spec.layer_bytes = 100'000'000'000;
  spec.activation_bytes = 10'000'000'000;
  spec.bucket_bytes = 1'000'000'000;
  for (Ns* time :
       {&spec.layer_forward_ns, &spec.embedding_ns, &spec.loss_ns, &spec.optimizer_ns,
        &spec.launch_latency_ns, &spec.kernel_gap_ns, &spec.event_latency_ns, &spec.launch_ns,
        &spec.event_call_ns, &spec.range_ns, &spec.input_ns, &spec.inter.alpha_ns}) {
    *time = 10'000'000'000;
  }
  spec.inter.gbs = 0.1;
  spec.noise = spec.moe_imbalance = 0.5;
  const Truth truth = find_truth(simulate(spec));
  for (const RankTruth& rank : truth.ranks) expect_sound_windows(rank);
}

std::string text_of(const JobSpec& spec, int rank) {
  Sink sink;
  write_kineto(simulate(spec), rank, sink);
  return sink.text();
}

TEST(SimulateProperties, SameSeedSameBytes) {
  JobSpec spec{.dp = 2, .tp = 2, .layers = 2, .steps = 2};
  const std::string first = text_of(spec, 3);
  EXPECT_EQ(first, text_of(spec, 3));
  ++spec.seed;
  EXPECT_NE(first, text_of(spec, 3));
}

TEST(SimulateProperties, AHealthyDefaultJobHidesHalfToMostOfItsCommunication) {
  const Truth truth = find_truth(simulate({.dp = 4, .tp = 2}));
  for (const RankTruth& rank : truth.ranks) {
    const double overlap =
        static_cast<double>(rank.buckets.hidden_comm) /
        static_cast<double>(rank.buckets.hidden_comm + rank.buckets.exposed_comm);
    EXPECT_GT(overlap, 0.4);
    EXPECT_LT(overlap, 0.95);
  }
}

// --- Files ---

// A run on disk, read back by a script that knows only the file format and the definitions.
void expect_files_agree(const std::string& name, const Scenario& scenario) {
  const std::string folder = testing::TempDir() + "commlens_simulate_" + name;
  std::filesystem::remove_all(folder);
  write_run(scenario, folder + "/deep");
  EXPECT_EQ(std::system(("python3 " COMMLENS_SIMULATE_CHECK " " + folder + "/deep").c_str()), 0)
      << name;
  std::filesystem::remove_all(folder);
}

TEST(SimulateFiles, AgreeWithTheTruthBesideThem) {
  expect_files_agree("ddp_tp", {.spec = {.dp = 2, .tp = 2, .layers = 3, .steps = 2}});
  expect_files_agree("fsdp_moe_pp", {.spec = {.dp = 2,
                                              .pp = 2,
                                              .ranks_per_host = 2,
                                              .layers = 5,
                                              .steps = 2,
                                              .microbatches = 3,
                                              .fsdp = true,
                                              .moe = true}});
  expect_files_agree("alone", {.spec = {.dp = 1, .layers = 1, .steps = 1}});
  expect_files_agree("bare", {.spec = two_replicas()});
  expect_files_agree("options",
                     {.spec = {.dp = 2, .layers = 2, .steps = 1},
                      .record = {.sync_records = false, .flows = false, .kernel_seq = true}});
  expect_files_agree("unknown_hosts",
                     {.spec = {.dp = 2, .layers = 2, .steps = 1}, .record = {.hosts = false}});
}

TEST(SimulateFiles, AgreeWithTheTruthBesideThemWhateverIsWrong) {
  const JobSpec spec{.dp = 4, .ranks_per_host = 2, .layers = 2, .steps = 3, .moe = true};
  expect_files_agree(
      "machine_faults",
      {.spec = spec,
       .faults = {.list = {parse_slow("1:1.5@11"), parse_late("2:700"), parse_slow_link("0-1:3"),
                           parse_unequal("3:2"), parse_clock("1:-1234.5")},
                  .end_jitter_ns = 3'000}});
  const std::vector<Fault> holes{parse_lose("1:3@start"), parse_window_shift("2:500"),
                                 parse_missing("3")};
  expect_files_agree("holes",
                     {.spec = {.dp = 6, .layers = 2, .steps = 2}, .faults = {.list = holes}});
}

TEST(SimulateFiles, RefusesAFolderThatCannotBe) {
  EXPECT_THROW(write_run({}, "/dev/null/run"), Error);
  EXPECT_THROW(write_run({.spec = {.dp = 0}}, testing::TempDir() + "never"), Error);
  EXPECT_FALSE(std::filesystem::exists(testing::TempDir() + "never"));
}

TEST(SimulateFiles, RefusesAFolderWithRanksOfALargerRun) {
  const std::string folder = testing::TempDir() + "commlens_simulate_again";
  std::filesystem::remove_all(folder);
  const JobSpec larger{.dp = 3, .layers = 1, .steps = 1};
  write_run({.spec = larger}, folder);
  write_run({.spec = larger}, folder);
  try {
    write_run({.spec = {.dp = 2, .layers = 1, .steps = 1}}, folder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              folder + ": holds rank-2.json of another, larger run; name an empty folder");
  }
  std::filesystem::remove_all(folder);
}

TEST(SimulateFiles, ApplyARanksClock) {
  SimulatedJob job = simulate({.layers = 1, .steps = 1});
  Sink before;
  write_kineto(job, 1, before);
  job.ranks[1].clock = {.offset_ns = 1'500'000};
  Sink after;
  write_kineto(job, 1, after);
  const auto first_ts = [](const Sink& sink) {
    const std::size_t at = sink.text().find("\"ts\": ") + 6;
    return sink.text().substr(at, sink.text().find(',', at) - at);
  };
  EXPECT_EQ(first_ts(before), "3216540987654.321");
  EXPECT_EQ(first_ts(after), "3216540989154.321");
  job.ranks[1].clock = {.offset_ns = 5, .drift_ppb = 100'000};
  EXPECT_EQ(job.ranks[1].clock.at(2'500'000'000), 2'500'000'000 + 5 + 250'000);
}

}  // namespace
}  // namespace commlens::simulate
