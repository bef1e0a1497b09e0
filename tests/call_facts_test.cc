// What tells a communication from the group's others: numbers, roots, peers and steps, from the
// text of a file to the communications of a rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ingest/format.h"
#include "match/classify.h"
#include "match/merge.h"
#include "match/windows.h"
#include "notation.h"
#include "same_recording.h"
#include "simulate/profile.h"
#include "simulate/recording.h"

namespace commlens {
namespace {

using notation::KinetoLayout;
using notation::situation;
using notation::Situation;
using notation::Style;

Recording read_text(std::string_view text) {
  const Format& kineto = *find_format("kineto");
  TraceBuilder builder("rank-0.json", "kineto");
  Source source = Source::memory("rank-0.json", text);
  kineto.read(source, "", {}, builder);
  return builder.finish();
}

RankTimeline classified(Recording recording) {
  RankTimeline rank;
  rank.recording = std::move(recording);
  classify(rank, {});
  find_step_windows(rank);
  return rank;
}

// Written down, through the builder; and through the text of a file, which must say the same.
RankTimeline classified(std::string_view text) {
  const Situation s = situation(text);
  RankTimeline rank = classified(notation::recording(s));
  const RankTimeline read =
      classified(read_text(notation::kineto_text(s, {.style = Style::compact, .shuffle = 5})));
  EXPECT_EQ(read.peers.size(), rank.peers.size());
  for (std::size_t i = 0; i < rank.devices.at(0).comm.size(); ++i) {
    const CommOp& a = rank.devices[0].comm[i];
    const CommOp& b = read.devices.at(0).comm.at(i);
    EXPECT_EQ(std::tuple(a.seq, a.comms_id, a.root, a.zero_split, a.step, a.peers),
              std::tuple(b.seq, b.comms_id, b.root, b.zero_split, b.step, b.peers));
  }
  return rank;
}

// "->3:400 <-1": whom a communication sends to and receives from, with bytes where they are known.
std::string peers(const RankTimeline& rank, std::size_t row = 0) {
  const CommOp& op = rank.devices.at(0).comm.at(row);
  std::string out;
  for (std::uint32_t i = op.first_peer; i < op.first_peer + op.peers; ++i) {
    const Peer& peer = rank.peers.at(i);
    out += (out.empty() ? "" : " ") + std::string(peer.sends ? "->" : "<-");
    out += std::to_string(peer.rank);
    if (peer.bytes) out += ":" + std::to_string(*peer.bytes);
  }
  return out;
}

// ---------------------------------------------------------------------------------------------
// Numbers

TEST(CallFacts, NumbersStandOnTheKernel) {
  const RankTimeline rank = classified(
      "all_reduce@20 [0,5) group=0 n=2 seq=41 comms_id=7; all_reduce@20 [6,9) group=0 n=2");
  EXPECT_EQ(rank.devices[0].comm[0].seq, 41);
  EXPECT_EQ(rank.devices[0].comm[0].comms_id, 7U);
  EXPECT_EQ(rank.devices[0].comm[1].seq, kUnknown);
  EXPECT_EQ(rank.devices[0].comm[1].comms_id, 0U);
}

TEST(CallFacts, AnIdentifierMayUseAll64Bits) {
  const std::string text =
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0,)"
      R"( "tid": 7, "ts": 5, "dur": 5, "args": {"Collective name": "allreduce", "Group size": 2,)"
      R"( "Seq": "12", "Comms Id": "18446744073709551615"}}]})";
  const CommOp op = classified(read_text(text)).devices.at(0).comm.at(0);
  EXPECT_EQ(op.comms_id, 18446744073709551615U);
  EXPECT_EQ(op.seq, 12);
}

TEST(CallFacts, NumbersOfTheRecordThatAKernelIsLinkedTo) {
  // By external id, by nesting of its launch; and a record of another operation says nothing.
  const RankTimeline rank = classified(
      "all_reduce@20 [10,15) id=77 group=0 n=2; all_reduce@20 [20,25) corr=5 group=0 n=2;"
      "all_reduce@20 [30,35) corr=6 group=0 n=2;"
      "record@1 [0,2) id=77 op=allreduce group=0 n=2 seq=3;"
      "record@1 [2000,4000) op=allreduce group=0 n=2 seq=4; launch@1 [3000] corr=5;"
      "record@1 [12000,14000) op=broadcast group=0 n=2 seq=9; launch@1 [13000] corr=6");
  EXPECT_EQ(rank.devices[0].comm[0].seq, 3);
  EXPECT_EQ(rank.devices[0].comm[1].seq, 4);
  EXPECT_EQ(rank.devices[0].comm[2].seq, kUnknown);
}

TEST(CallFacts, AWaitRepeatsTheNumberOfItsCollectiveAndIsNoCall) {
  const RankTimeline rank = classified(
      "all_reduce@20 [10,15) id=77 group=0 n=2; record@1 [0,2) id=77 op=allreduce group=0 n=2 "
      "seq=3;"
      "record@1 [3,4) id=78 op=wait group=0 n=2 seq=3");
  EXPECT_EQ(rank.recording.host_calls.size(), 1U);
  EXPECT_EQ(rank.devices[0].comm[0].seq, 3);
}

// ---------------------------------------------------------------------------------------------
// Roots and splits

TEST(CallFacts, ARootIsAPlaceInTheGroup) {
  const RankTimeline rank = classified(
      "broadcast@20 [10,15) id=77 group=tp ranks=2,5,7 n=3; all_reduce@20 [20,25) id=78 group=tp "
      "ranks=2,5,7 n=3;"
      "record@1 [0,2) id=77 op=broadcast group=tp ranks=2,5,7 n=3 rank=1;"
      "record@1 [3,4) id=78 op=allreduce group=tp ranks=2,5,7 n=3 rank=1");
  EXPECT_EQ(rank.devices[0].comm[0].root, 5);
  EXPECT_EQ(rank.devices[0].comm[1].root, -1);  // the own place: no root
}

TEST(CallFacts, ARootOfUnknownMembersIsNotKnown) {
  const RankTimeline rank = classified(
      "broadcast@20 [10,15) id=77 group=tp n=3; record@1 [0,2) id=77 op=broadcast group=tp n=3 "
      "rank=1");
  EXPECT_EQ(rank.devices[0].comm[0].root, -1);
}

TEST(CallFacts, SplitsWithAZero) {
  const RankTimeline rank = classified(
      "all_to_all@20 [0,1) n=2 split=4,0; all_to_all@20 [2,3) n=2 split=4,10;"
      "all_to_all@20 [4,5) n=2 split=0,0; all_to_all@20 [6,7) n=2 split=1,2,...;"
      "all_to_all@20 [8,9) n=2; all_gather@20 [10,11) n=2 split=4,0");
  const std::vector<bool> wanted = {true, false, false, true, false, false};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(rank.devices[0].comm[i].zero_split, wanted[i]) << i;
}

TEST(CallFacts, MembersByStartAndStride) {
  // The kernel's list is cut; a record of the same group says where the members lie.
  const RankTimeline rank = classified(
      "all_reduce@20 [0,1) group=dp n=4 ranks=1,3,...; record@1 [0,1) op=allreduce group=dp n=4 "
      "start=1 stride=2");
  const CommOp& op = rank.devices[0].comm[0];
  ASSERT_GE(op.group, 0);
  EXPECT_EQ(rank.groups[static_cast<std::size_t>(op.group)].ranks, (std::vector<int>{1, 3, 5, 7}));
}

TEST(CallFacts, TwoGroupsOfOneNameHaveNoStride) {
  const RankTimeline rank = classified(
      "all_reduce@20 [0,1) group=dp n=4; record@1 [0,1) op=allreduce group=dp n=4 start=1 stride=2;"
      "record@1 [2,3) op=allreduce group=dp n=4 start=0 stride=2");
  const CommOp& op = rank.devices[0].comm[0];
  EXPECT_TRUE(rank.groups[static_cast<std::size_t>(op.group)].ranks.empty());
}

// A recording with one communication for each of these, all of them different.
Recording with_groups(const std::vector<std::pair<std::string, std::string>>& names_and_ranks,
                      std::int64_t size) {
  TraceBuilder builder("rank-0.json", "kineto");
  builder.about().world_size = size;
  for (std::size_t i = 0; i < names_and_ranks.size(); ++i) {
    const auto& [name, ranks] = names_and_ranks[i];
    const MetaId meta = builder.add_meta({.collective = builder.intern("allreduce"),
                                          .dtype = {},
                                          .in_elements = static_cast<std::int64_t>(i),
                                          .group_size = size,
                                          .group_name = builder.intern(name),
                                          .group_description = {},
                                          .group_ranks = builder.intern(ranks)});
    builder.add_activity({.start = 5, .end = 6, .name = "n", .stream = {}, .meta = meta});
  }
  return builder.finish();
}

TEST(Groups, ManyOperationsOfOneGroupKeepItsMembers) {
  std::string ranks = "[0";
  for (int rank = 1; rank < 1'024; ++rank) ranks += ", " + std::to_string(rank);
  const RankTimeline rank =
      classified(with_groups(std::vector(5'000, std::pair{std::string("0"), ranks + "]"}), 1'024));
  ASSERT_EQ(rank.groups.size(), 1U);
  EXPECT_EQ(rank.groups[0].ranks.size(), 1'024U);
}

TEST(Groups, TheMembersOfAllGroupsTogetherAreBounded) {
  std::vector<std::pair<std::string, std::string>> names;
  for (int i = 0; i < 5'000; ++i) names.emplace_back(std::to_string(i), "[]");
  const RankTimeline rank = classified(with_groups(names, 1'000'000));
  ASSERT_EQ(rank.groups.size(), 5'000U);
  const auto known = std::count_if(rank.groups.begin(), rank.groups.end(),
                                   [](const GroupIdentity& group) { return !group.ranks.empty(); });
  EXPECT_EQ(known, 4);  // of a million each
}

// ---------------------------------------------------------------------------------------------
// Peers

TEST(CallFacts, APeerIsTheOtherRank) {
  const RankTimeline rank = classified(
      "send@20 [0,1) op=send group=pp n=2 ranks=3,7 bytes=100 src=3 dst=7;"
      "recv@20 [2,3) op=recv group=pp n=2 ranks=3,7 bytes=50 src=7; send@20 [4,5) op=send group=pp "
      "n=2 src=3");
  EXPECT_EQ(peers(rank, 0), "->7:100");
  EXPECT_EQ(peers(rank, 1), "<-7:50");
  EXPECT_EQ(peers(rank, 2), "");  // the own rank only
}

TEST(CallFacts, APeerByItsPlaceInTheGroup) {
  // The record's rank; else the name of the range.
  const RankTimeline rank = classified(
      "send@20 [10,11) id=77 op=send group=pp n=3 ranks=3,7,8 bytes=4;"
      "recv@20 [20,21) corr=5 op=recv group=pp n=3 ranks=3,7,8 bytes=4;"
      "record@1 [0,2) id=77 op=send group=pp n=3 ranks=3,7,8 rank=2;"
      "range@1 [2000,4000) name=nccl:recv_0<-1; launch@1 [3000] corr=5");
  EXPECT_EQ(peers(rank, 0), "->8:4");
  EXPECT_EQ(peers(rank, 1), "");  // an underscore is no blank: such a name is not known
}

TEST(CallFacts, APeerInTheNameOfARange) {
  Situation s = situation(
      "recv@20 [20,21) corr=5 op=recv group=pp n=3 ranks=3,7,8 bytes=4;"
      "range@1 [2000,4000) name=nccl:recv; launch@1 [3000] corr=5");
  s.host[0].name = "nccl:recv 0<-1";
  EXPECT_EQ(peers(classified(notation::recording(s))), "<-7:4");
  s.host[0].name = "nccl:recv 0<-5";
  EXPECT_EQ(peers(classified(notation::recording(s))), "");
}

constexpr std::string_view kGroupOfFour =
    "record@1 [0,500) op=send group=pp n=4 ranks=0,1,2,3 bytes=10 dst=1;"
    "record@1 [1000,1500) op=recv group=pp n=4 ranks=0,1,2,3 bytes=20 src=3;"
    "record@1 [2000,2500) op=send group=pp n=4 ranks=0,1,2,3 bytes=30 rank=3;"
    "record@1 [3000,3500) op=recv group=pp n=4 ranks=0,1,2,3 bytes=40 rank=1 id=78;";

TEST(CallFacts, AGroupedKernelHasAllItsCalls) {
  // Linked to no record, or to the last one.
  const std::string all = "->1:10 <-3:20 ->3:30 <-1:40";
  EXPECT_EQ(peers(classified(std::string(kGroupOfFour) +
                             "launch@1 [9000] corr=5; send_recv@20 [9500,9900) corr=5")),
            all);
  const RankTimeline rank =
      classified(std::string(kGroupOfFour) +
                 "launch@1 [9000] corr=5; recv@20 [9500,9900) corr=5 id=78 op=recv group=pp n=4 "
                 "ranks=0,1,2,3 src=1 seq=9");
  EXPECT_EQ(peers(rank), all);
  EXPECT_EQ(rank.devices[0].comm[0].seq, kUnknown);  // each call has its own
}

TEST(CallFacts, OtherWorkMayBeLaunchedInBetween) {
  EXPECT_EQ(peers(classified(std::string(kGroupOfFour) +
                             "launch@1 [1700] corr=4; compute@7 [1800,1900) corr=4;"
                             "launch@1 [9000] corr=5; send_recv@20 [9500,9900) corr=5")),
            "->1:10 <-3:20 ->3:30 <-1:40");
}

TEST(CallFacts, AGroupThatCannotBeToldHasNoPeers) {
  const std::string kernel = "launch@1 [9000] corr=5; send_recv@20 [9500,9900) corr=5;";
  // With a collective in it.
  EXPECT_EQ(peers(classified(std::string(kGroupOfFour) + kernel +
                             "record@1 [4000,4100) op=allreduce group=pp n=4")),
            "");
  // Of two groups.
  EXPECT_EQ(peers(classified(std::string(kGroupOfFour) + kernel +
                             "record@1 [4000,4100) op=send group=other n=2 dst=1")),
            "");
  // With a call whose peer nothing tells.
  EXPECT_EQ(peers(classified(std::string(kGroupOfFour) + kernel +
                             "record@1 [4000,4100) op=send group=pp n=4 ranks=0,1,2,3")),
            "");
}

TEST(CallFacts, ALaunchWithoutItsKernelEndsAGroup) {
  const RankTimeline rank =
      classified(std::string(kGroupOfFour) +
                 "launch@1 [4000] corr=4; record@1 [5000,5500) op=send group=pp n=4 ranks=0,1,2,3 "
                 "bytes=7 dst=2;"
                 "record@1 [6000,6500) op=recv group=pp n=4 ranks=0,1,2,3 bytes=8 src=2;"
                 "launch@1 [9000] corr=5; send_recv@20 [9500,9900) corr=5");
  EXPECT_EQ(peers(rank), "->2:7 <-2:8");
}

TEST(CallFacts, CallsWithLaunchesOfTheirOwnAreNotGrouped) {
  const RankTimeline rank = classified(
      "record@1 [0us,9us) op=send group=pp n=2 ranks=0,1 bytes=10 dst=1; launch@1 [5us] corr=4;"
      "record@1 [10us,19us) op=recv group=pp n=2 ranks=0,1 bytes=20 src=1; launch@1 [15us] corr=5;"
      "send_recv@20 [20us,30us) corr=4; send_recv@20 [40us,50us) corr=5");
  EXPECT_EQ(peers(rank, 0), "->1:10");
  EXPECT_EQ(peers(rank, 1), "<-1:20");
}

// ---------------------------------------------------------------------------------------------
// Steps

TEST(CallFacts, TheStepIsTheOneOfTheLaunch) {
  // Launched in step 3, running in step 4's window.
  const RankTimeline rank = classified(
      "step#3 [0,1000); step#4 [1000,2000);"
      "launch@1 [100] corr=1; launch@1 [900] corr=2; launch@1 [1100] corr=3; launch@1 [2500] "
      "corr=4;"
      "compute@7 [200,300) corr=1; all_reduce@20 [1300,1400) corr=2; compute@7 [1200,1900) corr=3;"
      "all_reduce@20 [2600,2700) corr=4; all_reduce@20 [250,260)");
  const std::vector<CommOp>& comm = rank.devices[0].comm;
  EXPECT_EQ(comm[0].step, 3);         // no launch: by the window [200, 1200) of step 3
  EXPECT_EQ(comm[1].step, 3);         // by its launch
  EXPECT_EQ(comm[2].step, kUnknown);  // launched after the last step
}

TEST(CallFacts, WithoutStepsThereIsNone) {
  EXPECT_EQ(classified("all_reduce@20 [250,260)").devices[0].comm[0].step, kUnknown);
}

// ---------------------------------------------------------------------------------------------
// Simulated jobs, whose calls are known

// How many communications were looked at, and how many of them point-to-point.
struct Seen {
  int all = 0;
  int pairs = 0;
};

Seen expect_facts_of(const simulate::SimulatedJob& job, int number,
                     const simulate::RecordOptions& options) {
  const simulate::Profile profile(job, number, options);
  const RankTimeline rank = classified(simulate::record_rank(job, number, options));
  std::vector<const simulate::GpuEvent*> kept;
  for (std::size_t i = 0; i < profile.trace().gpu.size(); ++i) {
    if (profile.kept_activity(i)) kept.push_back(&profile.trace().gpu[i]);
  }
  Seen seen;
  for (std::size_t row = 0; row < rank.devices.at(0).comm.size(); ++row) {
    const CommOp& op = rank.devices[0].comm[row];
    const simulate::GpuEvent& event = *kept.at(op.source);
    const simulate::CommsRecord comms = profile.comms(event.collective, event.member);
    EXPECT_EQ(op.seq, comms.with_seq ? comms.seq : kUnknown);
    EXPECT_EQ(op.comms_id, comms.with_seq && options.kernel_seq ? comms.comms_id() : 0);
    EXPECT_EQ(op.zero_split, op.op == Op::all_to_all && comms.may_have_zero_split());
    EXPECT_EQ(op.step, event.step < 0 ? kUnknown : job.spec.first_step + event.step);
    const bool pair = comms.collective.point_to_point;
    const std::string arrow = op.op == Op::send ? "->" : "<-";
    EXPECT_EQ(peers(rank, row), !pair ? ""
                                      : arrow + std::to_string(comms.other_rank()) + ":" +
                                            std::to_string(op.bytes.value_or(0)));
    ++seen.all;
    seen.pairs += pair ? 1 : 0;
  }
  return seen;
}

TEST(CallFacts, AreThoseOfSimulatedJobs) {
  const simulate::SimulatedJob pipeline =
      simulate::simulate({.dp = 2, .pp = 3, .layers = 3, .steps = 3, .microbatches = 3});
  const simulate::SimulatedJob experts =
      simulate::simulate({.dp = 4, .layers = 2, .steps = 2, .fsdp = true, .moe = true});
  Seen seen;
  for (const simulate::RecordOptions& options :
       {simulate::RecordOptions{}, simulate::RecordOptions{.kernel_seq = true},
        simulate::RecordOptions{.seq = simulate::SeqKind::none}}) {
    for (int rank = 0; rank < pipeline.spec.world(); ++rank) {
      const Seen more = expect_facts_of(pipeline, rank, options);
      seen.all += more.all;
      seen.pairs += more.pairs;
    }
    for (int rank = 0; rank < experts.spec.world(); ++rank)
      seen.all += expect_facts_of(experts, rank, options).all;
  }
  EXPECT_GT(seen.all, 500);
  EXPECT_GT(seen.pairs, 200);
}

// ---------------------------------------------------------------------------------------------
// The way there

TEST(Calls, OnlyRowsThatHaveAny) {
  const Recording recording = notation::recording(situation(
      "compute@7 [0,1); all_reduce@20 [0,5) group=0 n=2 seq=4; all_reduce@20 [6,9) group=0 n=2;"
      "all_reduce@20 [9,10) group=0 n=2 seq=5"));
  ASSERT_EQ(recording.calls.size(), 2U);
  EXPECT_EQ(recording.calls.find(1).seq, 4);
  EXPECT_EQ(recording.calls.find(2), CallKey{});
  EXPECT_EQ(recording.calls.find(3).seq, 5);
  EXPECT_EQ(recording.metas.size(), 1U);
}

TEST(Calls, FollowTheirRowsWhenLostTimesAreDropped) {
  Situation s =
      situation("compute@7 [0,1); all_reduce@20 [0,5) n=2 seq=4; all_reduce@20 [6,9) n=2 seq=5");
  s.activities[0].time = {-s.origin, -s.origin};  // a start of 0 is a lost one
  const Recording recording = notation::recording(s);
  ASSERT_EQ(recording.gpu.size(), 2U);
  EXPECT_EQ(recording.calls.find(0).seq, 4);
  EXPECT_EQ(recording.calls.find(1).seq, 5);
}

TEST(Calls, PiecesOfARecordingKeepTheirs) {
  Recording whole = notation::recording(
      situation("all_reduce@20 [0,5) n=2 seq=4; record@1 [0,2) op=allreduce n=2 seq=4"));
  const Recording piece = notation::recording(
      situation("all_reduce@20 [0,5) n=2 seq=4; all_reduce@20 [6,9) n=2 seq=5;"
                "record@1 [0,2) op=allreduce n=2 seq=4; record@1 [3,4) op=allreduce n=2 seq=5"));
  merge_recording(whole, piece);
  ASSERT_EQ(whole.gpu.size(), 2U);
  EXPECT_EQ(whole.calls.size(), 2U);
  EXPECT_EQ(whole.calls.find(1).seq, 5);
  ASSERT_EQ(whole.host_ranges.size(), 2U);
  EXPECT_EQ(whole.host_calls.find(1).seq, 5);
}

TEST(Calls, BuildersAppendTheirs) {
  const auto fill = [](TraceBuilder& builder, std::int64_t seq) {
    const MetaId meta = builder.add_meta({.collective = builder.intern("allreduce"),
                                          .dtype = {},
                                          .group_name = {},
                                          .group_description = {},
                                          .group_ranks = {}});
    builder.add_activity({.start = 5, .end = 6, .name = "x", .stream = {}, .meta = {}});
    builder.add_activity(
        {.start = 5, .end = 6, .name = "n", .stream = {}, .meta = meta, .call = {.seq = seq}});
    builder.add_host_range({.start = 1,
                            .end = 2,
                            .thread = builder.thread(1, 1),
                            .name = {},
                            .backend = {},
                            .meta = meta,
                            .kind = HostRangeKind::collective_record},
                           {.seq = seq + 10});
  };
  TraceBuilder whole("a", "kineto");
  TraceBuilder later("a", "kineto");
  TraceBuilder at_once("a", "kineto");
  fill(whole, 1);
  fill(later, 2);
  fill(at_once, 1);
  fill(at_once, 2);
  whole.append(std::move(later));
  const Recording appended = whole.finish();
  EXPECT_EQ(difference(appended, at_once.finish()), "");
  EXPECT_EQ(appended.calls.find(3).seq, 2);
  EXPECT_EQ(appended.host_calls.find(1).seq, 12);
}

}  // namespace
}  // namespace commlens
