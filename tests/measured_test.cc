// Readers of measured communications, and what their durations say of waiting: against values
// worked out by hand from tests/data/measured/.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "base/error.h"
#include "ingest/format.h"
#include "ingest/measured_format.h"
#include "match/measured_match.h"
#include "model/measured_stats.h"

namespace commlens {
namespace {

const std::string kData = COMMLENS_TEST_DATA "/measured/";

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

Measured read_text(std::string_view format, std::string_view text) {
  Source source = Source::memory("test", text);
  Measured measured;
  measured.path = "test";
  find_measured_format(format)->read(source, "", measured);
  return measured;
}

Measured read_file(const std::string& name) {
  const std::string text = text_of_file(kData + name);
  const MeasuredFormat* format = detect_measured_format(text);
  if (format == nullptr) {
    ADD_FAILURE() << name;
    return {};
  }
  return read_text(format->name, text);
}

std::string complaint(std::string_view format, std::string_view text) {
  try {
    read_text(format, text);
    return "nothing";
  } catch (const Error& error) {
    return error.what();
  }
}

MeasuredJob inspector_job() {
  MeasuredJob job;
  for (const char* pid : {"1000", "1001", "1002", "1003"}) {
    job.files.push_back(read_file("inspector/node-a-pid" + std::string(pid) + ".log"));
  }
  match_measured(job);
  return job;
}

TEST(Inspector, RecordsBecomeCalls) {
  const Measured measured = read_file("inspector/node-a-pid1000.log");
  EXPECT_EQ(measured.host, "node-a");
  EXPECT_EQ(measured.process, 1000);
  ASSERT_EQ(measured.groups.size(), 1U);
  EXPECT_EQ(measured.groups[0].id, "0x5eed0001");
  EXPECT_EQ(measured.groups[0].name, "world");
  EXPECT_EQ(measured.groups[0].size, 4);
  ASSERT_EQ(measured.calls.size(), 7U);
  const MeasuredCall& first = measured.calls[0];
  EXPECT_EQ(first.op, Op::all_reduce);
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.number, 0);
  EXPECT_EQ(first.bytes, 1048576);
  EXPECT_EQ(first.time, 50'000);
  EXPECT_EQ(first.timed_by, TimedBy::kernel_gpu);
  // An all-gather of 1000 bytes a rank is one of 4000 to nccl-tests.
  EXPECT_EQ(measured.calls[6].message, 1000);
  EXPECT_EQ(measured.calls[6].bytes, 4000);
}

TEST(Inspector, OddRecordsAreNotedAndTheRestIsUsed) {
  const Measured uint8 = read_file("inspector/node-a-pid1001.log");
  EXPECT_EQ(uint8.notes.count(Note::absurd_size), 1);
  EXPECT_EQ(uint8.calls.back().number, 4);
  EXPECT_EQ(uint8.calls.back().bytes, -1);
  EXPECT_EQ(uint8.calls.back().time, 7000);
  const Measured p2p = read_file("inspector/node-a-pid1002.log");
  EXPECT_EQ(p2p.notes.count(Note::odd_peer), 1);
  EXPECT_EQ(p2p.calls.back().op, Op::send);
  EXPECT_EQ(p2p.calls.back().peer, -1);
  EXPECT_EQ(p2p.calls.back().number, -1);  // counts otherwise on each rank
  const Measured cut = read_file("inspector/node-a-pid1003.log");
  EXPECT_EQ(cut.notes.count(Note::truncated), 1);
  EXPECT_EQ(cut.notes.count(Note::odd_record), 0);
  EXPECT_EQ(cut.calls.size(), 5U);
}

TEST(Inspector, VerboseRecordsHaveInstantsAndChannels) {
  const Measured measured = read_text(
      "inspector_json",
      R"({"header":{"id":"0xe6","rank":4,"n_ranks":8,"nnodes":1},"metadata":{"hostname":"a","pid":1},"coll_perf":{"coll":"ReduceScatter","coll_sn":1231,"coll_msg_size_bytes":2147483648,"coll_exec_time_us":41057,"coll_timing_source":"kernel_gpu","event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[]},"event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[{"channel_id":0,"kernel_start_ts":0,"kernel_stop_ts":0,"kernel_record_ts":0},{"channel_id":1,"kernel_start_ts":1752867229235181,"kernel_stop_ts":1752867229275811,"kernel_record_ts":1752867229275811}]}}})");
  ASSERT_EQ(measured.calls.size(), 1U);
  const MeasuredCall& call = measured.calls[0];
  EXPECT_EQ(call.bytes, 8 * 2147483648LL);
  EXPECT_EQ(call.enqueue_begin, 1752867229235059'000);
  EXPECT_EQ(call.enqueue_end, 1752867229235064'000);
  EXPECT_EQ(call.begin, 1752867229235181'000);
  EXPECT_EQ(call.end, 1752867229275811'000);
  EXPECT_EQ(call.channels, 2);
}

// All-reduces in us: 50 30 10 40: ranks wait 40 20 0 30 for rank 2. 50 50 20 20: 30 30 for ranks 2
// and 3 alike. 12 11 30 31: 1 0 19 20 for rank 1, or rank 0: they are a microsecond apart. The
// all-gather took 100 everywhere. A broadcast's leaves do not wait for each other.
TEST(MeasuredMatch, WhoTookLeastCameLast) {
  const MeasuredJob job = inspector_job();
  const MeasuredWaits& waits = job.waits;
  ASSERT_TRUE(waits.known);
  EXPECT_EQ(waits.total, 190'000);
  EXPECT_EQ(waits.undecidable, 100'000);
  EXPECT_EQ(waits.not_together, 1);
  ASSERT_EQ(waits.by_rank.size(), 4U);
  const Ns waited[] = {71'000, 50'000, 19'000, 50'000};
  const Ns caused[] = {0, 0, 90'000, 0};  // of the call that is decided
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(waits.by_rank[rank].rank, static_cast<std::int64_t>(rank));
    EXPECT_EQ(waits.by_rank[rank].waited, waited[rank]);
    EXPECT_EQ(waits.by_rank[rank].caused, caused[rank]);
    EXPECT_EQ(waits.by_rank[rank].calls, 4);  // three all-reduces, one all-gather
    EXPECT_EQ(waits.by_rank[rank].last, rank == 2 ? 1 : 0);
  }
  EXPECT_EQ(waits.blame.at({0, 2}), 40'000);
  EXPECT_TRUE(waits.ranks_known);
  EXPECT_EQ(waits.global, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(MeasuredMatch, WhatSomeDidNotRecordSaysNothingOfThem) {
  const MeasuredJob job = inspector_job();
  ASSERT_EQ(job.sequences.size(), 3U);
  const MeasuredSequence& reduces = job.sequences[0];
  EXPECT_EQ(reduces.op, Op::all_reduce);
  EXPECT_EQ(reduces.reporting, 4);
  EXPECT_EQ(reduces.matched, 3);
  EXPECT_EQ(reduces.partial, 1);  // number 3
  EXPECT_EQ(reduces.alone, 2);    // numbers 4 and 5
  EXPECT_EQ(reduces.gaps, 1);     // number 4 of rank 0
  EXPECT_EQ(reduces.mismatched, 0);
}

TEST(MeasuredMatch, HostsTimesDecideNothing) {
  MeasuredJob job = inspector_job();
  for (MeasuredCall& call : job.files[3].calls) call.timed_by = TimedBy::kernel_cpu;
  match_measured(job);
  EXPECT_EQ(job.waits.total, 190'000);
  EXPECT_EQ(job.waits.undecidable, 190'000);
  EXPECT_EQ(job.waits.not_gpu, 4);
  EXPECT_TRUE(job.waits.blame.empty());
  for (const MeasuredRankWaits& row : job.waits.by_rank) {
    EXPECT_EQ(row.caused, 0);
    EXPECT_EQ(row.last, 0);
  }
}

TEST(MeasuredMatch, AFileGivenTwiceCountsOnce) {
  MeasuredJob job = inspector_job();
  job.files.push_back(read_file("inspector/node-a-pid1000.log"));
  match_measured(job);
  EXPECT_EQ(job.waits.total, 190'000);
  EXPECT_EQ(job.sequences[0].repeated, 5);
  EXPECT_EQ(job.files.back().notes.count(Note::repeated_record), 7);
  // Nor in any sum.
  const auto time_of = [](const MeasuredJob& of) {
    MeasuredStats stats;
    for (const Measured& file : of.files) {
      for (const MeasuredCall& call : file.calls) stats.add(call, file.groups[call.group].size);
    }
    return stats.time();
  };
  EXPECT_EQ(time_of(job), time_of(inspector_job()));
}

// Ranks of one communicator are not those of the job where another is as large.
TEST(MeasuredMatch, RanksOfSeveralCommunicatorsAreNotMixed) {
  MeasuredJob job = inspector_job();
  job.files[0].groups.push_back({.id = "0x2", .size = 4});
  match_measured(job);
  EXPECT_TRUE(job.waits.known);
  EXPECT_FALSE(job.waits.ranks_known);
}

TEST(MeasuredStats, BandwidthFollowsFromSizeTimeAndGroup) {
  MeasuredStats stats;
  MeasuredCall call;
  call.op = Op::all_reduce;
  call.bytes = 1000;
  call.time = 100;
  stats.add(call, 4);
  call.time = 300;
  stats.add(call, 4);
  std::vector<Cell> cells;
  stats.append_cells(cells);
  EXPECT_EQ(std::get<std::int64_t>(cells[0]), 2);
  EXPECT_EQ(std::get<std::int64_t>(cells[1]), 2000);
  EXPECT_EQ(std::get<std::int64_t>(cells[4]), 400);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(cells[5]));  // hidden
  EXPECT_EQ(std::get<std::int64_t>(cells[8]), 200);               // mean
  EXPECT_EQ(std::get<std::int64_t>(cells[9]), 100);               // median, nearest rank
  EXPECT_EQ(std::get<std::int64_t>(cells[12]), 300);
  EXPECT_DOUBLE_EQ(std::get<double>(cells[13]), 5);    // 2000 bytes in 400 ns
  EXPECT_DOUBLE_EQ(std::get<double>(cells[14]), 7.5);  // times 2 * 3 / 4
}

TEST(Prometheus, RowsAreCallsInARangeOfSizes) {
  const Measured measured = read_file("metrics.prom");
  ASSERT_EQ(measured.calls.size(), 2U);
  const MeasuredCall& call = measured.calls[0];
  EXPECT_EQ(call.op, Op::all_reduce);
  EXPECT_EQ(call.count, -1);
  EXPECT_EQ(call.bytes, -1);
  EXPECT_EQ(call.message, 4LL << 30);
  EXPECT_EQ(call.message_hi, 5LL << 30);
  EXPECT_EQ(call.time, 9'498'470);
  EXPECT_DOUBLE_EQ(call.printed_busbw, 678.263);
  EXPECT_EQ(measured.text(call.algorithm), "RING");
  EXPECT_EQ(measured.text(call.protocol), "LL");
  EXPECT_EQ(measured.groups[call.group].name, "DP Group 0");
  EXPECT_EQ(measured.groups[call.group].size, 4);
  EXPECT_EQ(measured.calls[1].op, Op::send);
  EXPECT_EQ(measured.host, "node-a");
}

TEST(Prometheus, TheOlderFormHasRanksAndNumbers) {
  const std::string labels =
      R"({comm_id="0x7f",hostname="b",rank="3",slurm_job="x",slurm_job_id="unknown",nranks="8",n_nodes="1",gpu_device_id="0",collective="AllGather",coll_sn="17",timestamp="1",message_size="4.00GB"})";
  const Measured measured =
      read_text("inspector_prometheus",
                "nccl_algorithm_bandwidth_gbs" + labels + " 1\n" + "nccl_bus_bandwidth_gbs" +
                    labels + " 2\n" + "nccl_collective_exec_time_microseconds" + labels + " 10\n");
  ASSERT_EQ(measured.calls.size(), 1U);
  const MeasuredCall& call = measured.calls[0];
  EXPECT_EQ(call.count, 1);
  EXPECT_EQ(call.rank, 3);
  EXPECT_EQ(call.number, 17);
  EXPECT_EQ(call.message, 4LL << 30);
  EXPECT_EQ(call.bytes, 32LL << 30);
  EXPECT_EQ(call.time, 10'000);
  EXPECT_EQ(measured.notes.count(Note::rounded_sizes), 1);
}

// The clocks of the two channels: 0 to 10 us, 1 to 12 us.
TEST(Plugin, TimesAreThoseOfTheChannels) {
  const Measured measured = read_file("plugin.json");
  ASSERT_EQ(measured.calls.size(), 2U);
  const MeasuredCall& reduce = measured.calls[0];
  EXPECT_EQ(measured.groups[reduce.group].id, "0xb0777fd29824eeb6");
  EXPECT_EQ(reduce.number, 3);
  EXPECT_EQ(reduce.rank, 1);
  EXPECT_EQ(reduce.bytes, 4096);
  EXPECT_EQ(reduce.time, 12'000);
  EXPECT_EQ(reduce.timed_by, TimedBy::kernel_gpu);
  EXPECT_EQ(reduce.enqueue_begin, 101'250);
  EXPECT_EQ(reduce.enqueue_end, 101'500);
  EXPECT_EQ(measured.text(reduce.algorithm), "RING");
  EXPECT_EQ(measured.text(reduce.protocol), "LL128");
  const MeasuredCall& send = measured.calls[1];
  EXPECT_EQ(send.op, Op::send);
  EXPECT_EQ(send.peer, 0);
  EXPECT_EQ(send.bytes, 512);
  EXPECT_EQ(send.time,
            -1);  // its channel has no end, and its own interval is that of the enqueueing
  EXPECT_EQ(measured.notes.count(Note::untimed_call), 1);
  EXPECT_EQ(measured.notes.count(Note::odd_record), 0);
  EXPECT_EQ(measured.notes.count(Note::truncated), 0);
}

TEST(Plugin, ACutTextIsSaidToBe) {
  const std::string whole = text_of_file(kData + "plugin.json");
  const Measured measured = read_text("plugin_trace", whole.substr(0, 900));
  EXPECT_EQ(measured.notes.count(Note::truncated), 1);
  EXPECT_EQ(measured.calls.size(), 1U);
}

// Bandwidths of 1 MiB in 50 us: 20.97 and 31.46 GB/s, whose ratio only an all-reduce of 4 has.
TEST(NcclTests, TablesTellTheOperationByTheirRows) {
  const Measured measured = read_file("nccl_tests.txt");
  ASSERT_EQ(measured.calls.size(), 4U);
  EXPECT_EQ(measured.groups[0].size, 4);
  EXPECT_EQ(measured.groups[0].nodes, 1);
  EXPECT_EQ(measured.calls[0].op, Op::all_reduce);
  EXPECT_EQ(measured.calls[2].bytes, 1048576);
  EXPECT_EQ(measured.calls[2].count, 20);
  EXPECT_EQ(measured.calls[2].time, 20 * 50'000);
  EXPECT_FALSE(measured.calls[2].in_place);
  EXPECT_TRUE(measured.calls[3].in_place);
}

// A run as older versions print it: nothing names its operation.
std::string run_of(int ranks, int iterations, const std::string& redop,
                   const std::string& figures) {
  std::string text = "# nThread 1 nGpus " + std::to_string(ranks) +
                     " minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: " +
                     std::to_string(iterations) + " agg iters: 1\n#\n# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid 42 on node-a device  0 [x] GPU\n";
  return text +
         "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
         "1000000 250000 float " +
         redop + " -1 " + figures + "\n";
}

TEST(NcclTests, ASecondHeaderBeginsAnotherRun) {
  const std::string four = run_of(4, 20, "sum", "100.0 10.00 15.00 0 N/A N/A N/A N/A");
  const std::string two = run_of(2, 50, "none", "200.0 5.00 5.00 0 N/A N/A N/A N/A");
  const std::string named = "# Collective test starting: all_gather_perf\n";
  for (const char* between : {"", "# Collective test concluded: all_reduce_perf\n"}) {
    const Measured measured = read_text("nccl_tests", four + between + two + named + four);
    ASSERT_EQ(measured.calls.size(), 3U);
    const MeasuredCall& reduce = measured.calls[0];
    EXPECT_EQ(reduce.op, Op::all_reduce);
    EXPECT_EQ(reduce.count, 20);
    EXPECT_EQ(measured.groups[reduce.group].size, 4);
    const MeasuredCall& second = measured.calls[1];
    EXPECT_EQ(second.op, Op::unknown);
    EXPECT_EQ(second.count, 50);
    EXPECT_EQ(measured.groups[second.group].size, 2);
    EXPECT_DOUBLE_EQ(second.bus_factor, 1);
    EXPECT_EQ(measured.calls[2].op, Op::all_gather);
    EXPECT_EQ(measured.groups[measured.calls[2].group].size, 4);
  }
}

// The list of devices and the columns alone tell a new run, too.
TEST(NcclTests, DevicesListedAnewAreOfAnotherRun) {
  const std::string four = run_of(4, 20, "sum", "100.0 10.00 15.00 0 N/A N/A N/A N/A");
  const std::string two = run_of(2, 50, "none", "200.0 5.00 5.00 0 N/A N/A N/A N/A");
  const Measured measured = read_text("nccl_tests", four + two.substr(two.find("#  Rank")));
  ASSERT_EQ(measured.calls.size(), 2U);
  EXPECT_EQ(measured.calls[1].op, Op::unknown);
  EXPECT_EQ(measured.groups[measured.calls[1].group].size, 2);
}

TEST(NcclTests, StructuredOutputIsUsedAsFarAsItGoes) {
  const Measured measured = read_text(
      "nccl_tests",
      "noise\n"
      R"({"identifier": "nccl-tests structured output", "version": "2.26.6", "benchmark": [{"33554432": {"count": 1048576, "type": "float", "redop": "none", "root": "-1", "oop_time": 1494.278386, "oop_algbw": 22.455275, "oop_busbw": 19.648366, "oop_error": 0.0, "ip_time": 1459.561667, "ip_algbw": 22.989390, "ip_busbw": 20.115716, "ip_error": "N/A"}, "67108864": {"count": 2097)");
  ASSERT_EQ(measured.calls.size(), 2U);
  EXPECT_EQ(measured.notes.count(Note::truncated), 1);
  // 8 times the count's bytes: of 8 ranks, whatever the operation.
  EXPECT_EQ(measured.groups[0].size, 8);
  EXPECT_EQ(measured.calls[0].op, Op::unknown);
  EXPECT_DOUBLE_EQ(measured.calls[0].bus_factor, 0.875);
  EXPECT_EQ(measured.calls[0].count, -1);
  EXPECT_EQ(measured.calls[0].time, 1'494'278);
}

// Two all-reduces of 1.5 MiB, printed one by one and in the table: they are the same two.
TEST(Frameworks, CallsThatArePrintedTwiceCountOnce) {
  const Measured measured = read_file("training.log");
  ASSERT_EQ(measured.calls.size(), 4U);
  std::int64_t reduces = 0;
  for (const MeasuredCall& call : measured.calls) {
    if (call.op != Op::all_reduce) continue;
    reduces += call.count;
    EXPECT_EQ(call.bytes, 3 << 19);
  }
  EXPECT_EQ(reduces, 2);
  const MeasuredCall& broadcast = measured.calls[1];
  EXPECT_EQ(broadcast.op, Op::broadcast);
  EXPECT_EQ(broadcast.count, 146);
  EXPECT_EQ(broadcast.bytes, 2048);
  EXPECT_EQ(broadcast.time, 11'120'000);
  EXPECT_EQ(broadcast.straggle, 4'000'000);
}

TEST(Frameworks, MegatronsTimersAndIterations) {
  const Measured measured = read_file("training.log");
  ASSERT_EQ(measured.iterations.size(), 2U);
  EXPECT_EQ(measured.iterations[0].iteration, 30);
  EXPECT_EQ(measured.iterations[0].of, 100);
  EXPECT_EQ(measured.iterations[0].time, 123'400'000);
  EXPECT_DOUBLE_EQ(measured.iterations[0].tflops_per_gpu, 410.5);
  EXPECT_EQ(measured.iterations[1].time, 1'460'800'000);
  ASSERT_EQ(measured.timers.size(), 5U);
  EXPECT_EQ(measured.timers[0].name, "forward-backward");
  EXPECT_EQ(measured.timers[0].iteration, 30);
  EXPECT_EQ(measured.timers[0].least, 1'000'500'000);
  EXPECT_EQ(measured.timers[0].most, 1'200'250'000);
  EXPECT_EQ(measured.timers[3].name, "forward-compute");
  EXPECT_EQ(measured.timers[3].least, -1);
  EXPECT_EQ(measured.timers[3].most, -1);  // of which rank the oldest form is, it does not say
  EXPECT_EQ(measured.timers[3].one, 105'940'000);
  EXPECT_EQ(measured.notes.count(Note::cut_log_line), 1);  // "optimizer-copy"
}

// "#wrong" counts results that are not those of the operation; "N/A" is no count.
TEST(NcclTests, WrongResultsAreSaid) {
  const auto wrong = [](std::string_view out, std::string_view in) {
    const Measured measured = read_text(
        "nccl_tests",
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n"
        "#       size    count    type   redop  root    time   algbw   busbw #wrong     time   "
        "algbw   busbw #wrong\n"
        "     1048576   262144   float     sum    -1   50.00   20.97   20.97      " +
            std::string(out) + "    40.00   26.21   26.21      " + std::string(in) +
            "\n     2097152   524288   float     sum    -1   50.00   20.97   20.97      0    40.00 "
            "  "
            "26.21   26.21      0\n");
    if (measured.notes.count(Note::odd_record) > 0) return std::int64_t{-1};
    return static_cast<std::int64_t>(measured.notes.count(Note::wrong_results));
  };
  EXPECT_EQ(wrong("0", "0"), 0);
  EXPECT_EQ(wrong("N/A", "N/A"), 0);
  EXPECT_EQ(wrong("0", "3"), 1);
  EXPECT_EQ(wrong("7", "N/A"), 1);
  EXPECT_EQ(wrong("0", "1.04858e+06"), 1);
  // No number of results: the row is left out, and counted.
  for (const std::string_view odd :
       {"-1", "nan", "inf", "0.5", "1e+300", "x", "99999999999999999999"})
    EXPECT_EQ(wrong("0", odd), -1) << odd;
}

TEST(Frameworks, EveryFormOfATable) {
  const Measured measured = read_text(
      "framework_log",
      "0: Comm. Op            Message Size        Count               Total Latency(ms)   "
      "Total straggler(ms) Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)\n"
      "0: broadcast | [Caller Func: f]\n"
      "0:                     4.94 KB             1                   0.24                0.06   "
      "             0.24                0.17                0.17\n"
      "max time across ranks (ms):\n"
      "    optimizer ......................................: 57.50\n"
      "times across ranks (ms):\n"
      "  forward-backward:\n"
      "     rank  0: 1093.58\n"
      "     rank  3: 1094.00\n");
  ASSERT_EQ(measured.calls.size(), 1U);
  EXPECT_EQ(measured.text(measured.calls[0].caller), "f");
  EXPECT_EQ(measured.calls[0].time, 240'000);
  EXPECT_EQ(measured.calls[0].straggle, 60'000);
  ASSERT_EQ(measured.timers.size(), 2U);
  EXPECT_EQ(measured.timers[0].most, 57'500'000);
  EXPECT_EQ(measured.timers[1].least, 1'093'580'000);
  EXPECT_EQ(measured.timers[1].most, 1'094'000'000);
  EXPECT_EQ(measured.timers[1].slowest, 3);
}

TEST(Frameworks, ALaterTableReplacesOneThatItHolds) {
  const std::string header =
      "Comm. Op            Message Size        Count               Total Latency(ms)   Avg "
      "Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)\n";
  const std::string first = header + "broadcast\n  2.0 KB  10  1.00  0.10  0.1  0.1\n";
  const std::string later = header + "broadcast\n  2.0 KB  30  3.00  0.10  0.1  0.1\n";
  const std::string other = header + "all_reduce\n  2.0 KB  5  3.00  0.10  0.1  0.1\n";
  const Measured grown = read_text("framework_log", first + later);
  ASSERT_EQ(grown.calls.size(), 1U);
  EXPECT_EQ(grown.calls[0].count, 30);
  EXPECT_EQ(read_text("framework_log", first + other).calls.size(), 2U);
}

// DeepSpeed keeps rows by exact size and prints it rounded.
TEST(Frameworks, RowsOfOneTableWhoseSizesReadAlikeAreAllCounted) {
  const Measured measured = read_text(
      "framework_log",
      "Comm. Op            Message Size        Count               Total Latency(ms)   Avg "
      "Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)\n"
      "all_reduce\n"
      "   1.0 MB   10   100.00   10.00   0.52   0.48\n"
      "   1.0 MB   20   400.00   20.00   0.52   0.48\n"
      "   1.0 MB   30   900.00   30.00   0.52   0.48\n");
  ASSERT_EQ(measured.calls.size(), 1U);
  EXPECT_EQ(measured.calls[0].count, 60);
  EXPECT_EQ(measured.calls[0].time, 1'400'000'000);
}

// What stands for a row and cannot be used is said; other lines behind a table are none.
TEST(Frameworks, RowsThatCannotBeReadAreCounted) {
  const Measured measured = read_text(
      "framework_log",
      "Comm. Op            Message Size        Count               Total Latency(ms)   Avg "
      "Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)\n"
      "all_reduce\n"
      "   1.0 MB   10   100.00   10.00   0.52   0.48\n"
      "   2.0 MB   10   nan   10.00   0.52   0.48\n"
      "   3.0 MB   0    100.00   10.00   0.52   0.48\n"
      "   4.0 MB   10   100.00\n"
      "   2.0 QB   10   100.00   10.00   0.52   0.48\n"
      "  -2.0 KB   10   100.00   10.00   0.52   0.48\n"
      "  5.0 EB    10   100.00   10.00   0.52   0.48\n"
      "   nan B    10   100.00   10.00   0.52   0.48\n"
      "loss 2.0 LR 10 100.00 10.00\n"
      "[Rank 0] rank=0 | comm op: all_reduce | time (ms): 9.46 | msg size: -1.0 MB | algbw (Gbps): "
      "1.00  | busbw (Gbps): 1.00\n"
      "allocated 2.0 GB of 80 GB\n"
      "step 7 took 100.00 ms\n");
  ASSERT_EQ(measured.calls.size(), 1U);
  EXPECT_EQ(measured.calls[0].count, 10);
  EXPECT_EQ(measured.notes.count(Note::odd_record), 8);
}

TEST(Frameworks, TheDictionaryOfASummary) {
  const Measured measured = read_file("deepspeed.json");
  EXPECT_EQ(measured.world_size, 8);
  EXPECT_EQ(measured.rank, 0);
  ASSERT_EQ(measured.calls.size(), 2U);
  EXPECT_EQ(measured.calls[0].time, 1'500'000);
  EXPECT_EQ(measured.calls[0].straggle, 375'000);
  EXPECT_EQ(measured.calls[0].bytes, 1048576);
  // An all-gather's size is of one rank, and of how many is not told.
  EXPECT_EQ(measured.calls[1].message, 4096);
  EXPECT_EQ(measured.calls[1].bytes, -1);
}

TEST(ExecutionTrace, CallsHaveSizesAndGroupsAndNoTimes) {
  const Measured measured = read_file("execution_trace.json");
  ASSERT_EQ(measured.calls.size(), 3U);  // the barrier's own all-reduce is not one, nor is "wait"
  EXPECT_EQ(measured.calls[0].op, Op::all_reduce);
  EXPECT_EQ(measured.calls[0].number, 12);
  EXPECT_EQ(measured.calls[0].rank, 3);
  EXPECT_EQ(measured.calls[0].bytes, 4096);
  EXPECT_EQ(measured.calls[0].time, -1);
  EXPECT_EQ(measured.groups[measured.calls[0].group].ranks,
            (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(measured.groups[measured.calls[0].group].name, "default_pg");
  EXPECT_EQ(measured.calls[1].op, Op::all_gather);
  EXPECT_EQ(measured.calls[1].bytes, 400);  // 200 elements of two bytes
  EXPECT_EQ(measured.groups[measured.calls[1].group].ranks, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(measured.calls[2].op, Op::barrier);
}

TEST(Measured, NothingUsableIsOneSentence) {
  for (const MeasuredFormat* format : measured_formats()) {
    for (const std::string_view text : {"", "{", "[", "nothing", "{\"a\":1}\n", "\x00\xff"}) {
      const std::string said = complaint(format->name, text);
      EXPECT_NE(said, "nothing") << format->name;
      EXPECT_EQ(said.find('\n'), std::string::npos);
    }
  }
}

// Cut anywhere, with bytes changed anywhere: an Error or a result that holds together.
TEST(Measured, DamageIsSurvived) {
  std::mt19937 random(7);
  for (const char* name :
       {"inspector/node-a-pid1002.log", "metrics.prom", "plugin.json", "nccl_tests.txt",
        "training.log", "deepspeed.json", "execution_trace.json"}) {
    const std::string whole = text_of_file(kData + name);
    const std::string_view format = detect_measured_format(whole)->name;
    for (int i = 0; i < 300; ++i) {
      std::string text = whole.substr(0, random() % (whole.size() + 1));
      for (unsigned changes = random() % 4; changes > 0 && !text.empty(); --changes)
        text[random() % text.size()] = static_cast<char>(random());
      try {
        MeasuredJob job;
        job.files.push_back(read_text(format, text));
        for (const MeasuredCall& call : job.files[0].calls)
          ASSERT_LT(call.group, job.files[0].groups.size());
        match_measured(job);
      } catch (const Error&) {
      }
    }
  }
}

TEST(Measured, EachFormatKnowsItsOwnAndNoTimeline) {
  const std::pair<const char*, const char*> kFiles[] = {
      {"inspector/node-a-pid1000.log", "inspector_json"},
      {"metrics.prom", "inspector_prometheus"},
      {"plugin.json", "plugin_trace"},
      {"nccl_tests.txt", "nccl_tests"},
      {"training.log", "framework_log"},
      {"deepspeed.json", "deepspeed_summary"},
      {"execution_trace.json", "execution_trace"}};
  for (const auto& [file, name] : kFiles) {
    const std::string text = text_of_file(kData + file);
    int known = 0;
    for (const MeasuredFormat* format : measured_formats()) known += format->sniff(text) ? 1 : 0;
    EXPECT_EQ(known, 1) << file;
    EXPECT_EQ(detect_measured_format(text)->name, name);
  }
  const std::string trace =
      R"([{"name": "comm op: time (ms): ", "cat": "GPU", "ph": "X", "ts": 1, "dur": 2}])";
  EXPECT_EQ(detect_measured_format(trace), nullptr);
  EXPECT_NE(detect_format(trace), nullptr);
}

}  // namespace
}  // namespace commlens
