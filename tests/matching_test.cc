// Which communications of different ranks are one operation: worked cases, and jobs made by chance
// of which the truth is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/load.h"
#include "made_job.h"
#include "match/classify.h"
#include "match/collectives.h"
#include "match/runs.h"
#include "match/windows.h"

namespace commlens {
namespace {

using made::Comm;
using made::Rank;

GroupIdentity group(std::vector<int> ranks, std::string description = "pg",
                    std::string name = "0") {
  return {.name = std::move(name),
          .description = std::move(description),
          .size = static_cast<std::int64_t>(ranks.size()),
          .ranks = std::move(ranks)};
}

// The true operations of an operation's parts.
std::vector<std::int64_t> truths(const Job& job, const Matching& found, const MatchedOp& op) {
  std::vector<std::int64_t> truth;
  for (std::uint32_t i = 0; i < op.count; ++i)
    truth.push_back(
        static_cast<std::int64_t>(made::comm_of(job, found.parts[op.first + i]).source));
  return truth;
}

bool right(const Job& job, const Matching& found, const MatchedOp& op) {
  const std::vector<std::int64_t> truth = truths(job, found, op);
  return std::all_of(truth.begin(), truth.end(),
                     [&](std::int64_t one) { return one == truth.front(); });
}

const Mismatch* row_of(const Matching& found, std::string_view kind) {
  for (const Mismatch& row : found.mismatches) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

// Every communication is in an operation, or counted as unmatched: nothing is dropped in silence.
void expect_all_accounted(const Job& job, const Matching& found) {
  std::set<Part> parts(found.parts.begin(), found.parts.end());
  std::int64_t all = 0;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices)
      all += static_cast<std::int64_t>(device.comm.size());
  }
  EXPECT_EQ(static_cast<std::int64_t>(parts.size()) + found.unmatched, all);
  EXPECT_EQ(found.matched + found.partial + found.mismatched,
            static_cast<std::int64_t>(found.ops.size()));
}

TEST(Matching, IdentifiersDecideWhateverElseIsWritten) {
  Rank a{.rank = 0, .host = "", .groups = {group({0, 1})}, .comm = {}};
  Rank b = a;
  b.rank = 1;
  // Two kernels have the identifier 7 on each; the counters are nonsense.
  a.comm = {{.start = 0, .end = 10, .seq = 3, .comms_id = 7, .truth = 0},
            {.start = 20, .end = 30, .seq = 3, .comms_id = 7, .truth = 1},
            {.start = 40, .end = 50, .seq = 9, .comms_id = 8, .truth = 2}};
  b.comm = {{.start = 500, .end = 510, .seq = 100, .comms_id = 7, .truth = 0},
            {.start = 520, .end = 530, .seq = 200, .comms_id = 7, .truth = 1},
            {.start = 540, .end = 550, .seq = 300, .comms_id = 8, .truth = 2}};
  const Job job = made::job({a, b}, 2);
  const Matching found = match_collectives(job);
  ASSERT_EQ(found.ops.size(), 3U);
  EXPECT_TRUE(found.known);
  EXPECT_EQ(found.matched, 3);
  for (const MatchedOp& op : found.ops) {
    EXPECT_TRUE(right(job, found, op));
    EXPECT_EQ(op.by, MatchedBy::comms_id);
    EXPECT_TRUE(op.whole && op.agreed && op.sure);
  }
}

TEST(Matching, CountersDecideWhereWindowsBeginElsewhere) {
  Rank a{.rank = 0, .host = "", .groups = {group({0, 1})}, .comm = {}};
  Rank b = a;
  b.rank = 1;
  for (std::int64_t i = 0; i < 8; ++i)
    a.comm.push_back({.start = i * 100, .end = i * 100 + 50, .seq = i, .truth = i});
  for (std::int64_t i = 3; i < 10; ++i) {
    if (i == 5) continue;  // lost
    b.comm.push_back({.start = i * 100, .end = i * 100 + 50, .seq = i, .truth = i});
  }
  const Job job = made::job({a, b}, 2);
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 4);    // 3 4 6 7
  EXPECT_EQ(found.unmatched, 6);  // 0 1 2 5 of rank 0, 8 9 of rank 1
  for (const MatchedOp& op : found.ops) {
    EXPECT_TRUE(right(job, found, op));
    EXPECT_EQ(op.by, MatchedBy::sequence);
    EXPECT_EQ(op.seq, truths(job, found, op).front());
  }
  expect_all_accounted(job, found);
  const Mismatch* row = row_of(found, "missing_member");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(row->count, 4);
  EXPECT_EQ(row->group, "pg[0,1]");
}

// One rank whose group has these operations, one every 100 us, ending together.
Rank rank_of(std::int64_t rank, std::vector<GroupIdentity> groups, std::vector<Comm> comm) {
  Ns now = 1'000'000;
  for (Comm& one : comm) {
    if (one.end == 0) one.end = now;
    if (one.start == 0) one.start = one.end - 50'000;
    now += 100'000;
  }
  return {.rank = rank, .host = "", .groups = std::move(groups), .comm = std::move(comm)};
}

// A number that never changes, or stands still for very long, is none; a call of several kernels
// repeats its own.
TEST(Matching, ANumberThatStandsStillIsNoCounter) {
  struct Written {
    std::int64_t (*seq)(std::int64_t);
    bool counts;
  };
  for (const auto& [seq, counts] : {
           Written{[](std::int64_t) -> std::int64_t { return 7; }, false},
           Written{[](std::int64_t i) -> std::int64_t { return i / 20; }, false},
           Written{[](std::int64_t i) -> std::int64_t { return i / 4; }, true},
           Written{[](std::int64_t i) -> std::int64_t { return i; }, true},
       }) {
    std::vector<Rank> ranks;
    for (const int r : {0, 1}) {
      Rank rank = rank_of(r, {group({0, 1})}, {});
      for (std::int64_t i = 0; i < 40; ++i) {
        const Ns at = i * 1'000'000 + i * i * 20'000;
        rank.comm.push_back({.start = at, .end = at + 50'000, .seq = seq(i), .truth = i});
      }
      ranks.push_back(rank);
    }
    const Job job = made::job(ranks, 2);
    const Matching found = match_collectives(job);
    EXPECT_EQ(found.matched, 40);
    for (const MatchedOp& op : found.ops) {
      EXPECT_TRUE(right(job, found, op));
      EXPECT_EQ(op.by == MatchedBy::sequence, counts) << matched_by_name(op.by);
    }
  }
}

TEST(Matching, OneNameIsTwoGroupsWhereMembersDiffer) {
  std::vector<Rank> ranks;
  for (int r = 0; r < 4; ++r) {
    const int first = r / 2 * 2;
    ranks.push_back(rank_of(r, {group({first, first + 1}, "mesh_tp", "3")},
                            {{.seq = 1, .truth = first}, {.seq = 2, .truth = 10 + first}}));
  }
  const Job job = made::job(ranks, 4);
  const Matching found = match_collectives(job);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.groups[0].label, "mesh_tp[0,1]");
  EXPECT_EQ(found.groups[1].label, "mesh_tp[2,3]");
  EXPECT_EQ(found.matched, 4);
  for (const MatchedOp& op : found.ops) EXPECT_TRUE(right(job, found, op));
}

TEST(Matching, TwoNamesAreOneGroupWhereMembersAgree) {
  const Job job = made::job({rank_of(0, {group({0, 2}, "undefined", "3")}, {{.seq = 1}}),
                             rank_of(2, {group({0, 2}, "undefined", "5")}, {{.seq = 1}})});
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 1);
}

TEST(Matching, NamesTellGroupsOfTheSameMembersApart) {
  // Rank 1 lists them in the other order; "9" was made before "10".
  const GroupIdentity nine = group({0, 1}, "mesh", "9");
  const GroupIdentity ten = group({0, 1}, "mesh", "10");
  const Job job = made::job(
      {rank_of(0, {nine, ten},
               {{.seq = 1, .group = 0, .truth = 9}, {.seq = 1, .group = 1, .truth = 10}}),
       rank_of(1, {ten, nine},
               {{.seq = 1, .group = 1, .truth = 9}, {.seq = 1, .group = 0, .truth = 10}})});
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 2);
  for (const MatchedOp& op : found.ops) EXPECT_TRUE(right(job, found, op));
  EXPECT_EQ(found.groups[0].label, "mesh[0,1] (10)");

  // Other names on rank 1: then the order of making counts.
  const Job renamed = made::job(
      {rank_of(0, {nine, ten},
               {{.seq = 1, .group = 0, .truth = 9}, {.seq = 1, .group = 1, .truth = 10}}),
       rank_of(1, {group({0, 1}, "mesh", "12"), group({0, 1}, "mesh", "11")},
               {{.seq = 1, .group = 1, .truth = 9}, {.seq = 1, .group = 0, .truth = 10}})});
  const Matching by_order = match_collectives(renamed);
  EXPECT_EQ(by_order.matched, 2);
  for (const MatchedOp& op : by_order.ops) EXPECT_TRUE(right(renamed, by_order, op));

  // One rank has two, the other one of another name: which it is is not known.
  const Job fewer =
      made::job({rank_of(0, {nine, ten}, {{.seq = 1, .group = 0}, {.seq = 1, .group = 1}}),
                 rank_of(1, {group({0, 1}, "mesh", "12")}, {{.seq = 1}})});
  const Matching refused = match_collectives(fewer);
  EXPECT_EQ(refused.ops.size(), 0U);
  EXPECT_EQ(refused.unmatched, 3);
}

TEST(Matching, GroupsOfUnknownMembersAreJoinedOnlyWhereTheNumberOfRanksFits) {
  const GroupIdentity unknown{.name = "3", .description = "mesh_tp", .size = 2, .ranks = {}};
  const auto ranks_with = [&unknown](int count) {
    std::vector<Rank> ranks;
    for (int r = 0; r < count; ++r)
      ranks.push_back(rank_of(r, {unknown}, {{.seq = 1}, {.seq = 2}}));
    return ranks;
  };
  const Matching both = match_collectives(made::job(ranks_with(2), 2));
  EXPECT_EQ(both.matched, 2);
  EXPECT_EQ(both.groups.front().label, "mesh_tp[0,1]");

  const Matching four = match_collectives(made::job(ranks_with(4), 4));
  EXPECT_EQ(four.ops.size(), 0U);
  EXPECT_EQ(four.unmatched, 8);
  EXPECT_EQ(four.mismatches.front().reason,
            "its members are not known, and 4 ranks know a group of this name with 2 members");

  // Ranks 0 and 1 of four: they may be of two groups.
  const Matching some = match_collectives(made::job(ranks_with(2), 4));
  EXPECT_EQ(some.ops.size(), 0U);
  EXPECT_EQ(some.mismatches.front().reason,
            "its members are not known, and ranks of the job are missing");
}

TEST(Matching, ARankThatItsGroupDoesNotListIsAContradiction) {
  const Job job = made::job({rank_of(0, {group({0, 1})}, {{.seq = 1}}),
                             rank_of(1, {group({0, 1})}, {{.seq = 1}}),
                             rank_of(2, {group({0, 1})}, {{.seq = 1}})});
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 1);
  EXPECT_EQ(found.ops.front().count, 2U);
  EXPECT_EQ(found.unmatched, 1);
  EXPECT_EQ(found.mismatches.front().ranks, std::vector<std::int64_t>{2});
  EXPECT_EQ(found.mismatches.front().reason,
            "the rank is not one of the members that its group lists");
}

TEST(Matching, RanksWithoutATraceAreAnotherMatterThanEventsThatAreNotThere) {
  const Job job = made::job({rank_of(0, {group({0, 1, 2})}, {{.seq = 1}, {.seq = 2}}),
                             rank_of(1, {group({0, 1, 2})}, {{.seq = 1}})},
                            3);
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 0);
  EXPECT_EQ(found.partial, 1);
  EXPECT_EQ(found.unmatched, 1);
  const Mismatch* untraced = row_of(found, "missing_rank");
  ASSERT_NE(untraced, nullptr);
  EXPECT_EQ(untraced->ranks, std::vector<std::int64_t>{2});
  EXPECT_EQ(untraced->reason, "rank 2 of the group has no trace here");
  const Mismatch* absent = row_of(found, "missing_member");
  ASSERT_NE(absent, nullptr);
  EXPECT_EQ(absent->ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(absent->seq, 2);
}

TEST(Matching, OddOnesOutAreThoseOfTheMinority) {
  std::vector<Rank> ranks;
  for (int r = 0; r < 4; ++r) {
    Rank rank = rank_of(r, {group({0, 1, 2, 3})}, {{.seq = 1}, {.seq = 2}, {.seq = 3}, {.seq = 4}});
    for (std::int64_t i = 5; i < 60; ++i)
      rank.comm.push_back({.start = i * 1'000'000, .end = i * 1'000'000 + 10, .seq = i});
    ranks.push_back(rank);
  }
  ranks[2].comm[0].op = Op::all_gather;
  ranks[3].comm[1].dtype = "Half";
  ranks[1].comm[2].bytes = 2048;
  ranks[0].comm[3].bytes = -1;  // not known: no contradiction
  ranks[3].comm[3].op = Op::send_recv;
  ranks[3].comm[3].op = Op::unknown;
  const Matching found = match_collectives(made::job(ranks, 4));
  EXPECT_EQ(found.matched, 56);
  EXPECT_EQ(found.mismatched, 3);
  EXPECT_EQ(row_of(found, "op")->reason,
            "rank 2 differ from the others in op: all_gather instead of all_reduce");
  EXPECT_EQ(row_of(found, "op")->ranks, std::vector<std::int64_t>{2});
  EXPECT_EQ(row_of(found, "dtype")->ranks, std::vector<std::int64_t>{3});
  EXPECT_EQ(row_of(found, "bytes")->ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(row_of(found, "bytes")->reason,
            "rank 1 differ from the others in bytes: 2048 bytes instead of 1024 bytes");
}

TEST(Matching, KernelsWithoutANumberJoinThoseThatHaveOne) {
  // Launched before the window: the first two of rank 1, and the first of rank 0.
  std::vector<Rank> ranks;
  for (int r = 0; r < 3; ++r) {
    Rank rank = rank_of(r, {group({0, 1, 2})}, {});
    for (std::int64_t i = 0; i < 8; ++i) {
      const Ns end = i * 1'000'000 + (i % 3) * 70'000 + 100 * r + 5'000'000 * r;
      rank.comm.push_back({.start = end - 50'000, .end = end, .seq = 40 + i, .truth = i});
    }
    ranks.push_back(rank);
  }
  ranks[1].comm[0].seq = ranks[1].comm[1].seq = ranks[0].comm[0].seq = kUnknown;
  const Job job = made::job(ranks, 3);
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 8);
  for (const MatchedOp& op : found.ops) EXPECT_TRUE(right(job, found, op) && op.sure);
}

TEST(Matching, SizesOfAllToAllMayDiffer) {
  const Job job =
      made::job({rank_of(0, {group({0, 1})}, {{.op = Op::all_to_all, .bytes = 10, .seq = 1}}),
                 rank_of(1, {group({0, 1})}, {{.op = Op::all_to_all, .bytes = 99, .seq = 1}})});
  EXPECT_EQ(match_collectives(job).matched, 1);
}

TEST(Matching, AnOperationOfAnotherKindIsFoundWithoutCounters) {
  // Rank 1 calls all_gather where the others call all_reduce, in the middle of a sequence.
  std::vector<Rank> ranks;
  for (int r = 0; r < 3; ++r) {
    Rank rank = rank_of(r, {group({0, 1, 2})}, {});
    rank.host = "node";
    for (std::int64_t i = 0; i < 9; ++i)
      rank.comm.push_back(
          {.start = i * 1'000'000 - 5'000 * (r + 1), .end = i * 1'000'000 + 100 * r, .truth = i});
    ranks.push_back(rank);
  }
  ranks[1].comm[4].op = Op::all_gather;
  const Job job = made::job(ranks, 3);
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 8);
  EXPECT_EQ(found.mismatched, 1);
  EXPECT_EQ(row_of(found, "op")->ranks, std::vector<std::int64_t>{1});
  for (const MatchedOp& op : found.ops) EXPECT_TRUE(right(job, found, op));
}

TEST(Matching, OtherRecordingsAndOtherGpusTakeNoPart) {
  Rank again = rank_of(1, {group({0, 1})}, {{.seq = 1}});
  again.run = 1;
  Job job = made::job({rank_of(0, {group({0, 1})}, {{.seq = 1}, {.seq = 2}}),
                       rank_of(1, {group({0, 1})}, {{.seq = 1}, {.seq = 2}}), again});
  job.ranks[0].devices.push_back(job.ranks[0].devices[0]);
  job.ranks[0].devices[1].device = 1;
  job.ranks[0].devices[1].comm.pop_back();
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 2);
  EXPECT_EQ(found.unmatched, 2);
  EXPECT_EQ(found.mismatches[0].reason, "another GPU of the same process");
  EXPECT_EQ(found.mismatches[1].reason, "another recording of this rank");
}

TEST(Matching, AGroupOfOneRankIsWhole) {
  const Job job =
      made::job({rank_of(0, {group({0})}, {{.seq = 1}}), rank_of(1, {group({1})}, {{.seq = 1}})});
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 2);
  EXPECT_TRUE(found.mismatches.empty());
}

TEST(Matching, TheRootIsOneOfTheParts) {
  Job job = made::job({rank_of(4, {group({4, 7})}, {{.op = Op::broadcast, .seq = 1}}),
                       rank_of(7, {group({4, 7})}, {{.op = Op::broadcast, .seq = 1}})});
  job.ranks[1].devices[0].comm[0].root = 7;
  EXPECT_EQ(match_collectives(job).ops.front().root, 1);
}

TEST(Matching, TheListOfMismatchesIsBounded) {
  // Each pair of ranks differs in another number of bytes, so that no two reasons are equal.
  Rank a = rank_of(0, {group({0, 1})}, {});
  Rank b = rank_of(1, {group({0, 1})}, {});
  for (std::int64_t i = 0; i < 1500; ++i) {
    a.comm.push_back({.start = i * 100,
                      .end = i * 100 + 50,
                      .bytes = 8,
                      .comms_id = 1000 + static_cast<std::uint64_t>(i)});
    b.comm.push_back({.start = i * 100,
                      .end = i * 100 + 50,
                      .bytes = 8,
                      .comms_id = 1000 + static_cast<std::uint64_t>(i)});
  }
  std::vector<Rank> ranks;
  for (int pair = 0; pair < 12; ++pair) {
    for (int side = 0; side < 2; ++side) {
      Rank rank = side == 0 ? a : b;
      rank.rank = 2 * pair + side;
      rank.groups = {group({2 * pair, 2 * pair + 1})};
      for (std::size_t i = 0; side == 1 && i < 100; ++i)
        rank.comm[i].bytes = 1000 + static_cast<std::int64_t>(i);
      ranks.push_back(rank);
    }
  }
  const Matching found = match_collectives(made::job(ranks));
  EXPECT_EQ(found.mismatched, 1200);
  ASSERT_EQ(found.mismatches.size(), 1001U);
  EXPECT_EQ(found.mismatches.back().kind, "not_listed");
  EXPECT_EQ(found.mismatches.back().count, 200);
}

Comm sending(std::int32_t to, std::int64_t bytes, std::int64_t truth, Ns end) {
  return {.op = Op::send,
          .start = end - 1000,
          .end = end,
          .peers = {{to, true, bytes}},
          .truth = truth};
}
Comm receiving(std::int32_t from, std::int64_t bytes, std::int64_t truth, Ns end) {
  return {.op = Op::recv,
          .start = end - 1000,
          .end = end,
          .peers = {{from, false, bytes}},
          .truth = truth};
}

TEST(Matching, SendsGoWithTheirReceives) {
  // A pipeline of three: rank 1 receives and sends in one kernel.
  const GroupIdentity pp = group({0, 1, 2}, "pp");
  Rank first = rank_of(0, {pp}, {});
  Rank middle = rank_of(1, {pp}, {});
  Rank last = rank_of(2, {pp}, {});
  for (auto* rank : {&first, &middle, &last}) rank->host = "node";
  for (std::int64_t i = 0; i < 6; ++i) {
    const Ns now = 1'000'000 + i * i * 70'000;
    first.comm.push_back(sending(1, 64, i, now));
    Comm both = receiving(0, 64, i, now + 500);
    both.op = Op::send_recv;
    both.peers.push_back({2, true, 32});
    middle.comm.push_back(both);
    last.comm.push_back(receiving(1, 32, i, now + 900));
  }
  last.comm.erase(last.comm.begin() + 2);  // lost
  const Job job = made::job({first, middle, last}, 3);
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 11);
  EXPECT_EQ(found.unmatched, 0);  // every kernel of rank 1 has some counterpart
  for (const MatchedOp& op : found.ops) {
    EXPECT_TRUE(op.pair && op.whole && op.sure && op.agreed);
    EXPECT_TRUE(right(job, found, op));
    const MatchGroup& pair = found.groups[static_cast<std::size_t>(op.group)];
    ASSERT_TRUE(pair.pair);
    EXPECT_EQ(job.ranks[found.parts[op.first].rank].rank, pair.ranks[0]);
    EXPECT_EQ(job.ranks[found.parts[op.first + 1].rank].rank, pair.ranks[1]);
  }
  const Mismatch* row = row_of(found, "missing_member");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->group, "1->2");
  EXPECT_EQ(row->count, 1);
}

TEST(Matching, PeersThatAreNotKnownOrNotThere) {
  const GroupIdentity pp = group({0, 1}, "pp");
  const Job job = made::job(
      {rank_of(0, {pp}, {sending(1, 8, 0, 2000), {.op = Op::send_recv}}), rank_of(2, {pp}, {})});
  const Matching found = match_collectives(job);
  EXPECT_TRUE(found.ops.empty());
  EXPECT_FALSE(found.known);
  EXPECT_EQ(found.unmatched, 2);
  ASSERT_EQ(found.mismatches.size(), 2U);
  EXPECT_EQ(found.mismatches[0].reason, "rank 1 has no trace here");
  EXPECT_EQ(found.mismatches[1].reason, "the peers of point-to-point operations are not known");
}

// Ranks whose streams end together: `groups` of as many ranks as given, without any group data.
Job without_groups(const std::vector<int>& groups, Ns lag, std::uint32_t seed,
                   int operations = 12) {
  std::mt19937 random(seed);
  const auto upto = [&random](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  std::vector<Ns> ends;
  Ns now = 1'000'000'000;
  for (int i = 0; i < operations; ++i) ends.push_back(now += 3'000'000 + upto(2'000'000));
  std::vector<Rank> ranks;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // Groups do the same work, each at a pace of its own.
    std::vector<Ns> own;
    for (const Ns end : ends) own.push_back(end + (g == 0 ? 0 : upto(lag)));
    for (int r = 0; r < groups[g]; ++r) {
      Rank rank{
          .rank = static_cast<std::int64_t>(ranks.size()), .host = "", .groups = {}, .comm = {}};
      for (std::size_t i = 0; i < own.size(); ++i) {
        const Ns end = own[i] + upto(8'000);
        rank.comm.push_back({.start = own[i] - 20'000 - upto(1'000'000),
                             .end = end,
                             .bytes = -1,
                             .group = -1,
                             .truth = static_cast<std::int64_t>(100 * g + i)});
      }
      ranks.push_back(rank);
    }
  }
  return made::job(ranks, static_cast<std::int64_t>(ranks.size()));
}

TEST(MatchingWithoutGroups, StreamsThatEndTogetherAreOneGroup) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const Job job = without_groups({4}, 0, seed);
    const Matching found = match_collectives(job);
    EXPECT_EQ(found.matched, 12);
    for (const MatchedOp& op : found.ops) {
      EXPECT_TRUE(right(job, found, op));
      EXPECT_EQ(op.by, MatchedBy::inferred);
      EXPECT_TRUE(op.whole && op.sure);
    }
    EXPECT_EQ(found.groups.front().label, "inferred[0-3]");
    EXPECT_TRUE(found.groups.front().inferred);
  }
}

TEST(MatchingWithoutGroups, GroupsThatDoTheSameAtAnotherPaceStayApart) {
  std::int64_t wrong_sure = 0;
  std::int64_t right_sure = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    for (const Ns lag : {100'000, 400'000, 2'000'000}) {
      const Job job = without_groups({2, 2}, lag, seed);
      const Matching found = match_collectives(job);
      for (const MatchedOp& op : found.ops) {
        wrong_sure += op.sure && !right(job, found, op) ? 1 : 0;
        right_sure += op.sure && right(job, found, op) ? 1 : 0;
        EXPECT_FALSE(op.whole && op.count < 4);  // hosts are not known: others may belong
      }
    }
  }
  EXPECT_EQ(wrong_sure, 0);
  EXPECT_GE(right_sure, 60 * 2 * 12 * 2);  // of 60 * 3 * 24
}

TEST(MatchingWithoutGroups, RanksThatShareNothingAreRefused) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    Job job = without_groups({1, 1}, 0, seed, 10);
    const Job other = without_groups({1}, 0, seed + 1000, 10);
    job.ranks[1].devices = other.ranks[0].devices;
    const Matching found = match_collectives(job);
    EXPECT_TRUE(found.ops.empty()) << seed;
    EXPECT_EQ(found.unmatched, 20);
  }
}

TEST(MatchingWithoutGroups, MissingRanksLeaveNothingWhole) {
  Job job = without_groups({3}, 0, 1);
  job.world_size = 4;
  job.missing_ranks = {3};
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.partial, 12);
  EXPECT_EQ(found.matched, 0);
}

// A training loop over one group, as each rank's clock and window show it.
struct Loop {
  int ranks = 4;
  int steps = 6;
  std::vector<std::pair<Op, std::int64_t>> step = {{Op::all_reduce, 4096}};  // op, bytes
  Ns gap = 2'000'000;           // from one operation's end to the next one's
  Ns step_jitter = 300'000;     // of each gap
  Ns end_jitter = 4'000;        // of a rank's end of one operation
  Ns clock_offset = 5'000'000;  // ranks' clocks lie so far apart, at most
  double drift = 0;             // of the ranks' clocks, at most
  bool hosts_known = false;     // all on one host; then clocks agree
  bool step_numbers = false;
  enum class Seq : std::uint8_t { none, right, of_process, off_by_start } seq = Seq::none;
  int lose_start = 0, lose_end = 0, lose_middle = 0;  // at most, of each rank
  int window_shift = 0;  // at most so many operations are not in a rank's window
};

Job make(const Loop& loop, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto upto = [&random](std::int64_t most) {
    return most <= 0 ? 0 : std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  std::vector<int> all;
  for (int r = 0; r < loop.ranks; ++r) all.push_back(r);
  struct True {
    Op op;
    std::int64_t bytes;
    Ns end;
    std::int64_t step;
  };
  std::vector<True> operations;
  Ns now = 1'000'000'000;
  for (int s = 0; s < loop.steps; ++s) {
    for (const auto& [op, bytes] : loop.step) {
      now += loop.gap + upto(loop.step_jitter);
      operations.push_back({op, bytes, now, s});
    }
  }
  std::vector<Rank> ranks;
  for (int r = 0; r < loop.ranks; ++r) {
    Rank rank{
        .rank = r, .host = loop.hosts_known ? "node" : "", .groups = {group(all)}, .comm = {}};
    const Ns offset = loop.hosts_known ? 0 : upto(2 * loop.clock_offset) - loop.clock_offset;
    const double drift =
        loop.hosts_known ? 0 : loop.drift * (static_cast<double>(upto(2000)) / 1000 - 1);
    const auto first = static_cast<std::size_t>(upto(loop.lose_start) + upto(loop.window_shift));
    const auto cut = static_cast<std::size_t>(upto(loop.lose_end) + upto(loop.window_shift));
    std::set<std::size_t> lost;
    for (std::int64_t i = upto(loop.lose_middle); i > 0; --i)
      lost.insert(static_cast<std::size_t>(upto(static_cast<std::int64_t>(operations.size()) - 1)));
    const std::int64_t own_start = upto(50);
    for (std::size_t i = first; i + cut < operations.size(); ++i) {
      if (lost.contains(i)) continue;
      const True& op = operations[i];
      const Ns wait = upto(loop.gap / 3);
      const auto clock = [&](Ns time) {
        return time + offset + static_cast<Ns>(drift * static_cast<double>(time));
      };
      Comm comm{.op = op.op, .bytes = op.bytes};
      comm.end = clock(op.end + upto(loop.end_jitter));
      comm.start = clock(op.end - 20'000 - wait);
      comm.truth = static_cast<std::int64_t>(i);
      if (loop.step_numbers) comm.step = op.step;
      const auto number = static_cast<std::int64_t>(i);
      if (loop.seq == Loop::Seq::right) comm.seq = number;
      if (loop.seq == Loop::Seq::of_process) comm.seq = number * (2 + r);
      if (loop.seq == Loop::Seq::off_by_start) comm.seq = number + own_start;
      rank.comm.push_back(comm);
    }
    ranks.push_back(std::move(rank));
  }
  return made::job(ranks, loop.ranks);
}

struct Score {
  std::int64_t findable = 0;  // parts of operations that at least two ranks recorded
  std::int64_t found = 0;     // of these, in a right operation with another
  std::int64_t sure = 0;      // of these, that are sure
  std::int64_t wrong = 0;     // operations of different truths
  std::int64_t wrong_sure = 0;
};

Score score(const Job& job, const Matching& found) {
  Score score;
  std::map<std::size_t, int> ranks_of;
  for (const RankTimeline& rank : job.ranks) {
    for (const CommOp& op : rank.devices.front().comm) ++ranks_of[op.source];
  }
  for (const auto& [truth, ranks] : ranks_of) score.findable += ranks > 1 ? ranks : 0;
  for (const MatchedOp& op : found.ops) {
    if (right(job, found, op)) {
      score.found += op.count > 1 ? op.count : 0;
      score.sure += op.count > 1 && op.sure ? op.count : 0;
    } else {
      ++score.wrong;
      score.wrong_sure += op.sure ? 1 : 0;
    }
  }
  return score;
}

// Over many seeds: the sums, and that nothing is wrong and sure.
Score over_seeds(const Loop& loop, std::uint32_t seeds = 60) {
  Score sum;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    const Job job = make(loop, seed);
    const Matching found = match_collectives(job);
    expect_all_accounted(job, found);
    const Score one = score(job, found);
    EXPECT_EQ(one.wrong_sure, 0) << "seed " << seed;
    sum.findable += one.findable;
    sum.found += one.found;
    sum.sure += one.sure;
    sum.wrong += one.wrong;
    sum.wrong_sure += one.wrong_sure;
  }
  return sum;
}

double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

const std::vector<std::pair<Op, std::int64_t>> kUneven = {{Op::all_reduce, 4096},
                                                          {Op::all_gather, 8192},
                                                          {Op::all_reduce, 4096},
                                                          {Op::reduce_scatter, 512}};

TEST(MatchingOfLoops, KnownHostsDecideEverything) {
  for (const bool uneven : {false, true}) {
    Loop loop{
        .hosts_known = true, .lose_start = 3, .lose_end = 3, .lose_middle = 3, .window_shift = 4};
    loop.steps = 12;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.99);
  }
}

TEST(MatchingOfLoops, JitterOfTheStepsDecidesTheShiftBetweenUnknownHosts) {
  for (const bool uneven : {false, true}) {
    Loop loop{.lose_start = 3, .lose_end = 3, .lose_middle = 3, .window_shift = 4};
    loop.steps = uneven ? 8 : 30;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.98);
  }
}

TEST(MatchingOfLoops, ClocksThatDrift) {
  Loop loop{.steps = 400, .drift = 150e-6, .lose_start = 3, .lose_middle = 20, .window_shift = 10};
  loop.step = kUneven;
  const Score sum = over_seeds(loop, 10);
  EXPECT_EQ(sum.wrong, 0);
  EXPECT_GE(share(sum.sure, sum.findable), 0.98);
}

TEST(MatchingOfLoops, WithoutJitterTheShiftIsUndecidableAndSaidToBe) {
  for (const bool uneven : {false, true}) {
    Loop loop{.step_jitter = 0, .window_shift = 6};
    loop.steps = 12;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_LE(share(sum.sure, sum.findable), uneven ? 0.9 : 0.05);
  }
}

TEST(MatchingOfLoops, StepNumbersDecideIt) {
  for (const bool uneven : {false, true}) {
    Loop loop{.step_jitter = 0,
              .step_numbers = true,
              .lose_start = 2,
              .lose_end = 2,
              .lose_middle = 2,
              .window_shift = 3};
    loop.steps = 12;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.97);
  }
}

TEST(MatchingOfLoops, RightCountersDecideIt) {
  Loop loop{.steps = 30,
            .step_jitter = 0,
            .seq = Loop::Seq::right,
            .lose_start = 3,
            .lose_end = 3,
            .lose_middle = 3,
            .window_shift = 4};
  const Score sum = over_seeds(loop);
  EXPECT_EQ(sum.sure, sum.findable);
}

TEST(MatchingOfLoops, WrongCountersAreSeenThrough) {
  for (const auto seq : {Loop::Seq::of_process, Loop::Seq::off_by_start}) {
    Loop loop{.seq = seq, .lose_start = 3, .lose_end = 3, .lose_middle = 3, .window_shift = 4};
    loop.steps = 30;
    const Score sum = over_seeds(loop);
    EXPECT_GE(share(sum.sure, sum.findable), 0.97);
  }
}

TEST(MatchingOfLoops, DenseOperationsOfOneHost) {
  // Forty of a kind in each step, 60 us apart, as of tensor parallelism.
  for (const bool step_numbers : {false, true}) {
    Loop loop{.steps = 10,
              .gap = 60'000,
              .step_jitter = 20'000,
              .hosts_known = true,
              .step_numbers = step_numbers,
              .lose_start = 20,
              .lose_end = 20,
              .lose_middle = 20,
              .window_shift = 50};
    loop.step.assign(40, {Op::all_reduce, 1 << 20});
    const Score sum = over_seeds(loop, 30);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.98);
  }
}

TEST(MatchingOfLoops, ManyLossesInEqualStepsOfUnknownHosts) {
  // Two ranks that lost different ones of a step's equal operations count alike in it.
  Loop loop{.steps = 12, .step_jitter = 500'000, .step_numbers = true, .lose_middle = 30};
  loop.step.assign(8, {Op::all_reduce, 4096});
  const Score sum = over_seeds(loop, 100);
  EXPECT_EQ(sum.wrong_sure, 0);
  EXPECT_GE(share(sum.sure, sum.findable), 0.95);
}

TEST(MatchingOfLoops, FewOperationsOfUnknownHosts) {
  for (const int steps : {1, 2, 3, 4, 5}) {
    Loop loop{.steps = steps, .lose_start = 1, .window_shift = 1};
    over_seeds(loop, 200);  // nothing wrong is sure
  }
}

TEST(MatchingOfLoops, ManyRanksInManyHosts) {
  Loop loop{.ranks = 48,
            .steps = 60,
            .lose_start = 3,
            .lose_end = 3,
            .lose_middle = 3,
            .window_shift = 4};
  const Score sum = over_seeds(loop, 4);
  EXPECT_EQ(sum.wrong, 0);
  EXPECT_GE(share(sum.sure, sum.findable), 0.98);
}

TEST(MatchingOfLoops, OrderOfRanksDoesNotMatter) {
  Loop loop{.lose_start = 3, .lose_middle = 5, .window_shift = 4};
  loop.step = kUneven;
  Job job = make(loop, 7);
  const auto described = [](const Job& of, const Matching& found) {
    std::vector<std::string> lines;
    for (const MatchedOp& op : found.ops) {
      std::string line =
          std::to_string(op.group) + (op.sure ? " sure" : "") + (op.whole ? " whole" : "");
      for (std::uint32_t i = 0; i < op.count; ++i) {
        const Part& part = found.parts[op.first + i];
        line += " " + std::to_string(of.ranks[part.rank].rank) + ":" + std::to_string(part.op);
      }
      lines.push_back(line);
    }
    return lines;
  };
  const std::vector<std::string> before = described(job, match_collectives(job));
  std::reverse(job.ranks.begin(), job.ranks.end());
  std::swap(job.ranks[0], job.ranks[2]);
  EXPECT_EQ(described(job, match_collectives(job)), before);
  EXPECT_FALSE(before.empty());
}

// Anything that a file can hold: it ends, and accounts for everything.
TEST(MatchingOfOddJobs, NothingIsLostAndNothingOverflows) {
  std::mt19937 random(3);
  const auto upto = [&random](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  constexpr Ns kFar = std::numeric_limits<Ns>::max();
  for (int round = 0; round < 400; ++round) {
    std::vector<Rank> ranks;
    const std::int64_t scale =
        std::vector<std::int64_t>{3, 1'000, 1'000'000, kFar / 2}[static_cast<std::size_t>(upto(3))];
    const std::int64_t count = upto(5);
    for (std::int64_t r = 0; r <= count; ++r) {
      Rank rank{.rank = upto(4), .host = upto(1) == 0 ? "a" : "", .groups = {}, .comm = {}};
      rank.run = static_cast<int>(upto(5) == 0);
      rank.clock_known = upto(3) != 0;
      for (int g = 0; g < 3; ++g) {
        GroupIdentity one =
            group({0, 1, 2}, upto(1) == 0 ? "a" : "undefined", std::to_string(upto(2)));
        if (upto(2) == 0) one.ranks.clear();
        rank.groups.push_back(one);
      }
      for (std::int64_t i = upto(60); i > 0; --i) {
        Comm comm{.op = static_cast<Op>(upto(kOpCount - 1)), .bytes = upto(2) - 1};
        comm.start = upto(scale) - scale / 2;
        comm.end = upto(4) == 0 ? kFar : std::max(comm.start, upto(scale) - scale / 2);
        comm.seq = upto(1) == 0 ? upto(30) : kUnknown;
        comm.step = upto(1) == 0 ? upto(3) : kUnknown;
        comm.comms_id = upto(2) == 0 ? static_cast<std::uint64_t>(upto(9)) : 0;
        comm.group = static_cast<std::int32_t>(upto(3) - 1);
        comm.stream = upto(2);
        comm.name_may_lie = upto(3) == 0;
        for (std::int64_t p = upto(2); p > 0; --p)
          comm.peers.push_back(
              {static_cast<std::int32_t>(upto(6) - 1), upto(1) == 0, std::nullopt});
        rank.comm.push_back(comm);
      }
      ranks.push_back(rank);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) {
      return std::tie(a.rank, a.run) < std::tie(b.rank, b.run);
    });
    // One recording of each rank is its first.
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ranks[i].run = i > 0 && ranks[i].rank == ranks[i - 1].rank ? ranks[i - 1].run + 1 : 0;
    const Job job = made::job(ranks, upto(8));
    expect_all_accounted(job, match_collectives(job));
  }
}

// Real jobs, where they are at hand.
class MatchingOfRealJobs : public testing::Test {
 protected:
  void SetUp() override {
    const char* corpus = std::getenv("COMMLENS_CORPUS");
    if (corpus == nullptr) GTEST_SKIP() << "COMMLENS_CORPUS is not set";
    folder_ = std::string(corpus) + "/kineto/";
  }

  Matching match(const std::vector<std::string>& paths) {
    std::vector<std::string> whole;
    for (const std::string& path : paths) whole.push_back(folder_ + path);
    std::vector<Recording> recordings;
    for (LoadedInput& input :
         load(find_inputs(whole), {.input_format = "", .jobs = 1, .progress = {}}))
      recordings.push_back(std::move(input.recording));
    job_ = arrange_runs(std::move(recordings), {});
    for (RankTimeline& rank : job_.ranks) {
      classify(rank, {});
      find_step_windows(rank);
    }
    return match_collectives(job_);
  }

  Job job_;
  std::string folder_;
};

TEST_F(MatchingOfRealJobs, OneKernelMoreAtTheStartShiftsNothing) {
  const Matching found = match({"torchrec-sleep-4ranks"});
  EXPECT_EQ(found.matched, 12);
  EXPECT_EQ(found.partial, 1);
  EXPECT_EQ(found.unmatched, 0);
  // Rank 2 is the last to arrive at the three long ones: its kernel is the shortest of them.
  for (const MatchedOp& op : found.ops) {
    EXPECT_TRUE(op.sure);
    std::vector<Ns> length;
    for (std::uint32_t i = 0; i < op.count; ++i)
      length.push_back(made::comm_of(job_, found.parts[op.first + i]).time.length());
    if (*std::max_element(length.begin(), length.end()) > 900'000'000) {
      EXPECT_LT(length[2], 20'000'000);
    }
  }
}

TEST_F(MatchingOfRealJobs, CountsThatDiffer) {
  const Matching found = match({"torchrec-overlap-4ranks"});  // 32, 31, 31 and 32 kernels
  EXPECT_EQ(found.matched, 31);
  EXPECT_EQ(found.partial, 1);
  EXPECT_EQ(found.unmatched, 0);
  EXPECT_EQ(found.mismatched, 0);
}

TEST_F(MatchingOfRealJobs, EveryKernelOfTwoAndOfEightRanks) {
  const Matching two = match({"torchrec-2ranks"});
  EXPECT_EQ(two.matched, 12);
  EXPECT_EQ(two.partial + two.unmatched, 0);
  const Matching eight = match({"param-dlrm-8ranks"});
  EXPECT_EQ(eight.matched, 8);
  EXPECT_EQ(eight.partial + eight.unmatched, 0);
}

TEST_F(MatchingOfRealJobs, RanksOfOneJobThatShareNothingAreRefused) {
  const Matching found = match(
      {"hta/timeline_analysis-sampled_rank-0.json.gz", "hta/trace_filter-sampled_rank-1.json.gz"});
  EXPECT_FALSE(found.known);
  EXPECT_TRUE(found.ops.empty());
  EXPECT_EQ(found.unmatched, 20);
}

}  // namespace
}  // namespace commlens
