// From recordings to figures: the worked cases of docs/numbers.md, classification by each evidence,
// groups, runs, windows, and properties over generated traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/format.h"
#include "match/classify.h"
#include "match/exposure.h"
#include "match/launches.h"
#include "match/merge.h"
#include "match/runs.h"
#include "match/windows.h"
#include "notation.h"

namespace commlens {
namespace {

using notation::Clock;
using notation::KinetoLayout;
using notation::situation;
using notation::Situation;
using notation::Style;

Recording read_text(std::string_view text, std::string_view path = "test.json",
                    bool host_compute = false) {
  const Format& kineto = *find_format("kineto");
  TraceBuilder builder(path, "kineto");
  Source source = Source::memory(std::string(path), text);
  const ReadOptions options{.host_compute = host_compute};
  kineto.read(source, "", options, builder);
  return builder.finish();
}

RankTimeline classified(Recording recording, const std::vector<NameRule>& rules = {}) {
  RankTimeline rank;
  rank.recording = std::move(recording);
  classify(rank, rules);
  find_step_windows(rank);
  return rank;
}

RankTimeline classified(std::string_view text, const std::vector<NameRule>& rules = {}) {
  return classified(notation::recording(situation(text)), rules);
}

WindowFigures whole_figures(const DeviceTimeline& device) {
  return window_figures(device, device.extent);
}

// The buckets as one text: "window compute hidden exposed memory idle".
std::string buckets(const Breakdown& b) {
  std::string out;
  for (const Ns part :
       {b.window.length(), b.compute_only, b.hidden_comm, b.exposed_comm, b.memory_only, b.idle})
    out += (out.empty() ? "" : " ") + std::to_string(part);
  return out;
}

// "busy hidden exposed exclusive" of each communication.
std::string shares(const WindowFigures& figures) {
  std::string out;
  for (const Exposure& e : figures.exposures) {
    out += out.empty() ? "" : ", ";
    out += std::to_string(e.busy) + " " + std::to_string(e.hidden) + " " +
           std::to_string(e.exposed) + " " + std::to_string(e.exclusive);
  }
  return out;
}

// "op evidence" of each communication of each device.
std::string ops(const RankTimeline& rank) {
  std::string out;
  for (const DeviceTimeline& device : rank.devices) {
    for (const CommOp& op : device.comm)
      out += (out.empty() ? "" : ", ") + std::string(op_name(op.op)) + " " +
             std::string(evidence_name(op.evidence));
  }
  return out;
}

// The same situation by all ways that lead to a device's timeline: written down, through the
// builder, and through Kineto text in two layouts.
std::vector<DeviceTimeline> by_all_ways(const Situation& s) {
  std::vector<DeviceTimeline> ways;
  ways.push_back(notation::device_timeline(s));
  ways.push_back(std::move(classified(notation::recording(s)).devices.at(0)));
  ways.push_back(std::move(classified(read_text(notation::kineto_text(s))).devices.at(0)));
  ways.push_back(std::move(
      classified(read_text(notation::kineto_text(
                     s, {.style = Style::compact, .clock = Clock::absolute, .shuffle = 9})))
          .devices.at(0)));
  return ways;
}

// ---------------------------------------------------------------------------------------------
// Worked cases of docs/numbers.md

TEST(WorkedCases, HiddenAndWholeEventOverlap) {
  const Situation s = situation(
      "compute@7 [0s,2s) [3s,5s); all_reduce@20 [1s,2.5s); broadcast@20 [2.6s,3.0s); "
      "reduce_scatter@20 [3.5s,4.3s)");
  for (const DeviceTimeline& device : by_all_ways(s)) {
    const WindowFigures figures = whole_figures(device);
    // Hidden 1.0 + 0 + 0.8 of 2.7 s; whole events that meet compute 1.5 + 0.8. Compute alone
    // 4 - 1.8, idle [2.5, 2.6).
    EXPECT_EQ(buckets(figures.breakdown), "5000000000 2200000000 1800000000 900000000 0 100000000");
    EXPECT_EQ(figures.breakdown.comm_busy, 2'700'000'000);
    EXPECT_EQ(figures.breakdown.whole_event_overlap, 2'300'000'000);
    EXPECT_EQ(shares(figures),
              "1500000000 1000000000 500000000 500000000, 400000000 0 400000000 400000000, "
              "800000000 800000000 0 0");
    EXPECT_EQ(figures.breakdown.comm_events, 3);
    EXPECT_EQ(figures.breakdown.gpu_events, 5);
  }
}

TEST(WorkedCases, TwoStreamsAtOnceShareTheirExposedTime) {
  const Situation s = situation("all_reduce@20 [0,10); all_reduce@24 [0,10); compute@7 [4,6)");
  for (const DeviceTimeline& device : by_all_ways(s)) {
    const WindowFigures figures = whole_figures(device);
    EXPECT_EQ(buckets(figures.breakdown), "10 0 2 8 0 0");
    EXPECT_EQ(shares(figures), "10 2 8 4, 10 2 8 4");
  }
}

TEST(WorkedCases, TouchingIntervalsDoNotOverlap) {
  for (const DeviceTimeline& device :
       by_all_ways(situation("compute@7 [0,4) [4,8); broadcast@20 [8,9)"))) {
    EXPECT_EQ(shares(whole_figures(device)), "1 0 1 1");
    EXPECT_EQ(buckets(whole_figures(device).breakdown), "9 8 0 1 0 0");
  }
  for (const DeviceTimeline& device :
       by_all_ways(situation("compute@7 [0,4) [4,8); broadcast@20 [7,9)")))
    EXPECT_EQ(shares(whole_figures(device)), "2 1 1 1");
}

TEST(WorkedCases, OneNanosecondOfEpochTime) {
  const RankTimeline rank = classified(read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1740461679479712.123, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce", "pid": 0, "tid": 9, "ts": 1740461679479712.124, "dur": 1}]})"));
  EXPECT_EQ(buckets(whole_figures(rank.devices.at(0)).breakdown), "1001 1 999 1 0 0");
}

// The remainder of a piece goes to the first by start, then stream, then order in the file.
TEST(Exclusive, TheRemainderGoesToTheFirst) {
  // 10 ns of three: 4 3 3. Equal starts: stream 20 before 24, then order in the file.
  const DeviceTimeline device =
      notation::device_timeline(situation("all_reduce@24 [0,10); all_reduce@20 [0,10) [0,10)"));
  EXPECT_EQ(device.comm[0].source, 1U);
  EXPECT_EQ(device.comm[1].source, 2U);
  EXPECT_EQ(device.comm[2].source, 0U);
  EXPECT_EQ(shares(whole_figures(device)), "10 0 10 4, 10 0 10 3, 10 0 10 3");
  // Pieces between changes: [0,3) one, [3,8) two (3 + 2), [8,11) one.
  EXPECT_EQ(shares(whole_figures(
                notation::device_timeline(situation("all_reduce@20 [0,8); broadcast@24 [3,11)")))),
            "8 0 8 6, 8 0 8 5");
  // Compute parts a piece in two: [0,3) and [4,7) give a remainder of 1 each.
  EXPECT_EQ(shares(whole_figures(notation::device_timeline(
                situation("all_reduce@20 [0,7); all_reduce@24 [0,7); compute@7 [3,4)")))),
            "7 1 6 4, 7 1 6 2");
}

TEST(Exposure, MemoryCountsOnlyAlone) {
  // compute [0,4), comm [2,6), copies [3,5) [6,8): compute only 2, hidden 2, exposed 2, memory 2.
  const WindowFigures figures = whole_figures(notation::device_timeline(
      situation("compute@7 [0,4); all_reduce@20 [2,6); memcpy@9 [3,5) [6,8); memset@9 [9,9]")));
  EXPECT_EQ(buckets(figures.breakdown), "9 2 2 2 2 1");
  EXPECT_EQ(figures.breakdown.gpu_events, 5);
}

TEST(Exposure, EventsWithoutLength) {
  const DeviceTimeline device = notation::device_timeline(
      situation("compute@7 [0,4); all_reduce@20 [2,2] [4,4] [9,9]; compute@7 [5,6)"));
  const WindowFigures figures = whole_figures(device);
  EXPECT_EQ(buckets(figures.breakdown), "9 5 0 0 0 4");
  EXPECT_EQ(shares(figures), "0 0 0 0, 0 0 0 0, 0 0 0 0");
  EXPECT_EQ(figures.breakdown.comm_events, 3);
  EXPECT_EQ(figures.breakdown.gpu_events, 5);
  for (const Exposure& e : figures.exposures) EXPECT_TRUE(e.in_window && e.starts_inside);
}

TEST(Exposure, WindowsClip) {
  const Situation s = situation("compute@7 [0,10); all_reduce@20 [5,25); memcpy@9 [20,40)");
  const DeviceTimeline device = notation::device_timeline(s);
  const WindowFigures figures = window_figures(device, s.window(8, 30));
  EXPECT_EQ(buckets(figures.breakdown), "22 0 2 15 5 0");
  EXPECT_EQ(shares(figures), "17 2 15 15");
  EXPECT_TRUE(figures.exposures[0].in_window);
  EXPECT_FALSE(figures.exposures[0].starts_inside);
  EXPECT_EQ(figures.breakdown.gpu_events, 1) << "the copy starts inside";
  EXPECT_EQ(figures.breakdown.comm_events, 0);
  const WindowFigures behind = window_figures(device, s.window(50, 60));
  EXPECT_EQ(buckets(behind.breakdown), "10 0 0 0 0 10");
  EXPECT_FALSE(behind.exposures[0].in_window);
  EXPECT_EQ(buckets(window_figures(device, s.window(8, 8)).breakdown), "0 0 0 0 0 0");
}

// ---------------------------------------------------------------------------------------------
// Classification

TEST(Classify, MetadataOnTheActivityIsTheStrongest) {
  // Whatever the name, the link and the nesting say.
  const RankTimeline rank = classified(
      "compute@7 [10,12) corr=1 id=70 op=_allgather_base bytes=1M n=4 group=tp; "
      "record@5 [0,9) id=70 op=allreduce bytes=8; range@5 [0,9) name=nccl:broadcast; "
      "launch@5 [4] corr=1");
  EXPECT_EQ(ops(rank), "all_gather metadata");
  EXPECT_EQ(rank.devices[0].comm[0].bytes, 1 << 20);
  EXPECT_EQ(rank.devices[0].comm[0].group_size, 4);
  EXPECT_EQ(rank.evidence[static_cast<std::size_t>(Evidence::metadata)], 1);
  EXPECT_EQ(rank.classes[0], ActivityClass::communication);
  EXPECT_TRUE(rank.devices[0].compute.empty());
}

TEST(Classify, TheLinkedOperationComesNext) {
  const RankTimeline rank = classified(
      "all_gather@7 [10,12) corr=1 id=70; memcpy@7 [13,14) corr=2 id=70; compute@7 [15,16) corr=3 "
      "id=71; record@5 [0,9) id=70 op=allreduce bytes=8; range@5 [0,9) name=nccl:broadcast; "
      "launch@5 [4] corr=1");
  EXPECT_EQ(ops(rank), "all_reduce host_operation, all_reduce host_operation");
  EXPECT_EQ(rank.devices[0].comm[0].bytes, 8);
  EXPECT_EQ(rank.classes[1], ActivityClass::communication)
      << "the copy moves the collective's data";
  EXPECT_EQ(rank.classes[2], ActivityClass::compute) << "there is no operation 71";
}

TEST(Classify, ThenTheRangeOfTheLaunch) {
  const RankTimeline rank = classified(
      "all_reduce@7 [10,12) corr=1; compute@7 [13,14) corr=1; memcpy@7 [15,16) corr=1; "
      "range@5 [0,9) name=nccl:_all_gather_base; launch@5 [4] corr=1");
  // The name must say communication: the range can last while the thread launches other work.
  EXPECT_EQ(ops(rank), "all_gather host_nesting");
  EXPECT_EQ(rank.classes[1], ActivityClass::compute);
  EXPECT_EQ(rank.classes[2], ActivityClass::memory);
  // Ranges of backends that move data on the host say nothing about a kernel.
  EXPECT_EQ(ops(classified("all_reduce@7 [13,14) corr=1; range@5 [0,9) name=gloo:broadcast; "
                           "launch@5 [4] corr=1")),
            "all_reduce kernel_name");
}

TEST(Classify, ThenTheName) {
  EXPECT_EQ(ops(classified("all_reduce@7 [10,12) corr=1")), "all_reduce kernel_name");
  // Launched on another thread, or outside every range.
  EXPECT_EQ(ops(classified("all_reduce@7 [10,12) corr=1; range@5 [0,9) name=nccl:broadcast; "
                           "launch@6 [4] corr=1")),
            "all_reduce kernel_name");
  EXPECT_EQ(ops(classified("all_reduce@7 [10us,12us) corr=1; range@5 [0,9) name=nccl:broadcast; "
                           "launch@5 [2us] corr=1")),
            "all_reduce kernel_name");
  // SendRecv may be anything: said.
  const RankTimeline lies = classified("send@7 [10,12)");
  EXPECT_EQ(ops(lies), "send_recv kernel_name");
  EXPECT_TRUE(lies.devices[0].comm[0].name_may_lie);
  EXPECT_EQ(lies.notes.count(Note::op_from_name_only), 1);
  EXPECT_EQ(lies.notes.count(Note::unknown_size), 1);
}

TEST(Classify, TheUsersRules) {
  const std::vector<NameRule> rules = parse_name_rules(
      "mine_* = all_to_all\n*not_comm* = compute\n*SendRecv* = all_to_all\n*AllReduce* = broadcast",
      "rules");
  EXPECT_EQ(ops(classified("compute@7 [1,2) name=mine_1", rules)), "all_to_all user_rule");
  EXPECT_EQ(ops(classified("all_reduce@7 [1,2) name=ncclKernel_not_comm", rules)), "");
  EXPECT_EQ(ops(classified("send@7 [1,2)", rules)), "all_to_all user_rule");
  // A name that does not lie is believed rather than a rule; evidence from the host too.
  EXPECT_EQ(ops(classified("all_reduce@7 [1,2)", rules)), "all_reduce kernel_name");
  EXPECT_EQ(ops(classified("compute@7 [5,6) name=mine_1 corr=1; range@5 [0,4) name=nccl:broadcast; "
                           "launch@5 [1] corr=1",
                           rules)),
            "broadcast host_nesting");
  EXPECT_EQ(ops(classified("all_reduce@7 [1,2) name=ncclKernel_not_comm op=allreduce", rules)),
            "all_reduce metadata");
}

// Old writers print an activity's correlation as its External id where nothing is linked; it may
// equal an unrelated operation's id.
TEST(Classify, TheExternalIdTrap) {
  EXPECT_EQ(ops(classified("compute@7 [10,12) corr=70 id=70; compute@7 [13,14) corr=71 id=9; "
                           "record@5 [0,9) id=70 op=allreduce bytes=8")),
            "");
  // Where it holds for more than half of the activities, no External id is believed.
  const RankTimeline rank = classified(
      "compute@7 [10,12) corr=70 id=70; compute@7 [13,14) corr=71 id=71; compute@7 [15,16) corr=72 "
      "id=80; record@5 [0,9) id=80 op=allreduce bytes=8");
  EXPECT_EQ(ops(rank), "");
  EXPECT_EQ(rank.recording.notes.count(Note::unlinked_external_ids), 1);
  // Nesting still works there.
  EXPECT_EQ(
      ops(classified("all_reduce@7 [10,12) corr=70 id=70; range@5 [0,9) name=nccl:all_gather; "
                     "launch@5 [4] corr=70")),
      "all_gather host_nesting");
}

TEST(Classify, NestingToleratesAMicrosecond) {
  const auto at = [](std::string_view launch) {
    return ops(
        classified("all_reduce@7 [20us,21us) corr=1; range@5 [5us,9us) name=nccl:broadcast; "
                   "launch@5 [" +
                   std::string(launch) + "] corr=1"));
  };
  EXPECT_EQ(at("4us"), "broadcast host_nesting");
  EXPECT_EQ(at("3.999us"), "all_reduce kernel_name");
  EXPECT_EQ(at("10us"), "broadcast host_nesting");
  EXPECT_EQ(at("10.001us"), "all_reduce kernel_name");
}

// The innermost range says which operation; a record further out that asks for the same, how much.
TEST(Classify, NestedRanges) {
  const RankTimeline rank = classified(
      "send@7 [20us,21us) corr=1; record@5 [0us,9us) op=_allgather_base bytes=1M n=2; "
      "range@5 [1us,8us) name=nccl:_all_gather_base; launch@5 [5us] corr=1");
  EXPECT_EQ(ops(rank), "all_gather host_nesting");
  EXPECT_EQ(rank.devices[0].comm[0].bytes, 1 << 20);
  // "coalesced" does not say which.
  EXPECT_EQ(ops(classified("send@7 [20us,21us) corr=1; range@5 [0us,9us) name=nccl:all_to_all; "
                           "range@5 [1us,8us) name=nccl:coalesced; launch@5 [5us] corr=1")),
            "all_to_all host_nesting");
  EXPECT_EQ(ops(classified("send@7 [20us,21us) corr=1; range@5 [1us,8us) name=nccl:coalesced; "
                           "launch@5 [5us] corr=1")),
            "send_recv kernel_name");
  // The last call of a group ended before the group's end, which launches: near is not inside.
  EXPECT_EQ(ops(classified("send@7 [20us,21us) corr=1; range@5 [1us,4us) name=nccl:recv; range@5 "
                           "[4.1us,9us) name=nccl:coalesced; launch@5 [4.5us] corr=1")),
            "send_recv kernel_name");
}

// A record without metadata is the normal case of older files: surely communication, by its link.
TEST(Classify, RecordsWithoutMetadata) {
  EXPECT_EQ(ops(classified("compute@7 [20,21) corr=1 id=70; record@5 [0,9) id=70")),
            "unknown host_operation");
  EXPECT_EQ(ops(classified("all_reduce@7 [20,21) corr=1 id=70; record@5 [0,9) id=70")),
            "all_reduce host_operation");
  EXPECT_EQ(ops(classified("send@7 [20,21) corr=1 id=70; record@5 [0,9) id=70; range@5 [1,8) "
                           "name=nccl:all_to_all; launch@5 [4] corr=1")),
            "all_to_all host_nesting");
}

TEST(Classify, WaitAndInitCommunicateNothing) {
  for (const std::string_view name : {"wait", "init"}) {
    const std::string op = "op=" + std::string(name);
    EXPECT_EQ(ops(classified("compute@7 [20,21) " + op)), "");
    EXPECT_EQ(ops(classified("compute@7 [20,21) id=70; record@5 [0,9) id=70 " + op)), "");
    EXPECT_EQ(ops(classified(read_text(
                  notation::kineto_text(situation("compute@7 [20,21) " + op +
                                                  "; compute@7 [22,23) id=70; record@5 [0,9) "
                                                  "id=70 " +
                                                  op))))),
              "");
  }
}

// A range on the GPU is the span of kernels that are counted themselves.
TEST(Classify, GpuAnnotationsAreNeverCounted) {
  std::string text = notation::kineto_text(situation("compute@7 [0,2); gpu_step#1 [0,900)"));
  const std::size_t at = text.find("ProfilerStep#1");
  for (const std::string_view name : {"ProfilerStep#1", "nccl:all_reduce", "mine"}) {
    std::string other = text;
    other.replace(at, 14, name);
    const RankTimeline rank = classified(read_text(other));
    EXPECT_EQ(rank.recording.gpu.size(), 1U);
    EXPECT_EQ(rank.devices[0].extent.length(), 2);
    EXPECT_EQ(ops(rank), "");
  }
}

// One graph launch starts many kernels.
TEST(Classify, KernelsThatShareACorrelation) {
  EXPECT_EQ(ops(classified("all_reduce@7 [20,21) corr=1; send@20 [22,23) corr=1; range@5 [0,9) "
                           "name=nccl:all_gather; launch@5 [4] corr=1")),
            "all_gather host_nesting, all_gather host_nesting");
}

// After a restart of the profiler a correlation may be used again: the nearest launch is meant.
TEST(Classify, CorrelationsUsedAgain) {
  EXPECT_EQ(ops(classified("all_reduce@7 [20us,21us) corr=1; all_reduce@7 [120us,121us) corr=1; "
                           "range@5 [8us,12us) name=nccl:all_gather; range@5 [108us,112us) "
                           "name=nccl:broadcast; launch@5 [110us] corr=1; launch@5 [10us] corr=1; "
                           "launch@5 [50us] corr=2")),
            "all_gather host_nesting, broadcast host_nesting");
}

TEST(Classify, DevicesAndContexts) {
  const RankTimeline rank = classified(
      "compute@1/1/7 [0,9); all_reduce@1/2/7 [3,5); all_reduce@0/1/7 [1,2); compute@0/1/7 [3,4)");
  ASSERT_EQ(rank.devices.size(), 2U);
  EXPECT_EQ(rank.devices[0].device, 0);
  EXPECT_EQ(rank.devices[1].device, 1);
  EXPECT_EQ(shares(whole_figures(rank.devices[0])), "1 0 1 1");
  EXPECT_EQ(shares(whole_figures(rank.devices[1])), "2 2 0 0");
  EXPECT_EQ(buckets(whole_figures(rank.devices[0]).breakdown), "3 1 0 1 0 1");
  EXPECT_EQ(buckets(whole_figures(rank.devices[1]).breakdown), "9 7 2 0 0 0");
}

TEST(Classify, PossibleCommunicationIsSaid) {
  const RankTimeline rank = classified("compute@7 [0,9) name=my_allreduce_thing");
  if (rank.devices[0].comm.empty()) {
    EXPECT_EQ(rank.notes.count(Note::possible_communication), 1);
  }
  EXPECT_EQ(classified("compute@7 [0,9)").notes.count(Note::possible_communication), 0);
  EXPECT_EQ(classified("compute@7 [0,9)").notes.count(Note::no_communication), 1);
}

// ---------------------------------------------------------------------------------------------
// Groups

TEST(Groups, NameDescriptionAndRanks) {
  const RankTimeline rank = classified(
      "all_reduce@7 [0,1) bytes=8 n=2 group=3 ranks=0,1; all_reduce@7 [2,3) bytes=16 n=2 group=3 "
      "ranks=0,1; all_reduce@7 [4,5) bytes=8 n=2 group=3 ranks=2,3; all_reduce@7 [6,7) "
      "op=allreduce");
  ASSERT_EQ(rank.groups.size(), 2U) << "one name, two sets of ranks";
  EXPECT_EQ(rank.groups[0].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(rank.groups[1].ranks, (std::vector<int>{2, 3}));
  const auto& comm = rank.devices[0].comm;
  EXPECT_EQ(comm[0].group, 0);
  EXPECT_EQ(comm[1].group, 0) << "another size is the same group";
  EXPECT_EQ(comm[2].group, 1);
  EXPECT_EQ(comm[3].group, -1);
}

TEST(Groups, TheFilesOwnListIsPreferred) {
  Recording recording = notation::recording(situation(
      "all_reduce@7 [0,1) bytes=8 n=4 group=tp ranks=0,1,...; all_reduce@7 [2,3) bytes=8 n=4 "
      "group=dp ranks=0,2,4,6; all_reduce@7 [4,5) bytes=8 group=pp; all_reduce@7 [6,7) bytes=8 "
      "n=8; all_reduce@7 [8,9) bytes=8 n=3 group=odd ranks=0,1"));
  recording.world_size = 8;
  recording.groups = {{"tp", "tensor", 4, {4, 5, 6, 7}},
                      {"dp", "", 2, {0, 1}},  // another length than the event's group: not believed
                      {"pp", "", 2, {0, 4}}};
  const RankTimeline rank = classified(std::move(recording));
  ASSERT_EQ(rank.groups.size(), 5U);
  EXPECT_EQ(rank.groups[0].ranks, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(rank.groups[0].description, "tensor");
  EXPECT_EQ(rank.groups[1].ranks, (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(rank.groups[2].ranks, (std::vector<int>{0, 4}));
  EXPECT_EQ(rank.groups[2].size, 2);
  EXPECT_EQ(rank.devices[0].comm[2].group_size, 2) << "the list knows the size";
  EXPECT_EQ(rank.groups[3].ranks.size(), 8U) << "as large as the job";
  EXPECT_TRUE(rank.groups[4].ranks.empty()) << "two ranks are no group of three";
}

// ---------------------------------------------------------------------------------------------
// Runs

Recording of_rank(std::string_view text, std::optional<std::int64_t> rank,
                  std::string_view path = "x.json", std::int64_t process = 4100) {
  Situation s = situation(text);
  s.rank = rank;
  s.process = process;
  return notation::recording(s, path);
}

// "rank/run path" of each.
std::string runs_of(const Job& job) {
  std::string out;
  for (const RankTimeline& rank : job.ranks)
    out += (out.empty() ? "" : ", ") + std::to_string(rank.rank) + "/" + std::to_string(rank.run) +
           " " + rank.recording.path;
  return out;
}

template <class... Recordings>
Job arrange(const RunOptions& options, Recordings... recordings) {
  std::vector<Recording> all;
  (all.push_back(std::move(recordings)), ...);
  return arrange_runs(std::move(all), options);
}

TEST(Runs, RankInAName) {
  EXPECT_EQ(rank_in_name("rank-3.json"), 3);
  EXPECT_EQ(rank_in_name("a/b/trace_rank12.pt.json.gz"), 12);
  EXPECT_EQ(rank_in_name("RANK_007.json"), 7);
  EXPECT_EQ(rank_in_name("a/rank_7/trace.json"), 7);
  EXPECT_EQ(rank_in_name("rank_7/rank_8.json"), 8);
  EXPECT_EQ(rank_in_name("rank1_rank2.json"), 2);
  EXPECT_EQ(rank_in_name("rank5/x/trace.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("trace.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("rank.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("rank--1.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("rank99999999999999999999.json"), std::nullopt);
  EXPECT_EQ(rank_in_name(""), std::nullopt);
  EXPECT_EQ(rank_in_name("/"), std::nullopt);
}

TEST(Runs, RankByFileThenNameThenOrder) {
  const auto three = [](RankFrom from) {
    RunOptions options;
    options.rank_from = from;
    return arrange(options, of_rank("compute@7 [0,1)", 5, "rank-1.json"),
                   of_rank("compute@7 [0,1)", {}, "rank-2.json"),
                   of_rank("compute@7 [0,1)", {}, "z.json"));
  };
  EXPECT_EQ(runs_of(three(RankFrom::automatic)), "0/0 z.json, 2/0 rank-2.json, 5/0 rank-1.json");
  EXPECT_EQ(runs_of(three(RankFrom::file)), "0/0 rank-2.json, 1/0 z.json, 5/0 rank-1.json");
  EXPECT_EQ(runs_of(three(RankFrom::name)), "0/0 z.json, 1/0 rank-1.json, 2/0 rank-2.json");
  EXPECT_EQ(runs_of(three(RankFrom::order)), "0/0 rank-1.json, 1/0 rank-2.json, 2/0 z.json");
  const Job job = three(RankFrom::automatic);
  EXPECT_EQ(job.ranks[0].recording.notes.count(Note::rank_from_order), 1);
  EXPECT_EQ(job.ranks[1].recording.notes.count(Note::rank_from_file_name), 1);
  EXPECT_FALSE(job.ranks[2].recording.notes.any());
}

TEST(Runs, MissingRanks) {
  Recording a = of_rank("compute@7 [0,1)", 1);
  a.world_size = 5;
  const Job job = arrange({}, std::move(a), of_rank("compute@7 [0,1)", 4));
  EXPECT_EQ(job.world_size, 5);
  EXPECT_EQ(job.missing_ranks, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(job.notes.count(Note::missing_ranks), 3);
  EXPECT_NE(job.notes.example(Note::missing_ranks).find("0,2,3 of 5"), std::string::npos)
      << job.notes.example(Note::missing_ranks);
}

TEST(Runs, OneRankTwice) {
  // Another process, at the same time.
  const Job by_process = arrange({}, of_rank("compute@7 [0,9)", 1, "b.json", 1),
                                 of_rank("compute@7 [0,9); launch [0]", 1, "a.json", 2));
  EXPECT_EQ(runs_of(by_process), "1/0 a.json, 1/1 b.json");
  EXPECT_EQ(by_process.notes.count(Note::repeated_rank), 1);
  // The same process later.
  const Job by_time = arrange({}, of_rank("compute@7 [5s,6s)", 1, "a.json"),
                              of_rank("compute@7 [0s,1s)", 1, "b.json"));
  EXPECT_EQ(runs_of(by_time), "1/0 b.json, 1/1 a.json");
  // A millisecond is no gap.
  const Job together = arrange({}, of_rank("compute@7 [1.001s,2s)", 1, "a.json"),
                               of_rank("compute@7 [0s,1s)", 1, "b.json"));
  EXPECT_EQ(runs_of(together), "1/0 b.json");
  EXPECT_EQ(together.notes.count(Note::repeated_rank), 0);
  EXPECT_EQ(together.ranks[0].recording.notes.count(Note::merged_files), 1);
}

TEST(Runs, PiecesMayHaveBasesOfTheirOwn) {
  Recording a = of_rank("compute@7 [0s,1s)", 1, "a.json");
  Recording b = of_rank("all_reduce@7 [0s,1s)", 1, "b.json");
  b.clock_base += 500'000'000;
  const Job job = arrange({}, std::move(b), std::move(a));
  ASSERT_EQ(job.ranks.size(), 1U);
  const Recording& whole = job.ranks[0].recording;
  ASSERT_EQ(whole.gpu.size(), 2U);
  EXPECT_EQ(whole.gpu.start[1] - whole.gpu.start[0], 500'000'000);
}

TEST(Runs, TheSameFileTwiceCountsOnce) {
  const std::string_view text =
      "compute@7 [0,9) [0,9) corr=1; all_reduce@20 [3,12) corr=2 bytes=8; launch@5 [0] corr=1; "
      "record@5 [0,9) id=7 op=allreduce; step#1 [0,9)";
  const Job once = arrange({}, of_rank(text, 1, "a.json"));
  const Job twice = arrange({}, of_rank(text, 1, "a.json"), of_rank(text, 1, "b.json"));
  ASSERT_EQ(twice.ranks.size(), 1U);
  const Recording& recording = twice.ranks[0].recording;
  EXPECT_EQ(recording.gpu.size(), 3U) << "events that are equal within one file stay";
  EXPECT_EQ(recording.notes.count(Note::duplicate_events), 4);
  EXPECT_EQ(recording.host_ranges.size(), 1U);
  EXPECT_EQ(recording.launches.size(), 1U);
  EXPECT_EQ(recording.steps.size(), 1U);
}

// Communication on the host is made of host ranges: these count once too.
TEST(Runs, TheSameHostRecordingTwiceCountsOnce) {
  const std::string_view text =
      "range@5 [0,9) name=gloo:all_reduce; range@5 [10,12) name=gloo:broadcast";
  Job job = arrange({}, of_rank(text, 1, "a.json"), of_rank(text, 1, "b.json"));
  ASSERT_EQ(job.ranks.size(), 1U);
  classify(job.ranks[0], {});
  EXPECT_EQ(ops(job.ranks[0]), "all_reduce host_interval, broadcast host_interval");
}

// Ranks are analysed as they are read and let go of their columns; a piece of another recording is
// read again, and what was learned of it stays.
TEST(Runs, PiecesThatLetGoOfTheirColumns) {
  const std::map<std::string, std::string_view> files = {
      {"rank-1-a.json", "compute@7 [0,9) corr=1; all_reduce@20 [3,12) corr=2 bytes=8"},
      {"rank-1-b.json", "compute@7 [10,11) corr=3; all_reduce@20 [3,12) corr=2 bytes=8"},
      {"rank-2.json", "compute@7 [0,9) corr=1; broadcast@20 [3,12) corr=2"}};
  std::vector<RankTimeline> ranks;
  for (const auto& [path, text] : files) {
    RankTimeline rank = classified(of_rank(text, {}, path));
    const Interval extent = recorded_extent(rank.recording);
    let_go_of_columns(rank);
    EXPECT_EQ(rank.recording.gpu.size(), 0U);
    EXPECT_EQ(recorded_extent(rank.recording), extent);
    ranks.push_back(std::move(rank));
  }
  RunOptions options;
  std::vector<std::string> read;
  options.read_again = [&](const std::string& path) {
    read.push_back(path);
    return of_rank(files.at(path), {}, path);
  };
  const Job job = arrange_runs(std::move(ranks), options);
  EXPECT_EQ(runs_of(job), "1/0 rank-1-a.json, 2/0 rank-2.json");
  EXPECT_EQ(read, (std::vector<std::string>{"rank-1-a.json", "rank-1-b.json"}));
  EXPECT_EQ(job.ranks[0].recording.gpu.size(), 3U);
  // Each file keeps its own notes.
  EXPECT_EQ(job.ranks[0].recording.notes.count(Note::rank_from_file_name), 1);
  ASSERT_EQ(job.notes_of_pieces.size(), 1U);
  EXPECT_EQ(job.notes_of_pieces[0].second.count(Note::rank_from_file_name), 1);
  EXPECT_EQ(job.ranks[0].recording.notes.count(Note::duplicate_events), 1);
  EXPECT_TRUE(job.ranks[0].devices.empty()) << "what was derived from a piece does not hold";
  // The other rank keeps its figures' names without its columns.
  const RankTimeline& other = job.ranks[1];
  EXPECT_EQ(ops(other), "broadcast kernel_name");
  EXPECT_TRUE(other.recording.strings.get(other.devices[0].comm[0].name).starts_with("nccl"));
}

TEST(Runs, HostNames) {
  RunOptions options;
  Recording in_trace = of_rank("compute@7 [0,1)", 0, "a.json");
  in_trace.host = "node7";
  const std::string handler = "dir/node1.example.com_4711.1740461679479712.pt.trace.json.gz";
  const Job job = arrange(options, std::move(in_trace), of_rank("compute@7 [0,1)", 1, handler),
                          of_rank("compute@7 [0,1)", 2, "node_a_12.17.pt.trace.json"),
                          of_rank("compute@7 [0,1)", 3, "node9_77.pt.trace.json"),
                          of_rank("compute@7 [0,1)", 4, "my_run.pt.trace.json"),
                          of_rank("compute@7 [0,1)", 5, "node_5.json"));
  EXPECT_EQ(job.ranks[0].host, "node7");
  EXPECT_EQ(job.ranks[1].host, "node1.example.com");
  EXPECT_EQ(job.ranks[2].host, "node_a");
  EXPECT_EQ(job.ranks[3].host, "node9");
  EXPECT_EQ(job.ranks[4].host, "");
  EXPECT_EQ(job.ranks[5].host, "");
  EXPECT_EQ(job.hosts_from, "trace, file name");
  options.host_of = [](std::int64_t rank, const std::string&) {
    return rank == 0 ? std::string("mine") : std::string();
  };
  Recording again = of_rank("compute@7 [0,1)", 0, "a.json");
  again.host = "node7";
  EXPECT_EQ(arrange(options, std::move(again)).ranks[0].host, "mine");
}

// ---------------------------------------------------------------------------------------------
// Windows of steps

std::string tiles(const DeviceTimeline& device, Ns origin) {
  std::string out;
  for (const auto& [number, window] : device.steps)
    out += (out.empty() ? "" : ", ") + std::to_string(number) + " [" +
           std::to_string(window.start - origin) + "," + std::to_string(window.end - origin) + ")";
  return out;
}

std::string tiles(std::string_view text, std::string* notes = nullptr) {
  const Situation s = situation(text);
  const RankTimeline rank = classified(notation::recording(s));
  if (notes != nullptr) {
    for (std::size_t i = 0; i < Notes::kCount; ++i) {
      const auto note = static_cast<Note>(i);
      const std::string_view code = note_info(note).code;
      if (rank.notes.count(note) > 0 && code.find("step") != std::string_view::npos)
        *notes += std::string(code) + "=" + std::to_string(rank.notes.count(note)) + " ";
    }
  }
  return rank.devices.empty() ? "no device" : tiles(rank.devices[0], s.origin);
}

TEST(Steps, FromTheFirstStartLaunchedInside) {
  std::string notes;
  EXPECT_EQ(
      tiles("step#7 [0,100); step#8 [100,200); launch [10] corr=1; launch [20] corr=2; "
            "launch [110] corr=3; launch [120] corr=4; launch [250] corr=5; "
            "compute@7 [50,60) corr=1; all_reduce@20 [70,180) corr=2; "
            "compute@7 [150,160) corr=3; compute@7 [170,190) corr=4; compute@7 [300,400) corr=5",
            &notes),
      "7 [50,150), 8 [150,190)");
  EXPECT_EQ(notes, "");
}

TEST(Steps, OutOfOrderStartsStillTile) {
  // Step 8's work begins before step 7's on another stream: step 7's window is empty.
  EXPECT_EQ(tiles("step#7 [0,100); step#8 [100,200); launch [10] corr=1; launch [110] corr=2; "
                  "compute@7 [50,60) corr=1; compute@9 [40,45) corr=2"),
            "7 [50,50), 8 [50,50)");
}

TEST(Steps, AStepWithoutWorkIsSaid) {
  std::string notes;
  EXPECT_EQ(tiles("step#7 [0,100); step#8 [100,200); step#9 [200,300); launch [10] corr=1; launch "
                  "[210] corr=2; compute@7 [50,60) corr=1; compute@7 [220,230) corr=2",
                  &notes),
            "7 [50,220), 9 [220,230)");
  EXPECT_EQ(notes, "step_without_gpu_work=1 ");
}

TEST(Steps, WithoutLaunchesByTheirCopiesThenByTheHost) {
  std::string notes;
  EXPECT_EQ(tiles("step#7 [0,100); step#8 [100,200); gpu_step#7 [20,130) ; gpu_step#8 [120,240); "
                  "compute@7 [20,240)",
                  &notes),
            "7 [20,120), 8 [120,240)");
  EXPECT_EQ(notes, "steps_from_annotations=1 ");
  notes.clear();
  EXPECT_EQ(tiles("step#7 [0,100); step#8 [100,200); compute@7 [20,240)", &notes),
            "7 [0,100), 8 [100,200)");
  EXPECT_EQ(notes, "steps_from_host=1 ");
  notes.clear();
  // Launches of something else: that no step launched anything is not what is said.
  EXPECT_EQ(
      tiles("step#7 [0,100); gpu_step#7 [20,130); launch [500] corr=1; compute@7 [20,130) corr=1",
            &notes),
      "7 [20,130)");
  EXPECT_EQ(notes, "steps_from_annotations=1 ");
  EXPECT_EQ(tiles("compute@7 [20,240)"), "");
}

// A file can name very many devices and steps: memory goes with what works in them, not with their
// product, here 24 GB.
TEST(Steps, ManyDevicesAndSteps) {
  constexpr int kMany = 30'000;
  RankTimeline rank;
  Recording& recording = rank.recording;
  const StringId name = recording.strings.intern("volta_sgemm_128x64_nn");
  for (int i = 0; i < kMany; ++i) {
    const Ns at = Ns{1000} * i;
    recording.steps.push_back({.number = i, .host = {at, at + 1000}, .gpu_annotation = {}});
    recording.streams.push_back({.device = i, .context = kUnknown, .stream = 7});
    recording.launches.correlation.push_back(static_cast<std::uint64_t>(i) + 1);
    recording.launches.start.push_back(at);
    recording.launches.thread.push_back(ThreadId::from(0));
    recording.launches.external_id.push_back(0);
    recording.gpu.start.push_back(at + 100);
    recording.gpu.end.push_back(at + 200);
    recording.gpu.correlation.push_back(static_cast<std::uint64_t>(i) + 1);
    recording.gpu.external_id.push_back(0);
    recording.gpu.name.push_back(name);
    recording.gpu.stream.push_back(StreamId::from(static_cast<std::size_t>(i)));
    recording.gpu.meta.push_back(MetaId());
    recording.gpu.kind.push_back(ActivityKind::kernel);
  }
  recording.threads.emplace_back(1, 1);
  rank = classified(std::move(recording));
  ASSERT_EQ(rank.devices.size(), static_cast<std::size_t>(kMany));
  EXPECT_EQ(rank.devices[5].steps.size(), 1U);
  EXPECT_EQ(rank.devices[5].steps[0].first, 5);
  EXPECT_EQ(rank.notes.count(Note::step_without_gpu_work), std::int64_t{kMany} * (kMany - 1));
}

TEST(Steps, ChosenWindow) {
  const Situation s = situation(
      "step#7 [0,100); step#8 [100,200); step#9 [200,300); launch [10] corr=1; launch [110] "
      "corr=2; "
      "launch [210] corr=3; compute@7 [5,15); compute@7 [50,60) corr=1; compute@7 [150,160) "
      "corr=2; "
      "compute@7 [250,260) corr=3; compute@7 [300,310)");
  const RankTimeline rank = classified(notation::recording(s));
  const DeviceTimeline& device = rank.devices[0];
  EXPECT_EQ(chosen_window(device, {}), s.window(5, 310));
  EXPECT_EQ(chosen_window(device, {.choice = WindowChoice::steps, .steps = {}}), s.window(50, 260));
  EXPECT_EQ(chosen_window(device, {.steps = {8}}), s.window(150, 250));
  EXPECT_EQ(chosen_window(device, {.steps = {8, 9}}), s.window(150, 260));
  EXPECT_EQ(chosen_window(device, {.steps = {70}}), std::nullopt);
  EXPECT_TRUE(step_is_chosen(8, {.steps = {7, 8}}));
  EXPECT_FALSE(step_is_chosen(9, {.steps = {7, 8}}));
  EXPECT_TRUE(step_is_chosen(9, {}));
}

// ---------------------------------------------------------------------------------------------
// Backends on the host

TEST(HostIntervals, GlooRangesAreTheCommunication) {
  const std::string text = R"({"baseTimeNanoseconds": 1735632360000000000, "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 9, "tid": 2, "ts": 10, "dur": 6},
    {"ph": "X", "cat": "user_annotation", "name": "gloo:broadcast", "pid": 9, "tid": 2, "ts": 30, "dur": 2},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 1, "ts": 12, "dur": 8},
    {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 9, "tid": 1, "ts": 9, "dur": 2},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 1, "ts": 5, "dur": 20},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 9, "tid": 1, "ts": 25, "dur": 20}]})";
  const RankTimeline rank = classified(read_text(text, "test.json", true));
  ASSERT_EQ(rank.devices.size(), 1U);
  EXPECT_FALSE(rank.devices[0].device);
  EXPECT_EQ(ops(rank), "all_reduce host_interval, broadcast host_interval");
  // all_reduce [10,16) against mm [12,20): hidden 4, exposed 2; broadcast exposed 2.
  const WindowFigures figures = whole_figures(rank.devices[0]);
  EXPECT_EQ(buckets(figures.breakdown), "22000 4000 4000 4000 0 10000");
  EXPECT_EQ(rank.notes.count(Note::host_intervals), 2);
  EXPECT_EQ(rank.notes.count(Note::steps_from_host), 0) << "the host's range is the right one here";
  EXPECT_EQ(tiles(rank.devices[0], 0), "1 [5000,25000), 2 [25000,45000)");
}

TEST(HostIntervals, BesideAGpuTheyAreOnlySaid) {
  const RankTimeline rank = classified("compute@7 [0,9); range@5 [0,9) name=gloo:all_reduce");
  EXPECT_EQ(ops(rank), "");
  EXPECT_EQ(rank.notes.count(Note::host_communication), 1);
  const RankTimeline nothing = classified("range@5 [0,9) name=nccl:all_reduce");
  EXPECT_TRUE(nothing.devices.empty());
  EXPECT_EQ(nothing.notes.count(Note::no_gpu_events), 1);
}

// ---------------------------------------------------------------------------------------------
// Properties over generated traces

constexpr Ns kLongest = 160;

// Kernels on several streams, communication on some of them, copies, events without length, steps
// whose launches wander between them. Correlations are all different.
Situation generated(std::mt19937& random) {
  Situation s;
  const auto below = [&random](std::uint64_t end) { return static_cast<Ns>(random() % end); };
  static const Stream kStreams[] = {{0, 1, 7}, {0, 1, 20}, {0, 2, 20}, {0, 1, 24}};
  static const Situation kKinds = situation(
      "compute [0,1); compute [0,1); all_reduce [0,1) bytes=8 n=4 group=a; all_gather [0,1); "
      "reduce_scatter [0,1) bytes=64 n=4 group=b; memcpy [0,1); memset [0,1)");
  const Ns longest = random() % 3 == 0 ? 6 : 40;
  const auto count = static_cast<std::size_t>(1 + random() % 24);
  const Ns steps = below(4);
  for (std::size_t i = 0; i < count; ++i) {
    notation::Activity a = kKinds.activities[random() % kKinds.activities.size()];
    a.stream = kStreams[random() % std::size(kStreams)];
    a.correlation = i + 1;
    a.time.start = below(kLongest - 40);
    a.time.end =
        a.time.start + (random() % 8 == 0 ? 0 : below(static_cast<std::uint64_t>(longest)));
    s.activities.push_back(a);
    if (random() % 8 != 0) {
      const Ns step = (a.time.start + below(30)) * std::max<Ns>(1, steps) / kLongest;
      s.launches.push_back({a.correlation, 1'000 * step + below(1'000), 5});
    }
  }
  for (Ns step = 0; step < steps; ++step)
    s.steps.push_back({step + 7, {1'000 * step, 1'000 * (step + 1)}, false});
  s.rank = 1;
  s.world_size = 2;
  return s;
}

// Everything by looking at each nanosecond.
struct SlowFigures {
  Breakdown breakdown;
  std::vector<Exposure> exposures;
};

SlowFigures slow_figures(const Situation& s, const std::vector<std::size_t>& order, Interval window,
                         Interval extent) {
  SlowFigures result;
  Breakdown& b = result.breakdown;
  b.window = window;
  result.exposures.resize(order.size());
  const auto covers = [](Interval time, Ns at) { return time.start <= at && at < time.end; };
  const auto any = [&](ActivityClass kind, Ns at) {
    return std::any_of(s.activities.begin(), s.activities.end(), [&](const notation::Activity& a) {
      return a.kind_of_work == kind && covers(a.time, at);
    });
  };
  std::vector<std::size_t> exposed_now;  // of the piece that grows
  Ns piece = 0;
  const auto share_out = [&] {
    const auto k = static_cast<Ns>(exposed_now.size());
    for (Ns i = 0; i < k; ++i)
      result.exposures[exposed_now[static_cast<std::size_t>(i)]].exclusive +=
          piece / k + (i < piece % k ? 1 : 0);
    piece = 0;
  };
  for (Ns at = window.start; at < window.end; ++at) {
    const bool compute = any(ActivityClass::compute, at);
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (covers(s.activities[order[i]].time, at)) running.push_back(i);
    }
    for (const std::size_t i : running) {
      Exposure& e = result.exposures[i];
      ++e.busy;
      ++(compute ? e.hidden : e.exposed);
    }
    ++(running.empty() ? (compute                          ? b.compute_only
                          : any(ActivityClass::memory, at) ? b.memory_only
                                                           : b.idle)
       : compute       ? b.hidden_comm
                       : b.exposed_comm);
    if (compute) running.clear();
    if (running != exposed_now) {
      share_out();
      exposed_now = running;
    }
    ++piece;
  }
  share_out();
  // What starts at the very end of everything belongs to the last window with any length.
  const bool counts_the_end =
      window.end == extent.end && (window.length() > 0 || extent.length() == 0);
  const auto starts_in = [&](Interval time) {
    return time.start >= window.start &&
           (time.start < window.end || (time.start == window.end && counts_the_end));
  };
  for (const notation::Activity& a : s.activities) b.gpu_events += starts_in(a.time) ? 1 : 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Exposure& e = result.exposures[i];
    const Interval time = s.activities[order[i]].time;
    e.starts_inside = starts_in(time);
    e.in_window = e.starts_inside || (time.start < window.end && time.end > window.start);
    b.comm_events += e.starts_inside ? 1 : 0;
    b.comm_busy += e.busy;
    if (e.hidden > 0) b.whole_event_overlap += e.busy;
  }
  return result;
}

// Rows of the communications by start, stream, order in the file.
std::vector<std::size_t> comm_order(const Situation& s) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < s.activities.size(); ++i) {
    if (s.activities[i].kind_of_work == ActivityClass::communication) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&s](std::size_t a, std::size_t b) {
    const auto key = [&s](std::size_t i) {
      return std::tuple(s.activities[i].time.start, s.activities[i].stream, i);
    };
    return key(a) < key(b);
  });
  return order;
}

Interval extent_of(const Situation& s) {
  Interval extent = s.activities.front().time;
  for (const notation::Activity& a : s.activities)
    extent = {std::min(extent.start, a.time.start), std::max(extent.end, a.time.end)};
  return extent;
}

std::string all_of(const Breakdown& b) {
  return buckets(b) + " busy " + std::to_string(b.comm_busy) + " whole " +
         std::to_string(b.whole_event_overlap) + " events " + std::to_string(b.gpu_events) + " " +
         std::to_string(b.comm_events);
}

std::string all_of(const std::vector<Exposure>& exposures) {
  std::string out;
  for (const Exposure& e : exposures)
    out += std::to_string(e.busy) + " " + std::to_string(e.hidden) + " " +
           std::to_string(e.exposed) + " " + std::to_string(e.exclusive) +
           (e.in_window ? " in" : " out") + (e.starts_inside ? " counted; " : "; ");
  return out;
}

void expect_invariants(const WindowFigures& figures) {
  const Breakdown& b = figures.breakdown;
  ASSERT_EQ(b.compute_only + b.hidden_comm + b.exposed_comm + b.memory_only + b.idle,
            b.window.length());
  Ns exclusive = 0;
  Ns hidden = 0;
  for (const Exposure& e : figures.exposures) {
    ASSERT_EQ(e.hidden + e.exposed, e.busy);
    ASSERT_GE(e.hidden, 0);
    ASSERT_GE(e.exposed, 0);
    ASSERT_GE(e.exclusive, 0);
    ASSERT_LE(e.exclusive, e.exposed);
    exclusive += e.exclusive;
    hidden += e.hidden;
  }
  ASSERT_EQ(exclusive, b.exposed_comm);
  ASSERT_LE(hidden, b.whole_event_overlap);
  ASSERT_LE(b.hidden_comm, hidden);
  ASSERT_GE(b.idle, 0);
}

Breakdown sum(const std::vector<StepFigures>& steps) {
  Breakdown total;
  for (const StepFigures& step : steps) {
    const Breakdown& b = step.breakdown;
    total.window = total.window.length() == 0
                       ? b.window
                       : Interval{total.window.start, std::max(total.window.end, b.window.end)};
    total.compute_only += b.compute_only;
    total.hidden_comm += b.hidden_comm;
    total.exposed_comm += b.exposed_comm;
    total.memory_only += b.memory_only;
    total.idle += b.idle;
    total.comm_busy += b.comm_busy;
    total.gpu_events += b.gpu_events;
    total.comm_events += b.comm_events;
  }
  return total;
}

TEST(Properties, FiguresAreThoseOfEachNanosecond) {
  std::mt19937 random(11);
  for (int i = 0; i < 1'500; ++i) {
    const Situation s = generated(random);
    const DeviceTimeline device = notation::device_timeline(s);
    const std::vector<std::size_t> order = comm_order(s);
    const Interval extent = extent_of(s);
    const Ns start = static_cast<Ns>(random() % kLongest);
    const Ns end = start + static_cast<Ns>(random() % 60);
    for (const Interval window : {extent, Interval{start, end}, Interval{start, start}}) {
      const WindowFigures figures = window_figures(device, s.window(window.start, window.end));
      const SlowFigures slow = slow_figures(s, order, window, extent);
      ASSERT_EQ(all_of(figures.breakdown), all_of(slow.breakdown)) << i;
      ASSERT_EQ(all_of(figures.exposures), all_of(slow.exposures)) << i;
      expect_invariants(figures);
    }
  }
}

// classify() and the reader find what was written down.
TEST(Properties, EveryWayToATimelineGivesTheSame) {
  std::mt19937 random(12);
  for (int i = 0; i < 300; ++i) {
    const Situation s = generated(random);
    std::string wanted;
    for (const DeviceTimeline& device : by_all_ways(s)) {
      const WindowFigures figures = whole_figures(device);
      const std::string got = all_of(figures.breakdown) + all_of(figures.exposures);
      if (wanted.empty()) wanted = got;
      ASSERT_EQ(got, wanted) << notation::kineto_text(s);
    }
  }
}

TEST(Properties, MovedAndScaledTimes) {
  std::mt19937 random(13);
  for (int i = 0; i < 1'000; ++i) {
    const Situation s = generated(random);
    const WindowFigures figures = whole_figures(notation::device_timeline(s));
    const Ns shift = static_cast<Ns>(random() % 1'000'000'000) * 1'000;
    const WindowFigures later = whole_figures(notation::device_timeline(notation::moved(s, shift)));
    ASSERT_EQ(all_of(later.breakdown), all_of(figures.breakdown));
    ASSERT_EQ(all_of(later.exposures), all_of(figures.exposures));
    const Ns factor = static_cast<Ns>(2 + random() % 1'000);
    const WindowFigures larger =
        whole_figures(notation::device_timeline(notation::scaled(s, factor)));
    Breakdown scaled = figures.breakdown;
    scaled.window = {0, scaled.window.length() * factor};
    for (Ns* part :
         {&scaled.compute_only, &scaled.hidden_comm, &scaled.exposed_comm, &scaled.memory_only,
          &scaled.idle, &scaled.comm_busy, &scaled.whole_event_overlap})
      *part *= factor;
    ASSERT_EQ(all_of(larger.breakdown), all_of(scaled));
    for (std::size_t e = 0; e < figures.exposures.size(); ++e) {
      ASSERT_EQ(larger.exposures[e].hidden, figures.exposures[e].hidden * factor);
      ASSERT_EQ(larger.exposures[e].exposed, figures.exposures[e].exposed * factor);
    }
    expect_invariants(larger);
  }
}

TEST(Properties, StepsTileAndSumToTheirWindow) {
  std::mt19937 random(14);
  int with_steps = 0;
  for (int i = 0; i < 1'500; ++i) {
    const Situation s = generated(random);
    const RankTimeline rank = classified(notation::recording(s));
    ASSERT_EQ(rank.devices.size(), 1U);
    const DeviceTimeline& device = rank.devices[0];
    if (device.steps.empty()) continue;
    ++with_steps;
    const ExposureFigures exposure(device);
    std::vector<StepFigures> steps;
    std::vector<Ns> busy(device.comm.size());
    for (std::size_t step = 0; step < device.steps.size(); ++step) {
      const auto& [number, window] = device.steps[step];
      ASSERT_LE(window.start, window.end);
      if (step > 0) {
        ASSERT_EQ(window.start, device.steps[step - 1].second.end) << "steps tile";
      }
      steps.push_back(exposure.of(number, window));
      // Figures of a step are those of its window alone.
      const WindowFigures alone = window_figures(device, window);
      expect_invariants(alone);
      ASSERT_EQ(all_of(steps.back().breakdown), all_of(alone.breakdown));
      for (std::size_t e = 0; e < steps.back().exposures.size(); ++e)
        busy[steps.back().first_op + e] += steps.back().exposures[e].busy;
    }
    const auto window = chosen_window(device, {.choice = WindowChoice::steps, .steps = {}});
    ASSERT_TRUE(window);
    const WindowFigures whole = window_figures(device, *window);
    Breakdown total = sum(steps);
    ASSERT_EQ(buckets(total), buckets(whole.breakdown)) << notation::kineto_text(s);
    ASSERT_EQ(total.comm_busy, whole.breakdown.comm_busy);
    ASSERT_EQ(total.gpu_events, whole.breakdown.gpu_events) << notation::kineto_text(s);
    ASSERT_EQ(total.comm_events, whole.breakdown.comm_events);
    for (std::size_t e = 0; e < busy.size(); ++e) ASSERT_EQ(busy[e], whole.exposures[e].busy);
  }
  EXPECT_GT(with_steps, 500);
}

// A job as text, for comparing.
std::string described(Job& job) {
  std::string out;
  for (RankTimeline& rank : job.ranks) {
    classify(rank, {});
    find_step_windows(rank);
    out += std::to_string(rank.rank) + "/" + std::to_string(rank.run) + " " + rank.host + "\n";
    for (const DeviceTimeline& device : rank.devices) {
      const WindowFigures figures = whole_figures(device);
      out += all_of(figures.breakdown) + "\n" + all_of(figures.exposures) + "\n" +
             tiles(device, 0) + "\n";
      for (const CommOp& op : device.comm)
        out += std::to_string(op.time.start) + " " + std::to_string(op.source) + " " +
               std::string(op_name(op.op)) + " " + std::string(evidence_name(op.evidence)) + " " +
               std::to_string(op.bytes.value_or(-1)) + " " + std::to_string(op.group) + "\n";
    }
    out += std::to_string(rank.groups.size()) + " groups " +
           std::to_string(rank.recording.launches.size()) + " launches\n";
  }
  return out;
}

// One recording dealt out to several files of the same process.
std::vector<Situation> dealt_out(const Situation& s, std::size_t pieces, std::mt19937& random) {
  std::vector<Situation> result(pieces, s);
  for (Situation& piece : result) {
    piece.activities.clear();
    piece.launches.clear();
  }
  for (const notation::Activity& a : s.activities)
    result[random() % pieces].activities.push_back(a);
  for (const notation::Launch& launch : s.launches)
    result[random() % pieces].launches.push_back(launch);
  // A file without GPU work covers other times than its neighbours: what it holds goes to a file
  // that has some.
  std::sort(result.begin(), result.end(), [](const Situation& a, const Situation& b) {
    return a.activities.size() > b.activities.size();
  });
  while (result.back().activities.empty()) {
    result.front().launches.insert(result.front().launches.end(), result.back().launches.begin(),
                                   result.back().launches.end());
    result.pop_back();
  }
  return result;
}

std::vector<Recording> recordings_of(const std::vector<Situation>& pieces) {
  std::vector<Recording> result;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    result.push_back(notation::recording(pieces[i], "piece-" + std::to_string(i) + ".json"));
  return result;
}

TEST(Properties, PiecesGiveTheFiguresOfTheWhole) {
  std::mt19937 random(15);
  for (int i = 0; i < 1'000; ++i) {
    const Situation s = generated(random);
    const std::vector<Situation> pieces = dealt_out(s, 1 + random() % 3, random);
    Job job = arrange_runs(recordings_of(pieces), {});
    ASSERT_EQ(job.ranks.size(), 1U);
    RankTimeline& merged = job.ranks[0];
    ASSERT_EQ(merged.recording.notes.count(Note::duplicate_events), 0);
    classify(merged, {});
    find_step_windows(merged);
    const RankTimeline whole = classified(notation::recording(s));
    ASSERT_EQ(all_of(whole_figures(merged.devices[0]).breakdown),
              all_of(whole_figures(whole.devices[0]).breakdown));
    ASSERT_EQ(tiles(merged.devices[0], 0), tiles(whole.devices[0], 0));
    ASSERT_EQ(merged.evidence, whole.evidence);
    ASSERT_EQ(merged.groups.size(), whole.groups.size());
    ASSERT_EQ(merged.recording.launches.size(), whole.recording.launches.size());
    // Equal starts on one stream stand in another order in the file: their shares may differ by the
    // left-over nanoseconds, nothing else.
    ASSERT_EQ(merged.devices[0].comm.size(), whole.devices[0].comm.size());
  }
}

TEST(Properties, FilesInAnyOrderGiveTheSameJob) {
  std::mt19937 random(16);
  for (int i = 0; i < 80; ++i) {
    std::vector<Situation> pieces = dealt_out(generated(random), 2, random);
    // Another rank, and another run of the first.
    pieces.push_back(generated(random));
    pieces.back().rank = 0;
    pieces.push_back(notation::moved(generated(random), 5'000'000'000));
    const std::size_t count = pieces.size();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::string wanted;
    do {
      std::vector<Recording> all = recordings_of(pieces);
      std::vector<Recording> ordered;
      for (const std::size_t at : order) ordered.push_back(std::move(all[at]));
      Job job = arrange_runs(std::move(ordered), {});
      ASSERT_EQ(job.ranks.size(), 3U);
      const std::string got = described(job);
      if (wanted.empty()) wanted = got;
      ASSERT_EQ(got, wanted);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Large sets, where sums and trees are deep: invariants only.
// By its rule, at a cost that many launches of one correlation do not square.
TEST(LaunchIndex, TheNearestOfOneCorrelationThenTheLast) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    Launches launches;
    for (int i = 0; i < 40; ++i) {
      launches.correlation.push_back(1 + random() % 3);
      launches.start.push_back(static_cast<Ns>(random() % 30));
      launches.thread.push_back(ThreadId::from(0));
    }
    const LaunchIndex index(launches);
    for (std::uint64_t id = 0; id < 5; ++id) {
      for (Ns at = -1; at <= 31; ++at) {
        std::optional<std::size_t> best;
        const auto far = [&](std::size_t i) { return std::abs(launches.start[i] - at); };
        for (std::size_t i = 0; i < launches.size() && id != 0; ++i) {
          if (launches.correlation[i] == id && (!best || far(i) <= far(*best))) best = i;
        }
        ASSERT_EQ(index.find(id, at), best) << trial << " " << id << " " << at;
      }
    }
  }
  Launches same;
  for (int i = 0; i < 200'000; ++i) {
    same.correlation.push_back(5);
    same.start.push_back(i);
    same.thread.push_back(ThreadId::from(0));
  }
  const LaunchIndex index(same);
  for (std::size_t i = 0; i < same.size(); ++i) ASSERT_EQ(index.find(5, static_cast<Ns>(i)), i);
}

TEST(Properties, ManyEvents) {
  std::mt19937_64 random(17);
  Situation s;
  const Situation kinds = situation("compute@7 [0,1); all_reduce@20 [0,1); memcpy@9 [0,1)");
  for (int i = 0; i < 30'000; ++i) {
    notation::Activity a = kinds.activities[random() % 3];
    a.stream.stream += static_cast<std::int64_t>(random() % 50);
    a.time.start = static_cast<Ns>(random() % 1'000'000'000);
    a.time.end = a.time.start + static_cast<Ns>(random() % 30'000'000 >> (random() % 20));
    s.activities.push_back(a);
  }
  const DeviceTimeline device = notation::device_timeline(s);
  expect_invariants(whole_figures(device));
  expect_invariants(window_figures(device, s.window(200'000'000, 700'000'001)));
}

// Starts of many streams, which come unsorted within each, are in time, and all there.
TEST(Classify, StartsOfAllStreamsInTime) {
  std::mt19937_64 random(23);
  for (const int streams : {1, 2, 3, 7, 50}) {
    Situation s;
    const Situation kinds = situation("compute@7 [0,1); all_reduce@7 [0,1); memcpy@7 [0,1)");
    for (int i = 0; i < 1'000; ++i) {
      notation::Activity a = kinds.activities[random() % 3];
      a.stream.stream += static_cast<std::int64_t>(random()) & 0xFFFF;
      a.stream.stream %= streams;
      a.time = {.start = static_cast<Ns>(random() % 100'000), .end = 200'000};
      s.activities.push_back(a);
    }
    const RankTimeline rank = classified(notation::recording(s));
    std::vector<Ns> wanted;
    for (std::size_t i = 0; i < rank.recording.gpu.size(); ++i)
      wanted.push_back(rank.recording.gpu.start[i]);
    std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(rank.devices.size(), 1U);
    EXPECT_EQ(rank.devices[0].starts, wanted) << streams << " streams";
    EXPECT_EQ(rank.devices[0].extent.start, wanted.front());
  }
}

}  // namespace
}  // namespace commlens
