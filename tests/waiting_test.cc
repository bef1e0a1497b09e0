// Waits, blame and origin against values computed by hand, and their sums over random jobs.
#include "match/waiting.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "match/step_table.h"
#include "match/stragglers.h"
#include "match/suspicion.h"
#include "small_job.h"

namespace commlens {
namespace {

using notation::SmallJob;

Ns waited(const Waits& waits, std::size_t rank) { return waits.by_rank[rank].waited; }
Ns originated(const Waits& waits, std::size_t rank) { return waits.by_rank[rank].originated; }
Ns blamed(const Waits& waits, std::uint32_t waiter, std::uint32_t culprit) {
  const auto found = waits.blame.find({waiter, culprit});
  return found == waits.blame.end() ? 0 : found->second;
}

void expect_sums(const Waits& waits) {
  Ns waiting = 0;
  Ns caused = 0;
  Ns origins = 0;
  Ns charged = 0;
  for (const RankWaits& rank : waits.by_rank) {
    waiting += rank.waited;
    caused += rank.caused;
    origins += rank.originated;
    EXPECT_LE(rank.exposed_waited, rank.waited);
  }
  for (const auto& [who, time] : waits.blame) charged += time;
  EXPECT_EQ(waiting, waits.total);
  EXPECT_EQ(caused, waits.total);
  EXPECT_EQ(charged, waits.total);
  EXPECT_EQ(origins + waits.unattributed, waits.total);
  EXPECT_LE(waits.undecidable, waits.total);
  WaitSums sums = waits.unattributed_sums;
  for (const auto& [origin, part] : waits.origins) {
    sums += part;
    EXPECT_LE(part.certain, part.likely);
    EXPECT_LE(part.likely, part.exposed);
  }
  EXPECT_EQ(sums.total, waits.total);
}

// methods.md, worked case 4.
TEST(Waits, LastOfFourCarriesTheBlame) {
  SmallJob job(4);
  job.together(Op::all_reduce, {0, 1, 2, 3}, {{0, 12}, {1, 12}, {2, 12}, {10, 12}});
  const Waits waits = find_waits(job.done());
  ASSERT_TRUE(waits.known);
  EXPECT_EQ(waited(waits, 0), 10);
  EXPECT_EQ(waited(waits, 1), 9);
  EXPECT_EQ(waited(waits, 2), 8);
  EXPECT_EQ(waited(waits, 3), 0);
  EXPECT_EQ(waits.total, 27);
  EXPECT_EQ(waits.undecidable, 0);
  EXPECT_EQ(waits.by_rank[3].caused, 27);
  // Nothing came before: nobody can say why rank 3 was late.
  EXPECT_EQ(waits.unattributed, 27);
  expect_sums(waits);
}

// Case 7: a delay that is handed on.
TEST(Waits, HandedOnGoesBackToItsOrigin) {
  SmallJob job(4);
  job.together(Op::barrier, {0, 1, 2, 3}, {{0, 1}, {0, 1}, {0, 1}, {0, 1}});
  for (std::size_t rank = 0; rank < 4; ++rank) job.compute(rank, 1, rank == 1 ? 15 : 11);
  job.together(Op::all_reduce, {0, 1}, {{11, 17}, {15, 17}});
  job.together(Op::all_reduce, {2, 3}, {{11, 13}, {11, 13}});
  job.together(Op::all_reduce, {0, 2}, {{17, 20}, {13, 20}});
  job.together(Op::all_reduce, {1, 3}, {{17, 20}, {13, 20}});
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(blamed(waits, 0, 1), 4);
  EXPECT_EQ(blamed(waits, 2, 0), 4);
  EXPECT_EQ(blamed(waits, 3, 1), 4);
  EXPECT_EQ(waits.total, 12);
  EXPECT_EQ(waits.by_rank[1].caused, 8);
  EXPECT_EQ(waits.by_rank[0].caused, 4);
  EXPECT_EQ(originated(waits, 1), 12);
  EXPECT_EQ(originated(waits, 0), 0);
  EXPECT_EQ(waits.unattributed, 0);
  for (const auto& [origin, sums] : waits.origins) EXPECT_EQ(origin.cause, Cause::compute);
  expect_sums(waits);
}

// Case 8: the root's late entry holds the leaves; a late leaf holds nobody.
TEST(Waits, BroadcastNeedsItsRootOnly) {
  SmallJob job(3);
  job.together(Op::broadcast, {0, 1, 2}, {{5, 8}, {0, 8}, {9, 11}}, 0);
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(waited(waits, 1), 5);
  EXPECT_EQ(waited(waits, 0), 0);
  EXPECT_EQ(waited(waits, 2), 0);
  EXPECT_EQ(blamed(waits, 1, 0), 5);
  expect_sums(waits);
}

TEST(Waits, ReduceHoldsItsRootOnly) {
  SmallJob job(3);
  job.together(Op::reduce, {0, 1, 2}, {{2, 12}, {0, 3}, {10, 12}}, 0);
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(waited(waits, 0), 8);
  EXPECT_EQ(waited(waits, 1), 0);
  EXPECT_EQ(blamed(waits, 0, 2), 8);
}

TEST(Waits, RootNotKnownIsNoWait) {
  SmallJob job(2);
  job.together(Op::broadcast, {0, 1}, {{0, 8}, {5, 8}});
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(waits.total, 0);
  EXPECT_FALSE(waits.of[0][0][0].known);
}

TEST(Waits, ReceiverWaitsForItsSenderAndNotTheOtherWayRound) {
  SmallJob job(2);
  job.pair(0, 1, {10, 14}, {2, 14});
  job.pair(1, 0, {20, 34}, {30, 34});
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(blamed(waits, 1, 0), 8);
  EXPECT_EQ(waited(waits, 0), 0);
  EXPECT_EQ(waits.total, 8);
  EXPECT_EQ(waits.of[1][0][1].doubtful, 10);  // the sender was there 10 before its receiver
}

TEST(Waits, TiesAreSplitEvenly) {
  SmallJob job(3);
  job.together(Op::all_reduce, {0, 1, 2}, {{0, 12}, {5, 12}, {5, 12}});
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(blamed(waits, 0, 1), 3);  // the remainder to the first
  EXPECT_EQ(blamed(waits, 0, 2), 2);
}

TEST(Waits, UnderOwnComputeCostsNothing) {
  SmallJob job(2);
  job.compute(0, 0, 6);
  job.together(Op::all_reduce, {0, 1}, {{2, 12}, {10, 12}});
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(waited(waits, 0), 8);
  EXPECT_EQ(waits.by_rank[0].exposed_waited, 4);
}

TEST(Waits, CausesAreToldApart) {
  // After a common all-reduce, rank 1 computes 4 longer and its host is 6 later.
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 2}, {0, 2}});
  job.compute(0, 2, 12);
  job.compute(1, 2, 16);
  job.together(Op::all_reduce, {0, 1}, {{12, 24}, {22, 24}});
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(waits.origins.at({.rank = 1, .cause = Cause::compute}).total, 4);
  EXPECT_EQ(waits.origins.at({.rank = 1, .cause = Cause::host}).total, 6);
  expect_sums(waits);
}

TEST(Waits, LongerTransferIsTheLinks) {
  // Three pairs of ranks exchange, then all meet; the transfer between 0 and 1 takes 9,
  // elsewhere 3.
  SmallJob job(6);
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5};
  job.together(Op::barrier, all, std::vector<Interval>(6, {0, 1}));
  job.together(Op::all_reduce, {0, 1}, {{5, 14}, {5, 14}});
  job.together(Op::all_reduce, {2, 3}, {{5, 8}, {5, 8}});
  job.together(Op::all_reduce, {4, 5}, {{5, 8}, {5, 8}});
  job.together(Op::barrier, all, {{14, 15}, {14, 15}, {8, 15}, {8, 15}, {8, 15}, {8, 15}});
  const Job done = job.done();
  const Waits waits = find_waits(done);
  EXPECT_EQ(waits.total, 24);
  Ns link = 0;
  for (const auto& [origin, sums] : waits.origins) {
    EXPECT_EQ(origin.cause, Cause::link);
    EXPECT_EQ(done.matching.groups[static_cast<std::size_t>(origin.group)].label, "0,1");
    link += sums.total;
  }
  EXPECT_EQ(link, 24);
}

TEST(Waits, MissingMemberIsNeverEvidence) {
  SmallJob job(3);
  job.together(Op::all_reduce, {0, 1}, {{0, 2}, {0, 2}}).whole = false;
  job.compute(1, 2, 16);
  job.together(Op::all_reduce, {0, 1}, {{12, 24}, {16, 24}}).whole = false;
  const Waits waits = find_waits(job.done());
  EXPECT_EQ(waits.total, 4);
  EXPECT_EQ(waits.undecidable, 4);
  EXPECT_EQ(waits.unattributed, 4);
  expect_sums(waits);
}

TEST(Waits, DisagreeingOperationsAreNone) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 12}, {10, 12}}).agreed = false;
  EXPECT_EQ(find_waits(job.done()).total, 0);
}

// Two hosts whose clocks may differ by 3 either way: 10 is decided, 2 is not.
TEST(Waits, BelowTheClocksUncertaintyIsUndecidable) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 12}, {10, 12}});
  job.together(Op::all_reduce, {0, 1}, {{20, 32}, {22, 32}});
  Job done = job.done();
  done.clocks.domain = {0, 1};
  done.clocks.domains = 2;
  done.clocks.bin_length = 1000;
  done.clocks.most = {{0, 3, 3, 0}};
  done.clocks.links = {{0, 0, 0}, {0, 1, 1}};
  const Waits waits = find_waits(done);
  EXPECT_EQ(waits.total, 12);
  EXPECT_EQ(waits.undecidable, 2);
  EXPECT_TRUE(waits.of[0][0][0].certain);
  EXPECT_EQ(waits.of[0][0][0].least_exposed, 7);
  EXPECT_FALSE(waits.of[0][0][1].certain);
  EXPECT_TRUE(waits.of[0][0][1].likely);
}

// Case 5: one operation on unknown hosts decides nothing.
TEST(Waits, OneOperationOnUnknownHostsIsUndecidable) {
  SmallJob job(4);
  job.together(Op::all_reduce, {0, 1, 2, 3}, {{0, 12}, {1, 12}, {2, 12}, {5, 7}});
  Job done = job.done();
  done.clocks.domain = {0, 1, 2, 3};
  done.clocks.domains = 4;
  for (std::size_t row = 1; row < 4; ++row) done.clocks.lines[row].offset.reset();
  const Waits waits = find_waits(done);
  EXPECT_EQ(waits.undecidable, waits.total);
  for (const auto& [origin, sums] : waits.origins) {
    EXPECT_EQ(sums.likely, 0);
    EXPECT_EQ(sums.certain, 0);
  }
}

TEST(Waits, AClockThatIsAheadIsPutBack) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 12}, {10, 12}});
  job.shift_clock(1, 1000);
  Job done = job.done();
  done.clocks.lines[1].offset = -1000;
  done.clocks.lines[1].assumed = -1000;
  EXPECT_EQ(find_waits(done).total, 10);
}

// --- Stragglers ---

// Four ranks that compute and meet eight times; rank 2 computes `extra` longer each time.
Job meeting_job(Ns extra) {
  SmallJob job(4);
  Ns at = 0;
  for (int i = 0; i < 8; ++i) {
    for (std::size_t rank = 0; rank < 4; ++rank)
      job.compute(rank, at, at + 400 + (rank == 2 ? extra : 0));
    const Ns late = at + 400 + extra;
    job.together(
        Op::all_reduce, {0, 1, 2, 3},
        {{at + 400, late + 20}, {at + 400, late + 20}, {late, late + 20}, {at + 400, late + 20}});
    at = late + 20;
  }
  Job done = job.done();
  done.waits = find_waits(done);
  return done;
}

TEST(Stragglers, TheRankWhoseComputeIsLongerIsNamed) {
  const Stragglers found = find_stragglers(meeting_job(80));
  ASSERT_TRUE(found.known);
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].rank, 2);
  EXPECT_EQ(found.rows[0].cause, Cause::compute);
  EXPECT_EQ(found.rows[0].confidence, Confidence::certain);
  // Seven of the eight: before the first there is nothing to compare with.
  EXPECT_EQ(found.rows[0].originated, 3 * 7 * 80);
}

TEST(Stragglers, NobodyInAHealthyJob) {
  const Stragglers found = find_stragglers(meeting_job(0));
  EXPECT_TRUE(found.known);
  EXPECT_TRUE(found.rows.empty());
  EXPECT_TRUE(found.remarks.empty());
}

TEST(Stragglers, WithoutClocksNobodyIsNamedAndThatIsSaid) {
  Job job = meeting_job(80);
  job.clocks.domain = {0, 1, 2, 3};
  job.clocks.domains = 4;
  for (std::size_t row = 1; row < 4; ++row) job.clocks.lines[row].offset.reset();
  job.waits = find_waits(job);
  const Stragglers found = find_stragglers(job);
  for (const Straggler& row : found.rows) EXPECT_EQ(row.confidence, Confidence::undecidable);
}

TEST(Stragglers, AMissingMemberLeavesItOpen) {
  Job job = meeting_job(80);
  for (MatchedOp& op : job.matching.ops) op.whole = false;
  job.matching.partial = static_cast<std::int64_t>(job.matching.ops.size());
  job.waits = find_waits(job);
  const Stragglers found = find_stragglers(job);
  EXPECT_FALSE(found.known);  // not the same as nobody
  EXPECT_TRUE(found.rows.empty());
  EXPECT_EQ(found.remarks.size(), 1U);
}

// What the sentence about rank 2 says of its kernels: it ran so many, the others ten, each 320
// long.
std::string sentence_of_kernels(std::int64_t count) {
  Job job = meeting_job(80);
  for (RankTimeline& rank : job.ranks) {
    const std::int64_t own = rank.rank == 2 ? count : 10;
    rank.kernel_times = {{.name = "gemm", .count = own, .total = own * 320}};
  }
  const Stragglers found = find_stragglers(job);
  return found.rows.size() == 1 ? found.rows[0].evidence : std::string();
}

TEST(Stragglers, MoreToDoIsSaidWhereThereAreMoreKernels) {
  const auto says = [](std::int64_t count, std::string_view words) {
    return sentence_of_kernels(count).find(words) != std::string::npos;
  };
  EXPECT_TRUE(says(12, "as fast as elsewhere: it has more to do"));
  for (const std::int64_t count : {9, 10}) {
    EXPECT_FALSE(says(count, "more to do")) << count;
    EXPECT_TRUE(says(count, "no more than elsewhere")) << count;
  }
}

TEST(Stragglers, OtherKernelsAreMoreToDo) {
  Job job = meeting_job(80);
  for (RankTimeline& rank : job.ranks)
    rank.kernel_times = {{.name = "gemm", .count = 10, .total = 3200}};
  job.ranks[2].kernel_times.push_back({.name = "checkpoint", .count = 1, .total = 640});
  const Stragglers found = find_stragglers(job);
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_NE(found.rows[0].evidence.find("more to do"), std::string::npos);
}

// Two ranks, six steps of 1,000 each, of which the first is left out; 0.5 % of a step is 10.
StepTable table_of_five_steps() {
  Job job;
  for (int rank = 0; rank < 2; ++rank) {
    DeviceTimeline& device = job.ranks.emplace_back().devices.emplace_back();
    for (int step = 0; step < 6; ++step) {
      StepFigures& figures = device.step_figures.emplace_back();
      figures.number = step;
      figures.breakdown.window = {step * 1000, step * 1000 + 1000};
    }
  }
  return StepTable(job);
}

// So much certain waiting came from a rank in one step, which its own time shows plainly.
std::optional<Verdict> verdict_of_one_step(Ns time) {
  const StepTable table = table_of_five_steps();
  Suspicion suspicion{.originated = std::vector<WaitSums>(5),
                      .usual = std::vector<Ns>(5),
                      .seen = std::vector<bool>(5, true),
                      .plain = std::vector<bool>(5, true)};
  suspicion.originated[2] = {.total = time, .exposed = time, .likely = time, .certain = time};
  return judge(suspicion, table);
}

TEST(Stragglers, ASmallBurstIsNeverCertain) {
  EXPECT_FALSE(verdict_of_one_step(9));
  for (const Ns time : {10, 39, 40, 200}) {
    const auto verdict = verdict_of_one_step(time);
    ASSERT_TRUE(verdict) << time;
    EXPECT_TRUE(verdict->burst);
    EXPECT_EQ(verdict->steps, std::vector<std::size_t>{2});
    EXPECT_EQ(verdict->confidence, time < 40 ? Confidence::likely : Confidence::certain) << time;
  }
}

// Random jobs of overlapping groups, with compute of any length between: the sums hold.
TEST(Waits, SumsHoldInRandomJobs) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](unsigned n) { return static_cast<Ns>(random() % n); };
    const std::size_t ranks = 2 + random() % 5;
    SmallJob job(ranks);
    std::vector<Ns> free(ranks, 0);
    for (int i = 0; i < 30; ++i) {
      std::vector<std::int64_t> members;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (random() % 3 != 0) members.push_back(static_cast<std::int64_t>(rank));
      }
      if (members.size() < 2) continue;
      std::vector<Interval> times;
      Ns last = 0;
      for (const std::int64_t member : members) {
        Ns& at = free[static_cast<std::size_t>(member)];
        const Ns work = below(20);
        if (random() % 2 != 0) job.compute(static_cast<std::size_t>(member), at, at + work);
        times.push_back({at + work, 0});
        last = std::max(last, at + work);
      }
      const Ns transfer = 1 + below(6);
      for (std::size_t m = 0; m < members.size(); ++m) {
        times[m].end = last + transfer + below(2);
        free[static_cast<std::size_t>(members[m])] = times[m].end;
      }
      MatchedOp& op = job.together(Op::all_reduce, members, times);
      op.whole = random() % 10 != 0;
      op.sure = random() % 10 != 0;
      op.agreed = random() % 20 != 0;
    }
    SCOPED_TRACE(seed);
    expect_sums(find_waits(job.done()));
  }
}

// Everything that a result holds, in one row.
std::vector<std::int64_t> figures(const Waits& waits) {
  std::vector<std::int64_t> row{waits.total, waits.undecidable, waits.unattributed};
  const auto add = [&row](const WaitSums& sums) {
    for (const Ns sum : {sums.total, sums.exposed, sums.likely, sums.certain}) row.push_back(sum);
  };
  for (const auto& rank : waits.of) {
    for (const auto& device : rank) {
      for (const Wait& wait : device) {
        for (const Ns time : {wait.wait, wait.exposed, wait.least_exposed, wait.doubtful})
          row.push_back(time);
        for (const bool is : {wait.known, wait.estimated, wait.likely, wait.ordered, wait.certain})
          row.push_back(is ? 1 : 0);
      }
    }
  }
  for (const RankWaits& rank : waits.by_rank) {
    for (const Ns time : {rank.waited, rank.exposed_waited, rank.caused, rank.originated})
      row.push_back(time);
  }
  for (const auto& [who, time] : waits.blame) {
    row.push_back(who.first);
    row.push_back(who.second);
    row.push_back(time);
  }
  for (const auto& [origin, sums] : waits.origins) {
    for (const std::int64_t part : {std::int64_t{origin.rank}, std::int64_t(origin.cause),
                                    std::int64_t{origin.group}, origin.step})
      row.push_back(part);
    add(sums);
  }
  add(waits.unattributed_sums);
  return row;
}

// Long enough for several threads to share: 400 operations of overlapping groups.
Job long_job(unsigned seed) {
  std::mt19937 random(seed);
  SmallJob job(6);
  std::vector<Ns> free(6, 0);
  for (int i = 0; i < 400; ++i) {
    std::vector<std::int64_t> members;
    const auto wanted = 1 + random() % 63;
    for (unsigned rank = 0; rank < 6; ++rank) {
      if ((wanted >> rank & 1U) != 0) members.push_back(rank);
    }
    if (members.size() < 2) continue;
    std::vector<Interval> times;
    Ns last = 0;
    for (const std::int64_t member : members) {
      Ns& at = free[static_cast<std::size_t>(member)];
      const Ns work = static_cast<Ns>(random() % 6);
      job.compute(static_cast<std::size_t>(member), at, at + work);
      at += work;
      times.push_back({at, 0});
      last = std::max(last, at);
    }
    for (std::size_t m = 0; m < members.size(); ++m)
      times[m].end = free[static_cast<std::size_t>(members[m])] = last + 1;
    job.together(Op::all_reduce, members, times);
  }
  return job.done();
}

// Two ranks meet every 1,000; the second computes between 0 and 6 longer, and the first waits for
// it. By `groups` in turn.
Job meetings(int count, int groups) {
  Job job;
  job.matching.known = job.clocks.known = true;
  ClockLine same;
  same.offset = 0;
  same.method = ClockMethod::same_host;
  job.clocks.lines.assign(2, same);
  job.clocks.domain.assign(2, 0);
  job.clocks.base.assign(2, 0);
  job.matching.groups.resize(static_cast<std::size_t>(groups));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    RankTimeline& row = job.ranks.emplace_back();
    row.rank = rank;
    DeviceTimeline& device = row.devices.emplace_back();
    device.launches_known = true;
    device.extent = device.breakdown.window = {0, Ns{1000} * count};
    OwnTime own;
    for (int i = 0; i < count; ++i) {
      const Ns late = rank == 1 ? i % 7 : 0;
      CommOp& op = device.comm.emplace_back();
      op.op = Op::all_reduce;
      op.time = {Ns{1000} * i + 900 + late, Ns{1000} * i + 990};
      own.compute += 900 + late;
      own.host += 10;
      device.own_at_start.push_back(own);
      device.own_at_end.push_back(own);
    }
    device.exposures.assign(device.comm.size(), {});
    for (Exposure& exposure : device.exposures) exposure.in_window = exposure.starts_inside = true;
  }
  for (int i = 0; i < count; ++i) {
    MatchedOp& op = job.matching.ops.emplace_back();
    op.op = Op::all_reduce;
    op.group = i % groups;
    op.first = static_cast<std::uint32_t>(job.matching.parts.size());
    op.count = 2;
    op.by = MatchedBy::sequence;
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      job.matching.parts.push_back({rank, 0, static_cast<std::uint32_t>(i)});
  }
  return job;
}

// How many groups there are changes nothing. In each seven the first rank waits 0 + 1 + ... + 6.
TEST(Waits, TheSameForAnyNumberOfGroups) {
  for (const int groups : {1, 3, 64, 65, 700}) {
    const Waits waits = find_waits(meetings(700, groups));
    EXPECT_EQ(waits.total, 100 * 21) << groups;
    EXPECT_EQ(waits.by_rank[1].originated, 100 * 21) << groups;
    EXPECT_EQ(waits.unattributed, 0) << groups;
    expect_sums(waits);
  }
}

// As many groups as operations: not each of them for each wait, which takes minutes.
TEST(Waits, ManyGroupsOfTheSameRanks) {
  const Job job = meetings(21'000, 21'000);
  const std::clock_t start = std::clock();
  EXPECT_EQ(find_waits(job).by_rank[1].originated, 3'000 * 21);
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10);
}

TEST(Waits, TheSameForAnyNumberOfThreads) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Job job = long_job(seed);
    const Waits alone = find_waits(job, 1);
    ASSERT_GT(alone.total, 1000);
    ASSERT_GT(alone.origins.size(), 3U);
    for (const unsigned threads : {2U, 3U, 8U})
      EXPECT_EQ(figures(find_waits(job, threads)), figures(alone)) << seed << ", " << threads;
  }
}

}  // namespace
}  // namespace commlens
