// Faults of simulated jobs, each on a job small enough to work out by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "bare_job.h"
#include "base/error.h"
#include "simulate/fault_truth.h"
#include "simulate/fault_words.h"
#include "simulate/kineto_writer.h"
#include "simulate/truth.h"

namespace commlens::simulate {
namespace {

using Span = std::pair<Ns, Ns>;

std::vector<Span> communications(const SimulatedJob& job, std::size_t rank) {
  std::vector<Span> spans;
  for (const GpuEvent& event : job.ranks[rank].gpu) {
    if (event.collective >= 0) spans.emplace_back(event.start, event.end);
  }
  return spans;
}

struct Outcome {
  SimulatedJob job;
  FaultTruth truth;  // of the first fault
};

Outcome run_with(const JobSpec& spec, const std::vector<Fault>& faults,
                 const RecordOptions& record = {}) {
  const Scenario scenario{.spec = spec, .faults = {.list = faults}, .record = record};
  Outcome outcome{.job = simulate(spec, scenario.faults), .truth = {}};
  outcome.truth = find_fault_truth(scenario, outcome.job).at(0);
  return outcome;
}

// The healthy job, in us (bare_job.h): forward 70-1070, backward of the mlp until 2030, of
// attention until 3070; all-reduce 2030-2060 and 3070-3090; optimizer until 3190, a copy until
// 3192.

TEST(Faults, ASlowRank) {
  const auto [job, truth] = run_with(two_replicas(), {parse_slow("1:1.5")});
  // Rank 1: forward 70-1570, the mlp's backward 1440 more, attention's 1560.
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{2'030'000, 3'040'000}, {3'070'000, 4'590'000}}));
  EXPECT_EQ(communications(job, 1),
            (std::vector<Span>{{3'010'000, 3'040'000}, {4'570'000, 4'590'000}}));
  EXPECT_EQ(truth.cause, "compute");
  EXPECT_EQ(truth.extra, 1'550'000);  // its optimizer takes 50 more
  EXPECT_DOUBLE_EQ(truth.share_of_step, 1550.0 / 4742);
  EXPECT_EQ(truth.added_waits, 980'000 + 1'500'000);
  EXPECT_EQ(truth.added_exposed_waits, 1'500'000);  // the first is under rank 0's backward
  EXPECT_DOUBLE_EQ(truth.exposed_share, 1500.0 / (2 * 4742));
  EXPECT_EQ(truth.hidden_by, "");
}

TEST(Faults, ASlowRankInOneStep) {
  JobSpec spec = two_replicas();
  spec.steps = 3;
  const auto [job, truth] = run_with(spec, {parse_slow("1:1.5@11")});
  const std::vector<Span> spans = communications(job, 0);
  EXPECT_EQ(spans[1], (Span{3'070'000, 3'090'000}));
  EXPECT_EQ(spans[3], (Span{3'192'000 + 3'070'000, 3'192'000 + 4'590'000}));
  // Rank 0 was done with step 11 by 50 before rank 1, and waits for it in step 12.
  EXPECT_EQ(spans[5],
            (Span{2 * 3'192'000 + 1'500'000 + 3'070'000, 2 * 3'192'000 + 1'550'000 + 3'090'000}));
  EXPECT_EQ(truth.fault.steps, std::vector<std::int64_t>{11});
  EXPECT_EQ(truth.extra, 1'550'000);
  EXPECT_DOUBLE_EQ(truth.share_of_step, 1550.0 / ((3 * 3192.0 + 1550) / 3));
}

TEST(Faults, ALateHost) {
  const auto [job, truth] = run_with(two_replicas(), {parse_late("1:400")});
  // Four times 100: before the first kernel, the mlp's forward, its backward, inside attention's.
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{2'030'000, 2'360'000}, {3'070'000, 3'490'000}}));
  EXPECT_EQ(communications(job, 1),
            (std::vector<Span>{{2'330'000, 2'360'000}, {3'470'000, 3'490'000}}));
  EXPECT_EQ(truth.cause, "host");
  EXPECT_EQ(truth.extra, 400'000);
  EXPECT_EQ(truth.added_waits, 700'000);
  EXPECT_EQ(truth.added_exposed_waits, 400'000);
  EXPECT_EQ(find_truth(job).ranks[1].buckets.idle, 400'000);
}

TEST(Faults, ASlowLink) {
  const auto [job, truth] = run_with(two_replicas(), {parse_slow_link("1-0:3")});
  EXPECT_EQ(communications(job, 0),
            (std::vector<Span>{{2'030'000, 2'120'000}, {3'070'000, 3'130'000}}));
  EXPECT_EQ(truth.cause, "link");
  EXPECT_EQ(truth.extra, 40'000);
  EXPECT_EQ(truth.added_waits, 0);
  EXPECT_EQ(truth.hidden_by, "there is no other pair to compare the link with");
}

TEST(Faults, ALinkOfARing) {
  JobSpec spec = two_replicas();
  spec.dp = 4;
  const Ns healthy = simulate(spec).collectives[0].transfer;
  const auto transfer = [&spec](std::string_view words) {
    return simulate(spec, {.list = {parse_slow_link(words)}}).collectives[0].transfer;
  };
  EXPECT_EQ(transfer("1-2:2"), 2 * healthy);
  EXPECT_EQ(transfer("3-0:2"), 2 * healthy);
  EXPECT_EQ(transfer("0-2:2"), healthy);  // not neighbours
  EXPECT_EQ(run_with(spec, {parse_slow_link("1-2:2")}).truth.hidden_by,
            "the link is only used inside groups of more than two");
}

TEST(Faults, ALinkOfPairsCanBeKnown) {
  JobSpec spec = bare_job();
  spec.dp = 2;
  spec.pp = 2;
  spec.layers = 2;
  spec.activation_bytes = 1'000'000;  // 10 us + 10 us
  const auto [job, truth] = run_with(spec, {parse_slow_link("1-3:2")});
  EXPECT_EQ(truth.hidden_by, "");
  for (const Collective& collective : job.collectives) {
    if (!collective.point_to_point) continue;
    EXPECT_EQ(collective.transfer, collective.members[0].rank % 2 == 1 ? 40'000 : 20'000);
  }
}

JobSpec two_experts() {
  JobSpec spec = bare_job();
  spec.dp = 2;
  spec.moe = true;
  spec.hidden = 500;
  spec.top_k = 1;
  spec.activation_bytes = 2'000'000;  // 2000 rows of 1000 bytes, 1000 to each
  return spec;
}

Ns expert_time(const SimulatedJob& job, std::size_t rank) {
  Ns time = 0;
  for (const GpuEvent& event : job.ranks[rank].gpu) {
    if (event.kernel == catalog().experts_forward[0].type) time += event.end - event.start;
  }
  return time;
}

TEST(Faults, UnequalWork) {
  const auto [job, truth] = run_with(two_experts(), {parse_unequal("1:1.5")});
  // As popular as 1000 and 1500 of 2500, of 2000 rows.
  const Collective& dispatch = job.collectives[0];
  EXPECT_EQ(rows_sent(dispatch, 0), (std::vector<std::int64_t>{800, 1200}));
  EXPECT_EQ(dispatch.transfer, 22'000);  // 10 us + 1.2 MB / 100 GB/s
  EXPECT_EQ(dispatch.members[0].in_elements, 2000 * 500);
  EXPECT_EQ(dispatch.members[0].out_elements, 1600 * 500);
  EXPECT_EQ(dispatch.members[1].out_elements, 2400 * 500);
  const Collective& combine = job.collectives[1];
  EXPECT_EQ(combine.members[1].in_elements, 2400 * 500);
  EXPECT_EQ(combine.members[1].out_elements, 2000 * 500);
  EXPECT_EQ(expert_time(job, 0), 3 * 320'000);  // of 400 forward, twice that backward
  EXPECT_EQ(expert_time(job, 1), 3 * 480'000);
  EXPECT_EQ(truth.cause, "imbalance");
  // Three times a fifth of 420 (with the activation's 20) and four exchanges 2 longer.
  EXPECT_EQ(truth.extra, 3 * 84'000 + 4 * 2'000);
  EXPECT_EQ(truth.added_waits, 3 * 168'000);
}

TEST(Faults, UnequalWorkInOneStep) {
  JobSpec spec = two_experts();
  spec.steps = 2;
  const SimulatedJob job = simulate(spec, {.list = {parse_unequal("1:1.5@11")}});
  EXPECT_EQ(expert_time(job, 0), 3 * 400'000 + 3 * 320'000);
  EXPECT_EQ(expert_time(job, 1), 3 * 400'000 + 3 * 480'000);
}

TEST(Faults, AClock) {
  JobSpec spec = two_replicas();
  spec.ranks_per_host = 1;
  const auto [job, truth] = run_with(spec, {parse_clock("1:-250.5,20")});
  EXPECT_EQ(job.ranks[0].clock.offset_ns, 0);
  EXPECT_EQ(job.ranks[1].clock.offset_ns, -250'500);
  EXPECT_EQ(job.ranks[1].clock.drift_ppb, 20'000);
  EXPECT_EQ(truth.cause, "");
}

std::int64_t lost(const RankTrace& trace) { return std::ranges::count(trace.lost, true); }

TEST(Faults, LostEvents) {
  const auto trace = [](std::string_view words) {
    return simulate(two_replicas(), {.list = {parse_lose(words)}}).ranks[0];
  };
  // After the first all-reduce: attention's backward, the embedding's, the second all-reduce, the
  // optimizer, the copy.
  const RankTrace start = trace("0:1@start");
  EXPECT_EQ(static_cast<std::int64_t>(start.gpu.size()) - lost(start), 4 + 1 + 1 + 3 + 1);
  // The second all-reduce and what follows it.
  EXPECT_EQ(lost(trace("0:1@end")), 1 + 3 + 1);
  EXPECT_EQ(lost(trace("0:7")), 7);
  EXPECT_EQ(trace("0:7").lost, trace("0:7@random").lost);
  EXPECT_EQ(lost(trace("0:1000")), static_cast<std::int64_t>(start.gpu.size()));
}

TEST(Faults, EventsAreLostOfWhatTheWindowHolds) {
  const Faults faults{.list = {parse_lose("0:1@start"), parse_window_shift("0:2040")}};
  const RankTrace trace = simulate(two_replicas(), faults).ranks[0];
  // Open at 2040, the first all-reduce and the kernel beside it are not there: only the second is.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < trace.gpu.size(); ++i)
    kept += trace.gpu[i].start >= trace.opens && !trace.is_lost(i) ? 1U : 0U;
  EXPECT_EQ(kept, 3U + 1U);
}

TEST(Faults, EndsScatter) {
  const SimulatedJob job = simulate(two_replicas(), {.end_jitter_ns = 3'000});
  Ns most = 0;
  for (std::size_t i = 0; i < job.collectives.size(); ++i) {
    for (std::size_t member = 0; member < 2; ++member) {
      const Ns late = job.collectives[i].members[member].late_exit;
      EXPECT_GE(late, 0);
      EXPECT_LE(late, 3'000);
      most = std::max(most, late);
      const std::vector<Attendance>& parts = job.attendance[i];
      const Ns together = std::max(parts[0].entry, parts[1].entry);
      EXPECT_EQ(parts[member].exit, together + job.collectives[i].transfer + late);
    }
  }
  EXPECT_GT(most, 0);
}

TEST(Faults, CannotBeKnownWithoutTheCulpritsTrace) {
  JobSpec spec = two_replicas();
  spec.dp = 3;
  EXPECT_EQ(run_with(spec, {parse_slow("1:2"), parse_missing("1")}).truth.hidden_by,
            "the culprit has no trace");
  EXPECT_EQ(run_with(spec, {parse_slow("1:2"), parse_missing("0")}).truth.hidden_by,
            "a member of each of its operations has no trace, and may have come later still");
  EXPECT_EQ(
      run_with(spec, {parse_slow("1:2"), parse_missing("0"), parse_missing("2")}).truth.hidden_by,
      "only one rank has a trace");
  spec.dp = spec.tp = 2;  // its tensor-parallel group is whole
  EXPECT_EQ(run_with(spec, {parse_slow("1:2"), parse_missing("3")}).truth.hidden_by, "");
}

TEST(Faults, CannotBeKnownWithoutGroupsOnSeveralClocks) {
  JobSpec spec = two_replicas();
  EXPECT_EQ(run_with(spec, {parse_slow("1:2")}, {.metadata = false}).truth.hidden_by, "");
  const std::string reason =
      "without group data, operations of ranks on different clocks cannot be matched";
  EXPECT_EQ(
      run_with(spec, {parse_slow("1:2")}, {.hosts = false, .metadata = false}).truth.hidden_by,
      reason);
  spec.ranks_per_host = 1;
  EXPECT_EQ(run_with(spec, {parse_slow("1:2")}, {.metadata = false}).truth.hidden_by, reason);
}

TEST(Faults, OfOneKindAddUp) {
  // The slower of two slow ranks sets the pace: without it, the other one would.
  JobSpec spec = two_replicas();
  spec.dp = 3;
  const auto [job, truth] = run_with(spec, {parse_slow("1:1.5"), parse_slow("2:1.25")});
  const auto [alone, other] = run_with(spec, {parse_slow("2:1.25")});
  EXPECT_EQ(truth.extra, 775'000);  // half of 3100 minus a quarter of it
  EXPECT_EQ(other.extra, 775'000);
}

// --- Words ---

TEST(FaultWords, AreRead) {
  const Fault slow = parse_slow("3:1.25@12..14,20");
  EXPECT_EQ(slow.rank, 3);
  EXPECT_EQ(slow.factor_ppm, 1'250'000);
  EXPECT_EQ(slow.steps, (std::vector<std::int64_t>{12, 13, 14, 20}));
  EXPECT_EQ(parse_slow("0:2").factor_ppm, 2'000'000);
  EXPECT_EQ(parse_slow("0:.5").factor_ppm, 500'000);
  EXPECT_EQ(parse_late("5:0.5").amount_ns, 500);
  const Fault link = parse_slow_link("2-13:4");
  EXPECT_EQ(link.rank, 2);
  EXPECT_EQ(link.peer, 13);
  EXPECT_EQ(parse_lose("1:4@end").place, LosePlace::end);
  EXPECT_EQ(parse_lose("1:4").count, 4);
  EXPECT_EQ(parse_seq("wrong"), SeqKind::process);
  EXPECT_TRUE(parse_metadata("full"));
  EXPECT_FALSE(parse_sync_records("none"));
}

TEST(FaultWords, AreRefusedInOneSentence) {
  const auto message = [](auto parse, std::string_view text) -> std::string {
    try {
      parse(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(parse_slow, "3"),
            "--slow: \"3\" is not RANK:FACTOR[@STEPS], such as 3:1.3 or 3:2@12..14");
  for (const std::string_view text : {"", ":", "x:2", "-1:2", "1:", "1:x", "1:-2", "1:2.", "1:2@"})
    EXPECT_NE(message(parse_slow, text) + (text == "1:2." ? "allowed" : ""), "") << text;
  for (const std::string_view text : {"1:4@middle", "1", "1:x"})
    EXPECT_NE(message(parse_lose, text), "") << text;
  for (const std::string_view text : {"1:2", "1-:2", "1-2"})
    EXPECT_NE(message(parse_slow_link, text), "") << text;
  for (const std::string_view text : {"1", "1:", "1:2,", "x:1"})
    EXPECT_NE(message(parse_clock, text), "") << text;
  EXPECT_EQ(message(parse_metadata, "all"),
            "--metadata: \"all\" is not full or none, such as none");
  EXPECT_EQ(message(parse_sync_records, ""),
            "--sync-records: \"\" is not full or none, such as none");
}

TEST(FaultWords, MustFitTheJob) {
  const auto message = [](const Fault& fault) -> std::string {
    try {
      validate({.dp = 2}, {.list = {fault}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(parse_slow("1:2")), "");
  EXPECT_EQ(message(parse_slow("2:2")), "simulate: slow: the rank is 2, but must be from 0 to 1");
  EXPECT_EQ(message(parse_slow("1:2@14")),
            "simulate: slow: the step is 14, but must be from 10 to 13");
  EXPECT_EQ(message(parse_slow("1:0.01")), "simulate: slow: the factor must be from 0.1 to 1000");
  EXPECT_EQ(message(parse_clock("1:5")), "simulate: clock: the host is 1, but must be from 0 to 0");
  EXPECT_EQ(message(parse_slow_link("1-1:2")), "simulate: slow_link: a link has two ends");
  EXPECT_NE(message(parse_unequal("1:2")), "");
  EXPECT_EQ(message(parse_missing("0")), "");
}

// --- Files ---

std::string truth_text(const Scenario& scenario) {
  Sink sink;
  write_truth(scenario, simulate(scenario.spec, scenario.faults), sink);
  return sink.text();
}

TEST(FaultTruth, StandsInTheFileWhereThereAreFaults) {
  EXPECT_EQ(truth_text({.spec = two_replicas()}).find("\"faults\""), std::string::npos);
  const std::string text =
      truth_text({.spec = two_replicas(), .faults = {.list = {parse_slow("1:1.5")}}});
  EXPECT_NE(text.find("\"cause\": \"compute\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"extra_ns\": 1550000"), std::string::npos);
  EXPECT_NE(
      truth_text({.spec = two_replicas(), .record = {.metadata = false}}).find("\"metadata_none\""),
      std::string::npos);
}

TEST(FaultRecording, SaysNothingThatItShouldNot) {
  const SimulatedJob job =
      simulate({.dp = 2, .pp = 2, .ranks_per_host = 2, .layers = 2, .steps = 1});
  const auto text = [&job](const RecordOptions& options) {
    Sink sink;
    write_kineto(job, 3, sink, options);
    return sink.text();
  };
  const auto says = [](const std::string& all, std::string_view part) {
    return all.find(part) != std::string::npos;
  };
  const std::string full = text({});
  const std::string no_seq = text({.seq = SeqKind::none});
  EXPECT_TRUE(says(full, "\"Seq\""));
  EXPECT_FALSE(says(no_seq, "\"Seq\""));
  const std::string no_metadata = text({.metadata = false});
  for (const std::string_view word : {"Collective name", "Process Group", "pg_config", "dtype"}) {
    EXPECT_TRUE(says(full, word)) << word;
    EXPECT_FALSE(says(no_metadata, word)) << word;
  }
  const std::string no_hosts = text({.hosts = false});
  EXPECT_TRUE(says(full, "node-1"));
  EXPECT_TRUE(says(full, "\"device\": 1"));
  EXPECT_FALSE(says(no_hosts, "node-"));
  EXPECT_FALSE(says(no_hosts, "\"device\": 1"));
}

}  // namespace
}  // namespace commlens::simulate
