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
    end = comm_end;
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
