// Findings: of simulated jobs against the same jobs without the fault, and of recordings made by
// hand for what no simulated job has.
#include "advice/advice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "advice/candidate.h"
#include "made_recording.h"
#include "match/exposure.h"
#include "match/group_roles.h"
#include "match/stragglers.h"
#include "match/transfer_fits.h"
#include "match/waiting.h"
#include "replay/critical_path.h"
#include "replay/what_if.h"
#include "simulate/change.h"
#include "simulate/fault_words.h"
#include "simulate/write_run.h"
#include "staged_job.h"
#include "study/study.h"

namespace commlens {
namespace {

// All stages that findings build on.
Job related(std::vector<Recording> recordings) {
  Job job = staged_job(std::move(recordings));
  assign_group_roles(job);
  for (RankTimeline& rank : job.ranks) {
    for (DeviceTimeline& device : rank.devices) {
      WindowFigures figures = window_figures(device, device.extent);
      device.breakdown = figures.breakdown;
      device.exposures = std::move(figures.exposures);
    }
  }
  job.waits = find_waits(job, 1);
  job.transfer_fits = find_transfer_fits(job);
  job.stragglers = find_stragglers(job);
  return job;
}

Findings advised(Job& job, unsigned threads = 1) {
  const Graph graph(job);
  job.path = find_critical_path(graph);
  return find_advice(graph, threads);
}

// Through files, as users have it.
Study simulated(const simulate::Scenario& scenario, unsigned threads = 1) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("commlens_advice_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  simulate::write_run(scenario, folder.string());
  StudyOptions options;
  options.paths = {folder.string()};
  options.jobs = threads;
  Study study = run_study(options);
  std::filesystem::remove_all(folder);
  return study;
}

simulate::Scenario job_with(int dp, int pp, std::vector<simulate::Fault> faults) {
  simulate::Scenario scenario;
  scenario.spec.dp = dp;
  scenario.spec.pp = pp;
  scenario.spec.layers = 4;
  scenario.spec.steps = 6;
  scenario.faults.list = std::move(faults);
  return scenario;
}

Ns step_of(const simulate::Scenario& scenario) {
  return simulate::find_step_time(simulate::simulate(scenario.spec, scenario.faults)).step();
}

const Finding* find(const Findings& findings, std::string_view id) {
  const auto found = std::find_if(findings.rows.begin(), findings.rows.end(),
                                  [id](const Finding& finding) { return finding.id == id; });
  return found == findings.rows.end() ? nullptr : &*found;
}

// What is claimed for a fault is what the same job without it gains, within a twentieth.
void expect_gain(simulate::Scenario scenario, std::string_view id) {
  const Study study = simulated(scenario);
  const Findings& findings = study.job.findings;
  const Finding* finding = find(findings, id);
  ASSERT_NE(finding, nullptr) << id;
  const Ns with = step_of(scenario);
  scenario.faults.list.clear();
  const auto gain = static_cast<double>(with - step_of(scenario));
  EXPECT_NEAR(static_cast<double>(finding->alone), gain, 0.05 * gain) << id;
  EXPECT_EQ(finding->confidence, Confidence::certain);
}

TEST(Advice, ASlowRankCostsWhatTheJobIsSlowerBy) {
  expect_gain(job_with(4, 1, {simulate::parse_slow("2:1.3")}), "slow_rank");
}

TEST(Advice, ALateHostCostsWhatTheJobIsSlowerBy) {
  expect_gain(job_with(4, 1, {simulate::parse_late("1:6000")}), "late_host");
}

// What is next once rank 2 is mended is told with it: by what the job gains then.
void expect_next_gain(simulate::Scenario scenario, std::string_view id, std::string_view rank) {
  const Study study = simulated(scenario);
  const Findings& findings = study.job.findings;
  const auto next =
      std::find_if(findings.rows.begin(), findings.rows.end(), [&](const Finding& finding) {
        return finding.id == id && finding.title.find(rank) != std::string::npos;
      });
  ASSERT_NE(next, findings.rows.end()) << id;
  std::erase_if(scenario.faults.list, [](const simulate::Fault& fault) { return fault.rank == 2; });
  const Ns with = step_of(scenario);
  scenario.faults.list.clear();
  const auto gain = static_cast<double>(with - step_of(scenario));
  EXPECT_NEAR(static_cast<double>(next->recoverable), gain, 0.1 * gain);
  EXPECT_LT(next->alone, next->recoverable / 4);
  EXPECT_NE(next->title.find("behind a later rank"), std::string::npos) << next->title;
  const Finding* calls = find(findings, "synchronisation");
  EXPECT_LT(calls == nullptr ? 0 : calls->recoverable, next->recoverable / 4);
}

TEST(Advice, ALateHostBehindASlowRankIsNotBlamedOnSynchronisation) {
  expect_next_gain(job_with(4, 1, {simulate::parse_slow("2:1.3"), simulate::parse_late("1:3000")}),
                   "late_host", "rank 1");
}

TEST(Advice, ASecondSlowRankIsToldBehindTheFirst) {
  expect_next_gain(job_with(4, 1, {simulate::parse_slow("2:1.4"), simulate::parse_slow("1:1.2")}),
                   "slow_rank", "Rank 1");
}

Ns recoverable_of(const Findings& findings, std::string_view id) {
  Ns sum = 0;
  for (const Finding& finding : findings.rows) sum += finding.id == id ? finding.recoverable : 0;
  return sum;
}

// All findings of these kinds together gain what the job without its faults gains.
void expect_gain_of_all(simulate::Scenario scenario, std::vector<std::string_view> ids,
                        std::size_t rows, double within = 0.1) {
  const Study study = simulated(scenario);
  Ns claimed = 0;
  std::size_t found = 0;
  for (const std::string_view id : ids) {
    claimed += recoverable_of(study.job.findings, id);
    for (const Finding& finding : study.job.findings.rows) found += finding.id == id ? 1 : 0;
  }
  EXPECT_EQ(found, rows);
  const Ns with = step_of(scenario);
  scenario.faults.list.clear();
  const auto gain = static_cast<double>(with - step_of(scenario));
  EXPECT_NEAR(static_cast<double>(claimed), gain, within * gain);
}

// Of two ranks that are equally slow, mending one alone gains nothing.
TEST(Advice, EquallyLateRanksGainTogether) {
  expect_gain_of_all(job_with(4, 1, {simulate::parse_slow("0:1.2"), simulate::parse_slow("1:1.2")}),
                     {"slow_rank"}, 2);
  expect_gain_of_all(
      job_with(8, 1, {simulate::parse_late("1:6000"), simulate::parse_late("6:6000")}),
      {"late_host"}, 2);
}

TEST(Advice, OneRankCanBeSlowAndLate) {
  expect_gain_of_all(
      job_with(4, 1, {simulate::parse_slow("0:1.2"), simulate::parse_late("0:3000")}),
      {"slow_rank", "late_host"}, 2);
}

// Communication that is hidden starts later as a whole: nobody waits longer, all are slower.
TEST(Advice, ALateHostThatNoWaitShowsIsTold) {
  simulate::Scenario scenario = job_with(8, 1, {simulate::parse_late("7:8000")});
  scenario.spec.ranks_per_host = 4;
  scenario.spec.layer_forward_ns = 1'200'000;
  expect_gain_of_all(scenario, {"late_host"}, 1);
}

TEST(Advice, ABurstGainsWhatItCosts) {
  simulate::Scenario scenario = job_with(4, 1, {simulate::parse_slow("2:1.8@14")});
  scenario.spec.steps = 8;
  expect_gain_of_all(scenario, {"slow_rank"}, 1);
}

// No overlap can gain more than hiding everything does.
TEST(Advice, ExposedCommunicationGainsNoMoreThanPerfectOverlap) {
  simulate::Scenario scenario = job_with(8, 1, {});
  scenario.spec.fsdp = true;
  scenario.spec.ranks_per_host = 4;
  scenario.spec.layer_bytes = 400'000'000;
  const Study study = simulated(scenario);
  const Graph graph(study.job);
  Question overlap;
  overlap.perfect_overlap = true;
  const Prediction bound = predict(graph, overlap);
  EXPECT_LE(recoverable_of(study.job.findings, "exposed_communication"),
            bound.step - bound.predicted + 1);
}

TEST(Advice, ASlowLinkCostsWhatTheJobIsSlowerBy) {
  simulate::Scenario scenario = job_with(4, 2, {simulate::parse_slow_link("1-5:40")});
  scenario.spec.microbatches = 4;
  const Study study = simulated(scenario);
  const Findings& findings = study.job.findings;
  const Finding* finding = find(findings, "slow_link");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->title, "The link between ranks 1 and 5 is slow");
  const Ns with = step_of(scenario);
  scenario.faults.list.clear();
  const auto gain = static_cast<double>(with - step_of(scenario));
  EXPECT_NEAR(static_cast<double>(finding->alone), gain, 0.1 * gain);
}

TEST(Advice, UnequalShardingIsNamedWithItsRank) {
  simulate::Scenario scenario = job_with(8, 1, {simulate::parse_unequal("3:2")});
  scenario.spec.moe = true;
  const Study study = simulated(scenario);
  const Findings& findings = study.job.findings;
  const Finding* finding = find(findings, "unequal_sharding");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("Rank 3"), std::string::npos) << finding->title;
  const Ns with = step_of(scenario);
  scenario.faults.list.clear();
  // Routing differs by chance in the healthy job too: no more than the fault costs.
  EXPECT_GT(finding->alone, (with - step_of(scenario)) / 2);
  EXPECT_LT(finding->alone, (with - step_of(scenario)) * 3 / 2);
}

// What larger or smaller buckets are said to gain is what the same job gains that has them.
void expect_bucket_gain(simulate::Scenario scenario, std::int64_t advised, std::string_view id,
                        double within) {
  const Study study = simulated(scenario);
  const Finding* finding = find(study.job.findings, id);
  ASSERT_NE(finding, nullptr) << id;
  const Ns with = step_of(scenario);
  scenario.spec.bucket_bytes = advised;
  const auto gain = static_cast<double>(with - step_of(scenario));
  EXPECT_NEAR(static_cast<double>(finding->alone), gain, within * gain) << id;
}

// 16 ranks on two hosts, 43 MB of gradients.
simulate::Scenario bucket_job(Ns layer_time, Ns alpha, double gbs, std::int64_t bucket) {
  simulate::Scenario scenario = job_with(16, 1, {});
  scenario.spec.layers = 16;
  scenario.spec.layer_bytes = 2'700'000;
  scenario.spec.layer_forward_ns = layer_time;
  scenario.spec.inter.alpha_ns = alpha;
  scenario.spec.inter.gbs = gbs;
  scenario.spec.noise = 0;
  scenario.spec.bucket_bytes = bucket;
  return scenario;
}

TEST(Advice, LargerBucketsGainWhatAJobWithThemGains) {
  // Half of the rate is reached at 1.28 MB (120 us at 20 GB/s, of 16 ranks): four times that.
  expect_bucket_gain(bucket_job(100'000, 120'000, 20, 1'000'000), 5'120'000, "larger_buckets",
                     0.05);
}

TEST(Advice, SmallerBucketsGainWhatAJobWithThemGains) {
  // Half of the rate at 384 kB: parts of 1.5 MB.
  expect_bucket_gain(bucket_job(300'000, 60'000, 12, 22'000'000), 1'536'000, "smaller_buckets",
                     0.2);
}

// A healthy job has no culprit and no contention: kernels of one name that run beside communication
// are of other shapes there, not slower.
TEST(Advice, HealthyJobsHaveNoCulprit) {
  for (int layout = 0; layout < 4; ++layout) {
    simulate::Scenario scenario = job_with(layout == 2 ? 2 : 4, layout == 2 ? 2 : 1, {});
    scenario.spec.fsdp = layout == 1;
    scenario.spec.moe = layout == 3;
    const Study study = simulated(scenario);
    for (const Finding& finding : study.job.findings.rows) {
      for (const std::string_view id : {"slow_rank", "late_host", "slow_link", "contention",
                                        "placement", "another_stream", "start_earlier"})
        EXPECT_NE(finding.id, id) << layout << ": " << finding.evidence;
    }
  }
}

// Together they never claim more than the step, and each no more than it gains alone, if anything
// is to be left for the others.
TEST(Advice, AllFindingsTogetherFitIntoTheStep) {
  const auto check = [](const simulate::Scenario& scenario) {
    const Study study = simulated(scenario);
    const Findings& findings = study.job.findings;
    ASSERT_TRUE(findings.known);
    Ns sum = 0;
    for (std::size_t i = 0; i < findings.rows.size(); ++i) {
      const Finding& finding = findings.rows[i];
      EXPECT_GT(finding.recoverable, 0);
      EXPECT_LE(finding.alone, findings.step);
      EXPECT_FALSE(finding.evidence.empty() || finding.advice.empty() || finding.title.empty());
      if (i > 0) {
        EXPECT_LE(finding.recoverable, findings.rows[i - 1].recoverable);
      }
      sum += finding.recoverable;
    }
    EXPECT_LE(sum, findings.step);
    // Transfers that no longer take time gain no more than the recorded path holds of them.
    const Ns transfer = study.job.path.sums[static_cast<std::size_t>(PathClass::transfer)];
    for (const Finding& finding : findings.rows) {
      if (finding.id != "exposed_communication") continue;
      EXPECT_LE(finding.recoverable * scenario.spec.steps, transfer + scenario.spec.steps);
    }
  };
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    simulate::Scenario scenario = job_with(seed % 3 == 0 ? 2 : 4, seed % 3 == 0 ? 2 : 1, {});
    scenario.spec.seed = seed;
    scenario.spec.tp = seed % 4 == 1 ? 2 : 1;
    scenario.spec.fsdp = seed % 5 == 2;
    scenario.spec.inter.gbs = seed % 2 == 0 ? 5 : 40;
    scenario.spec.ranks_per_host = seed % 2 == 0 ? 2 : 8;
    if (seed % 3 == 1)
      scenario.faults.list = {simulate::parse_slow("1:1.4"), simulate::parse_late("0:900")};
    check(scenario);
  }
}

TEST(Advice, IsTheSameForAnyNumberOfThreads) {
  const simulate::Scenario scenario =
      job_with(4, 1, {simulate::parse_slow("2:1.3"), simulate::parse_late("1:2000")});
  const Study one = simulated(scenario, 1);
  const Study three = simulated(scenario, 3);
  ASSERT_EQ(one.job.findings.rows.size(), three.job.findings.rows.size());
  for (std::size_t i = 0; i < one.job.findings.rows.size(); ++i) {
    EXPECT_EQ(one.job.findings.rows[i].title, three.job.findings.rows[i].title);
    EXPECT_EQ(one.job.findings.rows[i].recoverable, three.job.findings.rows[i].recoverable);
  }
}

// What a replay gains is bounded by what is taken off the path.
TEST(Advice, NoMoreIsGainedThanThePathHolds) {
  const Study study = simulated(job_with(4, 2, {simulate::parse_slow("2:1.3")}));
  const Job& job = study.job;
  const Graph graph(job);
  const Scene scene(graph);
  for (const Finder* finder : finders()) {
    for (const Candidate& candidate : finder->find(scene)) {
      const Ns gain = job.path.window.length() - replay(graph, candidate.change).window.length();
      EXPECT_LE(gain, most_gain(graph, candidate.change)) << finder->id;
    }
  }
}

// Findings of ranks 0 and 1, which both are recorded as `write` says.
template <class Write>
Findings advised_pair(Write write) {
  std::vector<Recording> recordings;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Made made(rank, 2);
    write(made);
    recordings.push_back(made.done());
  }
  Job job = related(std::move(recordings));
  return advised(job);
}

// Microseconds.
constexpr Ns kUs = 1'000;

// Compute waits for "tp", whose data are there at 100 us, and which queues behind "dp" until 450.
//
//   stream 7   [50 100]                                  [500          900]
//   stream 20  [50         dp                450][ tp 500]
//
// With a stream of its own it ends at 150, and compute at 550: 350 us sooner, but for what passes
// until a stream sees another's event, of which the recording has no sample: 1.5 us.
TEST(Advice, AStreamOfItsOwnGainsWhatItsCommunicationQueued) {
  const Findings findings = advised_pair([](Made& made) {
    made.kernel(7, 50 * kUs, 100 * kUs, 10 * kUs);
    made.all_reduce(20, 50 * kUs, 450 * kUs, "dp", "[0, 1]", 2, 1, 11 * kUs, 10'000'000);
    made.wait(20, 7, 12 * kUs);
    made.all_reduce(20, 450 * kUs, 500 * kUs, "tp", "[0, 1]", 2, 1, 13 * kUs, 1'000'000);
    made.wait(7, 20, 14 * kUs);
    made.kernel(7, 500 * kUs, 900 * kUs, 15 * kUs);
  });
  const Finding* finding = find(findings, "another_stream");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->alone, 348'500);
  EXPECT_NE(finding->title.find("tp"), std::string::npos) << finding->title;
}

// The same communication queued behind its own group's: another stream would not help.
TEST(Advice, CommunicationOfOneGroupNeedsNoOtherStream) {
  const Findings findings = advised_pair([](Made& made) {
    made.kernel(7, 50 * kUs, 100 * kUs, 10 * kUs);
    made.all_reduce(20, 50 * kUs, 450 * kUs, "dp", "[0, 1]", 2, 1, 11 * kUs, 10'000'000);
    made.wait(20, 7, 12 * kUs);
    made.all_reduce(20, 450 * kUs, 500 * kUs, "dp", "[0, 1]", 2, 2, 13 * kUs, 1'000'000);
    made.wait(7, 20, 14 * kUs);
    made.kernel(7, 500 * kUs, 900 * kUs, 15 * kUs);
  });
  EXPECT_EQ(find(findings, "another_stream"), nullptr);
}

// Its data are there at 100 us, it is launched at 300, and what waits for it right after that.
//
//   stream 7   [20 100]                            [510        900]
//   stream 20                        [310       510]
//   launches   ^                    ^^ 300, 305
//
// In time it ends at 300; the kernel behind it is launched as before, and begins 5 us after that,
// which is what launches take where a recording has no sample: at 310 instead of 510.
TEST(Advice, CommunicationThatIsLaunchedInTimeGainsWhatItWasLate) {
  const Findings findings = advised_pair([](Made& made) {
    for (Ns i = 0; i < 8; ++i)  // launched 1 us apart, 15 us before the first runs
      made.kernel(7, (20 + 10 * i) * kUs, (30 + 10 * i) * kUs, (5 + i) * kUs);
    made.wait(20, 7, 13 * kUs);
    made.all_reduce(20, 310 * kUs, 510 * kUs, "dp", "[0, 1]", 2, 1, 300 * kUs, 10'000'000);
    made.wait(7, 20, 303 * kUs);
    made.kernel(7, 510 * kUs, 900 * kUs, 305 * kUs);
  });
  const Finding* finding = find(findings, "start_earlier");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->alone, 200 * kUs);
}

// Forty kernels of 10 us, each launched 30 us after the one before: launched in time they would run
// one behind the other, with 1 us between them, since the recording has no sample of that.
TEST(Advice, HostsThatLaunchTooSlowlyCostTheGapsBetweenKernels) {
  constexpr Ns kKernels = 40;
  const Findings findings = advised_pair([](Made& made) {
    for (Ns i = 0; i < kKernels; ++i)
      made.kernel(7, (10 + 30 * i) * kUs, (20 + 30 * i) * kUs, 30 * i * kUs);
    const Ns end = (20 + 30 * (kKernels - 1)) * kUs;
    made.wait(20, 7, end - 18 * kUs);
    made.all_reduce(20, end, end + 50 * kUs, "dp", "[0, 1]", 2, 1, end - 17 * kUs, 1'000'000);
  });
  const Finding* finding = find(findings, "host_bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->alone, 19 * kUs * (kKernels - 1));
  // Its communication is launched as late as everything.
  EXPECT_EQ(find(findings, "start_earlier"), nullptr);
}

// Beginning a message costs 100 us, the links carry 10 GB/s: half of the rate at 1 MB. 64 messages
// of 0.25 MB and 32 of 0.5 MB take 64 * 125 + 32 * 150 us; the same 32 MB in messages of 4 MB, at
// four fifths of the rate, 8 * 500 us.
TEST(Advice, SmallMessagesCostWhatBeginningThemCosts) {
  const Findings findings = advised_pair([](Made& made) {
    Ns end = 200 * kUs;
    for (std::int64_t i = 0; i < 96; ++i) {
      const std::int64_t bytes = i % 3 == 2 ? 500'000 : 250'000;
      const Ns start = end;
      end += 100 * kUs + bytes / 10;
      made.all_gather(20, start, end, "dp", "[0, 1]", 2, i + 1, i * kUs, bytes / 8);
    }
  });
  const Finding* finding = find(findings, "small_messages");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(static_cast<double>(finding->alone), 8'800.0 * kUs, 8.8 * kUs);
  EXPECT_NE(finding->advice.find("4.0 MB"), std::string::npos) << finding->advice;
}

// Three ranks a host cut one tensor-parallel pair of three in two; two a host, or four, none.
TEST(Advice, GroupsThatWouldFitIntoAHostCostWhatTheJobIsSlowerBy) {
  simulate::Scenario scenario = job_with(3, 1, {});
  scenario.spec.tp = 2;
  scenario.spec.ranks_per_host = 3;
  scenario.spec.inter = {.alpha_ns = 60'000, .gbs = 10};
  scenario.spec.layer_bytes = 1'000'000;  // of data-parallel groups, which cross hosts either way
  const Study study = simulated(scenario);
  const Finding* finding = find(study.job.findings, "placement");
  ASSERT_NE(finding, nullptr);
  const Ns with = step_of(scenario);
  scenario.spec.ranks_per_host = 2;
  const auto gain = static_cast<double>(with - step_of(scenario));
  EXPECT_NEAR(static_cast<double>(finding->alone), gain, 0.1 * gain) << finding->evidence;
  EXPECT_EQ(find(simulated(scenario).job.findings, "placement"), nullptr);
}

Ns predicted(const simulate::Scenario& scenario, const Question& question) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("commlens_ask_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  simulate::write_run(scenario, folder.string());
  StudyOptions options;
  options.paths = {folder.string()};
  options.question = question;
  const Study study = run_study(options);
  std::filesystem::remove_all(folder);
  return study.prediction ? study.prediction->predicted : -1;
}

// Several changes at once are all made: what no longer takes time cannot be merged into anything
// that does, nor bound what hides it.
TEST(WhatIf, SeveralChangesAreAllMade) {
  simulate::Scenario scenario = job_with(4, 1, {});
  scenario.spec.ranks_per_host = 2;
  scenario.spec.inter.gbs = 10;
  scenario.spec.layer_bytes = 100'000'000;
  Question removed;
  removed.ops = {{"all_reduce", std::numeric_limits<double>::infinity()}};
  const Ns gone = predicted(scenario, removed);
  Question merged = removed;
  merged.bucket = 100'000'000;
  EXPECT_EQ(predicted(scenario, merged), gone);
  Question hidden = removed;
  hidden.perfect_overlap = true;
  EXPECT_EQ(predicted(scenario, hidden), gone);
  // Twice the speed moves the bytes of any portion in half of the time.
  Question overlap;
  overlap.perfect_overlap = true;
  const Ns bound = predicted(scenario, overlap);
  overlap.comm_speed = 2;
  EXPECT_NEAR(static_cast<double>(predicted(scenario, overlap)), static_cast<double>(bound) / 2,
              static_cast<double>(bound) / 100);
}

// Steps are fixed one by one, and ranks that are fixed are no measure for each other.
TEST(WhatIf, FixedRanksAreComparedWithTheOthersStepByStep) {
  const auto expect_fixed = [](simulate::Scenario scenario, std::vector<std::int64_t> ranks) {
    Question fixed;
    fixed.fix_ranks = std::move(ranks);
    const auto told = static_cast<double>(predicted(scenario, fixed));
    scenario.faults.list.clear();
    const auto truth = static_cast<double>(step_of(scenario));
    EXPECT_NEAR(told, truth, 0.01 * truth);
  };
  expect_fixed(job_with(4, 1, {simulate::parse_slow("2:1.8@12")}), {2});
  expect_fixed(job_with(3, 1, {simulate::parse_slow("0:1.3"), simulate::parse_slow("1:1.3")}),
               {0, 1});
}

// Where hosts are slow, fewer messages are fewer calls as well.
TEST(WhatIf, FewerMessagesSpareTheirCalls) {
  simulate::Scenario scenario = job_with(4, 1, {});
  scenario.spec.range_ns = 32'000;
  scenario.spec.launch_ns = 18'000;
  scenario.spec.layer_forward_ns = 300'000;
  scenario.spec.layer_bytes = 60'000'000;
  scenario.spec.bucket_bytes = 6'800'000;
  scenario.spec.intra.gbs = 115;
  const std::int64_t twice = 13'600'000;
  const Ns truth = simulate::find_step_time(
                       simulate::simulate_changed(
                           scenario, {{.kind = simulate::ChangeKind::bucket, .bytes = twice}}))
                       .step();
  EXPECT_LT(truth, step_of(scenario) * 95 / 100);  // else there is nothing to tell
  Question merged;
  merged.bucket = twice;
  EXPECT_NEAR(static_cast<double>(predicted(scenario, merged)), static_cast<double>(truth),
              0.04 * static_cast<double>(truth));
}

// Hosts are full of tensor-parallel groups: that data-parallel ones cross is as it should be,
// although four ranks would fit.
TEST(Advice, FullHostsAreNoFaultOfPlacement) {
  simulate::Scenario scenario = job_with(4, 1, {});
  scenario.spec.tp = 4;
  scenario.spec.ranks_per_host = 4;
  scenario.spec.inter.gbs = 20;
  EXPECT_EQ(find(simulated(scenario).job.findings, "placement"), nullptr);
}

// Where all messages are sent as they become full, parts of them gain nothing.
TEST(Advice, SmallerBucketsAreNotAdvisedForLittle) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    simulate::Scenario scenario = job_with(2, 1, {});
    scenario.spec.tp = 2;
    scenario.spec.seed = seed;
    EXPECT_EQ(find(simulated(scenario).job.findings, "smaller_buckets"), nullptr) << seed;
  }
}

// A path of which much is communication whose other ranks' parts are not matched is doubted: what
// was waiting in it looks like transfer.
TEST(Advice, UnmatchedCommunicationMakesThePathDoubtful) {
  Job job = related([] {
    std::vector<Recording> recordings;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      Made made(rank, 2);
      made.kernel(7, 50 * kUs, 100 * kUs, 10 * kUs);
      made.all_reduce(20, 100 * kUs, 200 * kUs, "dp", "[0, 1]", 2, 1, 11 * kUs);
      // The second one of rank 1 was not recorded.
      if (rank == 0) made.all_reduce(20, 200 * kUs, 400 * kUs, "dp", "[0, 1]", 2, 2, 12 * kUs);
      recordings.push_back(made.done());
    }
    return recordings;
  }());
  advised(job);
  EXPECT_FALSE(job.path.sure);
  EXPECT_NE(job.path.doubt.find("57 % of it is communication of which not every rank's part is"),
            std::string::npos)
      << job.path.doubt;
}

// Eight steps of six kernels of one name. Communication runs beside all of them in steps where
// `meets` says so, and beside the last three of them in all steps where `always` does; `beside` is
// how many times as long they take then.
Recording steps_beside(bool alternating, bool always, double beside) {
  Made made;
  Ns end = 1'000'000;
  for (Ns step = 0; step < 8; ++step) {
    const Ns host = step * 20'000;  // everything is launched long before it runs
    made.step(step, host, host + 19'000);
    const bool meets = alternating && step % 2 == 1;
    Ns comm = 0;
    for (Ns k = 0; k < 6; ++k) {
      if (comm == 0 && (meets || (always && k == 3))) comm = end;
      const Ns length = 100'000 + 10'000 * k;
      const Ns own = comm != 0 ? static_cast<Ns>(static_cast<double>(length) * beside) : length;
      made.kernel(7, end, end + own, host + 1'000 + k * 1'000);
      end += own;
    }
    const Ns comm_end = comm == 0 ? end + 50'000 : end;
    made.all_reduce(20, comm == 0 ? end : comm, comm_end, "default_pg", "[0, 1]", 2, step + 1,
                    host + 10'000);
    // Too late after it to have waited for it.
    end = comm == 0 ? comm_end + 20'000 : comm_end;
  }
  return made.done();
}

Findings advised_beside(bool alternating, bool always, double beside) {
  std::vector<Recording> recordings;
  recordings.push_back(steps_beside(alternating, always, beside));
  Job job = related(std::move(recordings));
  return advised(job);
}

// A kernel that is 1.2 times as long in steps in which communication runs beside it: three of the
// eight steps count (the first and the last may be cut), (620 + 750 us) ... of which a sixth is
// lost.
TEST(Contention, IsToldByTheSameKernelAloneAndBeside) {
  const Findings findings = advised_beside(true, false, 1.2);
  const Finding* finding = find(findings, "contention");
  ASSERT_NE(finding, nullptr);
  // 750 us alone, 900 beside, in four of eight steps: 75 us a step. The job ends with the last
  // communication, which does not get shorter: three of the four gain.
  EXPECT_EQ(finding->alone, 56'250);
  EXPECT_NE(finding->title.find("75.0 us"), std::string::npos) << finding->title;
}

TEST(Contention, LongerKernelsBesideCommunicationAreNoEvidence) {
  EXPECT_EQ(find(advised_beside(false, true, 2), "contention"), nullptr);
  EXPECT_EQ(find(advised_beside(true, false, 1), "contention"), nullptr);
  EXPECT_EQ(find(advised_beside(true, false, 1.01), "contention"), nullptr);
}

}  // namespace
}  // namespace commlens
