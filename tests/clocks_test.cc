// Clocks of hand-made jobs, against values computed by hand; and of random ones, whose true clocks
// are known.
#include "match/clocks.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>

#include "clock_job.h"

namespace commlens {
namespace {

using notation::ClockJob;

constexpr Ns kMs = 1'000'000;
constexpr Ns kUs = 1'000;

Interval ms(Ns start, Ns end) { return {start * kMs, end * kMs}; }

// Bounds are looser than the instants say by the resolution of times, and by drift over the few
// milliseconds of these jobs.
constexpr Ns kLoose = 25 * kUs;
void expect_just_below(std::optional<Ns> bound, Ns value, Ns loose = kLoose) {
  ASSERT_TRUE(bound);
  EXPECT_LE(*bound, value - kUs);
  EXPECT_GT(*bound, value - loose);
}
void expect_just_above(std::optional<Ns> bound, Ns value, Ns loose = kLoose) {
  ASSERT_TRUE(bound);
  EXPECT_GE(*bound, value + kUs);
  EXPECT_LT(*bound, value + loose);
}

// The true offset to the reference, at the origin.
Ns true_offset(const ClockJob& job, const Clocks& clocks, std::size_t row) {
  const Ns at = job.true_time(clocks.reference, clocks.origin);
  return clocks.origin - job.own(row, at);
}

// methods.md, case 5: rank 3's clock shows 5 ms less. Causality allows [-5, 7]; one operation is no
// evidence for more.
TEST(Clocks, OneOperationBoundsAndEstimatesNothing) {
  ClockJob job({"", "", "", ""});
  job.set_clock(3, -5 * kMs);
  job.together(Op::all_reduce, {0, 1, 2, 3}, {ms(0, 12), ms(1, 12), ms(2, 12), ms(10, 12)});
  const Clocks clocks = relate_clocks(job.done());
  ASSERT_TRUE(clocks.known);
  EXPECT_EQ(clocks.infeasible, "");
  EXPECT_EQ(clocks.lines[0].method, ClockMethod::reference);
  EXPECT_EQ(clocks.lines[0].offset, 0);
  const ClockLine& line = clocks.lines[3];
  EXPECT_EQ(line.method, ClockMethod::none);
  EXPECT_FALSE(line.offset);
  expect_just_below(line.lower, -7 * kMs);  // rank 0's own entry; those of the others may be later
  expect_just_above(line.upper, 7 * kMs);
  EXPECT_EQ(line.assumed, 0);
  EXPECT_FALSE(clocks.spread(0, 3));
}

// The example of docs/clocks.md.
TEST(Clocks, ThreeOperationsByHand) {
  ClockJob job({"a", "b"});
  job.set_clock(1, -30 * kUs);
  const auto us = [](Ns start, Ns end) { return Interval{start * kUs, end * kUs}; };
  job.together(Op::all_reduce, {0, 1}, {us(0, 50), us(40, 50)});
  job.together(Op::all_reduce, {0, 1}, {us(95, 104), us(90, 104)});
  job.together(Op::all_reduce, {0, 1}, {us(200, 212), us(205, 213)});
  const Clocks clocks = relate_clocks(job.done());
  const ClockLine& line = clocks.lines[1];
  EXPECT_EQ(line.offset, 29'667);  // the mean of 30, 30 and 29
  expect_just_below(line.lower, 21 * kUs, 2 * kUs);
  expect_just_above(line.upper, 37 * kUs, 2 * kUs);
  // The last entries of operation 3 are 4.7 apart: more than the spread, less than the bounds.
  EXPECT_LT(clocks.spread(0, 1), 4'700);
  EXPECT_LT(clocks.error(1, 0, 205 * kUs).lower, -5 * kUs);
}

// The three others of case 5, which share a host: their latest start and earliest end count.
TEST(Clocks, RanksOfOneHostShareAClock) {
  ClockJob job({"a", "a", "a", "b"});
  job.set_clock(3, -5 * kMs);
  job.together(Op::all_reduce, {0, 1, 2, 3}, {ms(0, 12), ms(1, 12), ms(2, 12), ms(10, 12)});
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.domains, 2U);
  EXPECT_EQ(clocks.lines[2].method, ClockMethod::same_host);
  EXPECT_EQ(clocks.lines[2].offset, 0);
  EXPECT_EQ(clocks.lines[2].lower, 0);
  EXPECT_EQ(clocks.lines[2].upper, 0);
  EXPECT_EQ(clocks.spread(0, 2), 0);
  EXPECT_EQ(clocks.error(0, 2, 5 * kMs).upper, 0);
  expect_just_below(clocks.lines[3].lower, -5 * kMs);
  expect_just_above(clocks.lines[3].upper, 7 * kMs);
}

// Two hosts of two ranks, one 7 ms behind: what tells the offset is what scatters less.
TEST(Clocks, FirstExitsOrTheMiddleOfTheExits) {
  for (const bool first_agree : {true, false}) {
    ClockJob job({"a", "a", "b", "b"});
    job.set_clock(2, -7 * kMs);
    job.set_clock(3, -7 * kMs);
    const std::vector<std::pair<Ns, Ns>> apart{{1, 9}, {7, 2}, {3, 4}, {12, 1}, {2, 11}, {5, 5}};
    Ns at = 0;
    for (const auto& [on_a, on_b] : apart) {
      const Ns end = at + 200 * kUs;
      const Ns early_a = first_agree ? 0 : on_a * kUs;
      const Ns early_b = first_agree ? 0 : on_b * kUs;
      job.together(Op::all_reduce, {0, 1, 2, 3},
                   {{at, end - early_a},
                    {at, end + on_a * kUs},
                    {at, end - early_b},
                    {at, end + on_b * kUs}});
      at += kMs;
    }
    EXPECT_EQ(relate_clocks(job.done()).lines[2].offset, 7 * kMs) << first_agree;
  }
}

// Known to be one host: zero is kept, and the ends simply differ.
TEST(Clocks, ZeroIsKeptOnOneHost) {
  ClockJob job({"a", "a"});
  job.set_clock(1, -5 * kMs);
  job.together(Op::all_reduce, {0, 1}, {ms(0, 12), ms(10, 12)});
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.lines[1].method, ClockMethod::same_host);
  EXPECT_EQ(clocks.lines[1].offset, 0);
  EXPECT_TRUE(clocks.known);
}

// Without a known zero nothing is shared, whatever the host.
TEST(Clocks, UnknownZeroSharesNothing) {
  ClockJob job({"a", "a"});
  job.set_clock(1, -1000 * kMs);
  job.together(Op::all_reduce, {0, 1}, {ms(0, 12), ms(10, 12)});
  Job done = job.done();
  done.ranks[1].recording.clock = ClockBase::unknown;
  const Clocks clocks = relate_clocks(done);
  EXPECT_EQ(clocks.domains, 2U);
  EXPECT_EQ(clocks.infeasible, "");
  EXPECT_FALSE(clocks.lines[1].offset);
  expect_just_below(clocks.lines[1].lower, 988 * kMs);
  expect_just_above(clocks.lines[1].upper, 1002 * kMs);
  // Its times are put beside the others' all the same: zero would say nothing.
  EXPECT_NEAR(static_cast<double>(clocks.lines[1].assumed), 1e9, 1e3);
}

TEST(Clocks, EndsOfThreeOperationsAreAnEstimate) {
  for (const int operations : {2, 3}) {
    ClockJob job({"a", "b"});
    job.set_clock(1, -5 * kMs);
    for (int i = 0; i < operations; ++i) {
      const Ns at = 20 * i;
      job.together(Op::all_reduce, {0, 1}, {ms(at, at + 12), ms(at + 1, at + 12)});
    }
    const Clocks clocks = relate_clocks(job.done());
    if (operations == 2) {
      EXPECT_FALSE(clocks.lines[1].offset);
      EXPECT_FALSE(clocks.spread(0, 1));
      continue;
    }
    EXPECT_EQ(clocks.lines[1].offset, 5 * kMs);
    EXPECT_EQ(clocks.lines[1].method, ClockMethod::end_differences);
    // A microsecond, times 3 because there are so few; and 3 us / 20 ms for 11 ms before the first.
    EXPECT_NEAR(static_cast<double>(clocks.lines[1].spread), 4'650, 5);
    EXPECT_EQ(clocks.spread(1, 0), clocks.lines[1].spread);
    EXPECT_EQ(clocks.common(1, -4 * kMs), kMs);
  }
}

// Ends of an all-to-all differ where shares do; those of a balanced operation are better.
TEST(Clocks, BalancedOperationsAreBetterEstimates) {
  ClockJob job({"a", "b"});
  job.set_clock(1, -5 * kMs);
  for (int i = 0; i < 3; ++i)
    job.together(Op::all_reduce, {0, 1}, {ms(20 * i, 20 * i + 12), ms(20 * i, 20 * i + 12)});
  for (int i = 3; i < 20; ++i)
    job.together(Op::all_to_all, {0, 1}, {ms(20 * i, 20 * i + 12), ms(20 * i, 20 * i + 10)});
  EXPECT_EQ(relate_clocks(job.done()).lines[1].offset, 5 * kMs);
}

// The root's entry bounds the leaf's exit, and nothing bounds the root.
TEST(Clocks, ABroadcastBoundsOneSide) {
  ClockJob job({"a", "b"});
  job.together(Op::broadcast, {0, 1}, {ms(4, 9), ms(0, 12)}, 0);
  const Clocks clocks = relate_clocks(job.done());
  expect_just_below(clocks.lines[1].lower, (4 - 12) * kMs);
  EXPECT_FALSE(clocks.lines[1].upper);
  EXPECT_EQ(clocks.error(1, 0, 4 * kMs).upper, ClockError::kUnbounded);
  EXPECT_TRUE(clocks.known);
}

TEST(Clocks, AReduceBoundsItsRoot) {
  ClockJob job({"a", "b"});
  job.together(Op::reduce, {0, 1}, {ms(0, 12), ms(5, 7)}, 0);
  const Clocks clocks = relate_clocks(job.done());
  expect_just_above(clocks.lines[1].upper, (12 - 5) * kMs);
  EXPECT_FALSE(clocks.lines[1].lower);
}

TEST(Clocks, AReceiverNeedsItsSource) {
  ClockJob job({"a", "b"});
  job.pair(0, 1, ms(3, 5), ms(0, 6));
  job.pair(1, 0, ms(10, 11), ms(9, 12));
  const Clocks clocks = relate_clocks(job.done());
  expect_just_below(clocks.lines[1].lower, (3 - 6) * kMs);
  expect_just_above(clocks.lines[1].upper, (12 - 10) * kMs);
}

// Without an estimate: 0 where that can be, else the middle of what can be.
TEST(Clocks, WhatIsAssumed) {
  for (const Ns ahead : {3 * kMs, 100 * kMs}) {
    ClockJob job({"a", "b"});
    job.set_clock(1, ahead);
    job.pair(0, 1, ms(3, 5), ms(0, 7));     // o >= 3 - 7 - ahead
    job.pair(1, 0, ms(10, 11), ms(9, 12));  // o <= 12 - 10 - ahead
    const Clocks clocks = relate_clocks(job.done());
    EXPECT_FALSE(clocks.lines[1].offset);
    const Ns middle = (-4 + 2) * kMs / 2 - ahead;
    EXPECT_NEAR(static_cast<double>(clocks.lines[1].assumed), static_cast<double>(middle), 20e3);
  }
  ClockJob job({"a", "b"});
  job.pair(0, 1, ms(3, 5), ms(0, 7));
  job.pair(1, 0, ms(10, 11), ms(9, 12));
  EXPECT_EQ(relate_clocks(job.done()).lines[1].assumed, 0);
}

// Ends that always differ by 100 us say o = -100; a message says o >= 500 - 530. The estimate is
// moved to what can be, and trusted as much less.
TEST(Clocks, AnEstimateOutsideItsBoundsIsMoved) {
  ClockJob job({"a", "b"});
  for (int i = 0; i < 5; ++i) {
    const auto us = [i](Ns start, Ns end) {
      return Interval{i * kMs + start * kUs, i * kMs + end * kUs};
    };
    job.together(Op::all_reduce, {0, 1}, {us(0, 60), us(0, 160)});
    job.pair(0, 1, us(500, 520), us(500, 530));
  }
  const Clocks clocks = relate_clocks(job.done());
  const ClockLine& line = clocks.lines[1];
  ASSERT_TRUE(line.offset);
  EXPECT_NE(clocks.infeasible.find("ranks 1 are"), std::string::npos) << clocks.infeasible;
  EXPECT_EQ(clocks.error(0, 1, 2 * kMs).upper, ClockError::kUnbounded);
  EXPECT_NEAR(static_cast<double>(*line.offset), static_cast<double>(line.lower.value()), 100);
  expect_just_below(line.lower, -30 * kUs, 3 * kUs);
  EXPECT_GE(line.spread, 66 * kUs);
}

// What may be another operation, or may move nothing, is no evidence.
TEST(Clocks, DoubtfulOperationsBoundNothing) {
  enum class Doubt { unsure, disagreeing, inferred, zero_split, no_bytes, lying_name };
  for (const Doubt doubt : {Doubt::unsure, Doubt::disagreeing, Doubt::inferred, Doubt::zero_split,
                            Doubt::no_bytes, Doubt::lying_name}) {
    ClockJob job({"a", "b"});
    for (int i = 0; i < 5; ++i) {
      MatchedOp& op =
          job.together(Op::all_to_all, {0, 1}, {ms(20 * i, 20 * i + 12), ms(20 * i, 20 * i + 12)});
      op.sure = doubt != Doubt::unsure;
      op.agreed = doubt != Doubt::disagreeing;
      if (doubt == Doubt::inferred) op.by = MatchedBy::inferred;
      job.last_comm(1).zero_split = doubt == Doubt::zero_split;
      if (doubt == Doubt::no_bytes) job.last_comm(1).bytes = 0;
      job.last_comm(1).name_may_lie = doubt == Doubt::lying_name;
    }
    const Clocks clocks = relate_clocks(job.done());
    // Operations that are inferred from ending together estimate where nothing else does.
    EXPECT_EQ(clocks.known, doubt == Doubt::inferred);
    EXPECT_EQ(clocks.lines[1].offset.has_value(), doubt == Doubt::inferred);
    EXPECT_EQ(clocks.error(0, 1, 0).upper, ClockError::kUnbounded);
    EXPECT_FALSE(clocks.lines[1].lower);
  }
}

TEST(Clocks, InferredOperationsGiveWayToOthers) {
  ClockJob job({"a", "b"});
  for (int i = 0; i < 9; ++i) {
    const Ns at = 20 * i;
    job.together(Op::all_gather, {0, 1}, {ms(at, at + 12), ms(at, at + 15)}).by =
        MatchedBy::inferred;
    job.last_comm(1).bytes = 4096;
  }
  for (int i = 9; i < 12; ++i)
    job.together(Op::all_reduce, {0, 1}, {ms(20 * i, 20 * i + 12), ms(20 * i, 20 * i + 12)});
  Job done = job.done();
  for (std::size_t i = 0; i < 9; ++i) done.matching.ops[i].group = 1;  // a group of their own
  for (std::size_t i = 9; i < 12; ++i) done.matching.ops[i].group = 0;
  EXPECT_EQ(relate_clocks(done).lines[1].offset, 0);
}

TEST(Clocks, PartialOperationsBoundAsWell) {
  ClockJob job({"a", "b"});
  job.together(Op::all_reduce, {0, 1}, {ms(0, 12), ms(10, 12)}).whole = false;
  EXPECT_TRUE(relate_clocks(job.done()).lines[1].upper);
}

// 0 and 2 have no operation in common, but 1 has with both.
TEST(Clocks, BoundsGoThroughOthers) {
  ClockJob job({"a", "b", "c"});
  job.set_clock(2, 3 * kMs);
  job.together(Op::all_reduce, {0, 1}, {ms(0, 12), ms(10, 12)});
  job.together(Op::all_reduce, {1, 2}, {ms(20, 25), ms(21, 25)});
  const Clocks clocks = relate_clocks(job.done());
  // o_2 <= e_1 - s_2 + o_1 and o_1 <= e_0 - s_1: 25 - 24 + 12 - 10.
  expect_just_above(clocks.lines[2].upper, (1 + 2) * kMs);
  // o_2 >= s_1 - e_2 + o_1 and o_1 >= s_0 - e_1: 20 - 28 + 0 - 12.
  expect_just_below(clocks.lines[2].lower, (-8 - 12) * kMs);
}

// Two pairs of hosts without anything in common: each pair is related, to the other nothing is.
TEST(Clocks, UnrelatedPartsKeepTheirOwnDifferences) {
  ClockJob job({"a", "b", "c", "d"});
  job.set_clock(3, 7 * kMs);
  for (int i = 0; i < 4; ++i) {
    job.together(Op::all_reduce, {0, 1}, {ms(20 * i, 20 * i + 12), ms(20 * i, 20 * i + 12)});
    job.together(Op::all_reduce, {2, 3}, {ms(20 * i, 20 * i + 12), ms(20 * i, 20 * i + 12)});
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.lines[1].offset, 0);
  EXPECT_FALSE(clocks.lines[2].offset);
  EXPECT_FALSE(clocks.lines[3].offset);
  EXPECT_FALSE(clocks.lines[3].upper);
  EXPECT_FALSE(clocks.spread(0, 2));
  EXPECT_LT(clocks.spread(2, 3), 5 * kUs);
  EXPECT_EQ(clocks.common(2, 10 * kMs), clocks.common(3, 17 * kMs));
  EXPECT_EQ(clocks.error(0, 2, 0).upper, ClockError::kUnbounded);
  EXPECT_LT(clocks.error(2, 3, 0).upper, 13 * kMs);
}

TEST(Clocks, RanksWithoutOperations) {
  ClockJob job({"a", "b", "a", ""});
  job.together(Op::all_reduce, {1, 2}, {ms(0, 12), ms(10, 12)});
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.reference, 1U) << "the lowest rank that is in any operation";
  EXPECT_EQ(clocks.domain[0], clocks.domain[2]) << "shares its host's clock";
  EXPECT_TRUE(clocks.lines[0].upper);
  EXPECT_FALSE(clocks.lines[3].upper);
  EXPECT_EQ(clocks.lines[3].method, ClockMethod::none);
  EXPECT_EQ(clocks.error(3, 1, 0).upper, ClockError::kUnbounded);
  EXPECT_FALSE(clocks.spread(3, 1));

  const Clocks nothing = relate_clocks(ClockJob({"a"}).done());
  EXPECT_FALSE(nothing.known);
  EXPECT_EQ(nothing.lines.size(), 1U);
}

// A few microseconds on one host are how it is read.
// Nothing in common but the host: its clock, where they were recorded at one time. Rank 2 was an
// hour later, rank 3 is elsewhere, of rank 4 no host is known.
TEST(Clocks, WithoutOperationsAHostsClockIsShared) {
  ClockJob made({"a", "a", "a", "b", ""});
  Job job = made.done();
  for (RankTimeline& rank : job.ranks) rank.devices[0].extent = ms(0, 12);
  job.ranks[1].devices[0].extent = ms(11, 20);
  job.ranks[2].devices[0].extent = ms(3'600'000, 3'600'012);
  const Clocks clocks = relate_clocks(job);
  ASSERT_TRUE(clocks.known);
  EXPECT_EQ(clocks.domains, 1U);
  EXPECT_EQ(clocks.reference, 0U);
  EXPECT_EQ(clocks.origin, 11 * kMs);
  EXPECT_EQ(clocks.lines[0].method, ClockMethod::reference);
  EXPECT_EQ(clocks.lines[1].method, ClockMethod::same_host);
  EXPECT_EQ(clocks.lines[1].offset, 0);
  EXPECT_EQ(clocks.common(1, 15 * kMs), 15 * kMs);
  for (const std::size_t other : {2U, 3U, 4U}) {
    EXPECT_EQ(clocks.lines[other].method, ClockMethod::none);
    EXPECT_NE(clocks.domain[other], clocks.domain[0]);
  }
  // Every host calls itself so.
  Job local = made.done();
  for (RankTimeline& rank : local.ranks) {
    rank.host = "localhost";
    rank.devices[0].extent = ms(0, 12);
  }
  EXPECT_FALSE(relate_clocks(local).known);
  // A clock without a known zero is no host's.
  job.ranks[1].recording.clock = ClockBase::unknown;
  EXPECT_FALSE(relate_clocks(job).known);
}

// Those in operations come first: theirs is the reference.
TEST(Clocks, AHostWithoutOperationsStandsBehindThoseWith) {
  ClockJob made({"a", "a", "b", "c"});
  made.together(Op::all_reduce, {2, 3}, {ms(0, 12), ms(10, 12)});
  Job job = made.done();
  for (RankTimeline& rank : job.ranks) rank.devices[0].extent = ms(0, 12);
  const Clocks clocks = relate_clocks(job);
  EXPECT_EQ(clocks.reference, 2U);
  EXPECT_EQ(clocks.domain, (std::vector<std::uint32_t>{2, 2, 0, 1}));
  EXPECT_EQ(clocks.domains, 3U);
  EXPECT_EQ(clocks.error(0, 1, 0).upper, 0);
  EXPECT_EQ(clocks.error(0, 2, 0).upper, ClockError::kUnbounded);
  EXPECT_FALSE(clocks.lines[0].offset);
}

// One export's processes count from the start of its session, whenever that was and wherever.
TEST(Clocks, OneSessionIsOneClock) {
  ClockJob made({"", "", ""});
  Job job = made.done();
  for (RankTimeline& rank : job.ranks) {
    rank.devices[0].extent = ms(0, 12);
    rank.recording.clock = ClockBase::unknown;
    rank.recording.session = "run.sqlite";
  }
  job.ranks[1].devices[0].extent = ms(50, 60);
  job.ranks[2].recording.session = "other.sqlite";
  const Clocks clocks = relate_clocks(job);
  ASSERT_TRUE(clocks.known);
  EXPECT_EQ(clocks.domain[0], clocks.domain[1]);
  EXPECT_NE(clocks.domain[0], clocks.domain[2]);
  EXPECT_EQ(clocks.lines[1].offset, 0);
}

TEST(Clocks, SmallContradictionsOnAHostAreSkew) {
  ClockJob job({"a", "a", "b"});
  job.together(Op::barrier, {0, 1, 2}, {{0, 100 * kUs}, {105 * kUs, 108 * kUs}, {0, 107 * kUs}});
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.skew, 5 * kUs);
  EXPECT_EQ(clocks.domain[0], clocks.domain[1]);
  EXPECT_EQ(clocks.error(0, 1, 0).upper, 5 * kUs);
  EXPECT_EQ(clocks.infeasible, "");
}

// Three ranks are said to share a host; the third one's clock is 300 us ahead.
TEST(Clocks, AWrongHostIsFound) {
  ClockJob job({"a", "a", "a", "b"});
  job.set_clock(2, 300 * kUs);
  for (int i = 0; i < 5; ++i) {
    const Ns at = i * kMs;
    job.together(Op::all_reduce, {0, 1, 2, 3},
                 {{at, at + 400 * kUs},
                  {at + 10 * kUs, at + 400 * kUs},
                  {at + 200 * kUs, at + 400 * kUs},
                  {at, at + 400 * kUs}});
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.domain[0], clocks.domain[1]);
  EXPECT_NE(clocks.domain[0], clocks.domain[2]);
  EXPECT_NE(clocks.infeasible.find("rank 2 cannot share"), std::string::npos) << clocks.infeasible;
  EXPECT_NE(clocks.infeasible.find("\"a\""), std::string::npos);
  EXPECT_EQ(clocks.lines[2].offset, -300 * kUs);
  EXPECT_TRUE(std::none_of(clocks.doubted.begin(), clocks.doubted.end(), [](bool b) { return b; }))
      << "their numbers are no likeness";
}

// The same times, but matched by likeness: the match is doubted as well, and bounds nothing.
// One damaged record of a hundred (a kernel of 1 us, a duration that was lost) is left out; the
// ranks keep their clock, and it is no evidence of waiting.
TEST(Clocks, ADamagedRecordDoesNotTakeTheHostsClock) {
  for (const std::size_t damaged : {std::size_t{0}, std::size_t{40}, std::size_t{99}}) {
    ClockJob job({"a", "a", "a"});
    for (std::size_t i = 0; i < 100; ++i) {
      const Ns at = static_cast<Ns>(i) * kMs;
      const Ns end = at + (i == damaged ? kUs : 400 * kUs);
      job.together(Op::all_reduce, {0, 1, 2},
                   {{at, end}, {at + 10 * kUs, at + 400 * kUs}, {at + 200 * kUs, at + 400 * kUs}});
    }
    const Clocks clocks = relate_clocks(job.done());
    EXPECT_EQ(clocks.domain[0], clocks.domain[1]);
    EXPECT_EQ(clocks.domain[0], clocks.domain[2]);
    EXPECT_NE(clocks.infeasible.find("1 operation ends"), std::string::npos) << clocks.infeasible;
    ASSERT_EQ(clocks.doubted.size(), 100U);
    EXPECT_TRUE(clocks.doubted[damaged]);
    EXPECT_EQ(std::count(clocks.doubted.begin(), clocks.doubted.end(), true), 1);
  }
}

TEST(Clocks, AContradictingMatchByLikenessIsDoubted) {
  ClockJob job({"a", "a"});
  for (int i = 0; i < 5; ++i) {
    const Ns at = i * kMs;
    const Ns shift = i == 2 ? kMs : 0;  // rank 1's next operation
    job.together(Op::all_reduce, {0, 1},
                 {{at, at + 400 * kUs}, {at + shift + 10 * kUs, at + shift + 400 * kUs}})
        .by = MatchedBy::alignment;
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.doubted, (std::vector<bool>{false, false, true, false, false}));
  EXPECT_NE(clocks.infeasible, "");
  EXPECT_NE(clocks.domain[0], clocks.domain[1]);
  EXPECT_EQ(clocks.lines[1].offset, 0) << "the others say so";
}

// A step of 50 ms in the middle: no drift explains it, and nothing is said about that host.
TEST(Clocks, AStepLeavesAClockUnbounded) {
  ClockJob job({"a", "b", "c"});
  for (int i = 0; i < 20; ++i) {
    const Ns step = i < 10 ? 0 : 50;
    const Ns at = 20 * i;
    job.together(Op::all_reduce, {0, 1, 2},
                 {ms(at, at + 12), ms(at + step, at + step + 12), ms(at + 1, at + 12)});
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_NE(clocks.infeasible.find("ranks 1 contradict"), std::string::npos) << clocks.infeasible;
  EXPECT_FALSE(clocks.lines[1].offset);
  EXPECT_FALSE(clocks.lines[1].upper);
  EXPECT_FALSE(clocks.lines[1].lower);
  EXPECT_EQ(clocks.lines[2].offset, 0);
  EXPECT_TRUE(clocks.lines[2].upper);
}

// Ranks 2 and 3 are said to be on host a, but their clocks are 400 us behind: less than a transfer
// takes, so no operation is impossible. Zero is kept; it is said, and nothing below that is
// certain.
TEST(Clocks, AWrongHostInsideATransferIsSeenInTheEnds) {
  for (const Ns ahead : {-700 * kUs, -400 * kUs, 400 * kUs, Ns{0}}) {
    ClockJob job({"a", "a", "a", "a"});
    job.set_clock(2, ahead);
    job.set_clock(3, ahead);
    for (int i = 0; i < 10; ++i) {
      const Ns at = i * 3 * kMs;
      const Ns end = at + 2 * kMs;
      job.together(Op::all_reduce, {0, 1, 2, 3},
                   {{at, end}, {at, end + 3 * kUs}, {at, end + i * kUs}, {at, end}});
    }
    const Clocks clocks = relate_clocks(job.done());
    SCOPED_TRACE(ahead);
    EXPECT_EQ(clocks.domain[0], clocks.domain[2]);
    EXPECT_EQ(clocks.infeasible.find("ranks 2,3 always end") != std::string::npos, ahead != 0)
        << clocks.infeasible;
    EXPECT_EQ(clocks.error(0, 2, kMs).upper >= std::abs(ahead), true);
    EXPECT_EQ(clocks.infeasible.empty(), ahead == 0) << clocks.infeasible;
  }
}

// Steps that are smaller than a transfer takes: no bound is contradicted, but the ends go apart at
// once. Early, in the middle and late in the window, forward and back, of one clock or of the
// reference's; and clocks that only drift, or scatter, are no steps.
TEST(Clocks, ASmallStepIsSeenInTheEnds) {
  for (const Ns step : {30 * kUs, 300 * kUs, -300 * kUs}) {
    for (const int at_operation : {4, 15, 26}) {
      for (const std::size_t stepped : {std::size_t{0}, std::size_t{1}}) {
        ClockJob job({"a", "b", "c"});
        for (int i = 0; i < 30; ++i) {
          const Ns at = i * kMs;
          std::vector<Interval> times;
          for (std::size_t rank = 0; rank < 3; ++rank) {
            const Ns ahead = rank == stepped && i >= at_operation ? step : 0;
            const Ns jitter = (7 * i + 3 * static_cast<Ns>(rank)) % 4 * kUs;
            times.push_back({at + ahead, at + ahead + 500 * kUs + jitter});
          }
          job.together(Op::all_reduce, {0, 1, 2}, times);
        }
        const Clocks clocks = relate_clocks(job.done());
        SCOPED_TRACE(testing::Message() << step << " " << at_operation << " " << stepped);
        EXPECT_NE(clocks.infeasible.find("jump by"), std::string::npos) << clocks.infeasible;
        EXPECT_FALSE(clocks.lines[1].offset);
        EXPECT_FALSE(clocks.lines[1].upper);
        EXPECT_FALSE(clocks.spread(0, 1));
        EXPECT_EQ(clocks.lines[2].offset.has_value(), stepped == 1);
      }
    }
  }
}

TEST(Clocks, DriftAndScatterAreNoStep) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    ClockJob job({"a", "b"});
    job.set_clock(1, kMs, static_cast<double>(random() % 400) - 200);
    const Ns scatter = kUs * static_cast<Ns>(1 + random() % 40);
    const int operations = 6 + static_cast<int>(random() % 60);
    for (int i = 0; i < operations; ++i) {
      const Ns at = 5 * i * kMs;
      const auto end = [&] {
        return at + 500 * kUs + static_cast<Ns>(random()) % scatter +
               (random() % 20 == 0 ? 200 * kUs : 0);
      };
      const Ns first = end();
      job.together(Op::all_reduce, {0, 1}, {{at, first}, {at, end()}});
    }
    const Clocks clocks = relate_clocks(job.done());
    EXPECT_EQ(clocks.infeasible, "") << seed;
    EXPECT_TRUE(clocks.lines[1].offset) << seed;
  }
}

// Most ends say 300 us, but then rank 0 would have entered after rank 1 had left, in the others:
// clipped into its bounds the estimate is neither.
TEST(Clocks, AnEstimateThatCausalityExcludesMakesNothingCertain) {
  ClockJob job({"a", "b"});
  for (int i = 0; i < 30; ++i) {
    const Ns at = i * kMs;
    const bool odd = i % 3 == 0;
    job.together(
        Op::all_reduce, {0, 1},
        {{at + (odd ? 390 : 0) * kUs, at + 400 * kUs}, {at, at + (odd ? 400 : 700) * kUs}});
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_NE(clocks.infeasible.find("off what causality allows"), std::string::npos)
      << clocks.infeasible;
  EXPECT_EQ(clocks.error(0, 1, 15 * kMs).upper, ClockError::kUnbounded) << "nothing is certain";
  EXPECT_EQ(clocks.error(0, 1, 15 * kMs).lower, -ClockError::kUnbounded);
  EXPECT_GE(clocks.spread(0, 1), 280 * kUs);
}

// Numbers say one thing, a group matched by likeness another: the numbers are kept.
TEST(Clocks, AMatchByLikenessIsSuspectedFirst) {
  ClockJob job({"a", "b", "c"});
  for (int i = 0; i < 10; ++i) {
    const Ns at = 100 * i;
    job.together(Op::all_reduce, {0, 1, 2}, {ms(at, at + 12), ms(at, at + 12), ms(at, at + 12)});
    job.together(Op::all_reduce, {0, 1}, {ms(at + 20, at + 22), ms(at + 60, at + 62)}).by =
        MatchedBy::alignment;
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.lines[1].offset, 0);
  EXPECT_EQ(clocks.lines[2].offset, 0);
  EXPECT_TRUE(clocks.lines[1].upper);
  ASSERT_EQ(clocks.doubted.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(clocks.doubted[i], i >= 10) << i;
  EXPECT_NE(clocks.infeasible.find("doubted"), std::string::npos);
}

TEST(Clocks, DriftIsFitted) {
  ClockJob job({"a", "b"});
  job.set_clock(1, 5 * kMs, 150);
  for (int i = 0; i < 2'000; ++i) {
    const Ns at = 5 * i;
    job.together(Op::all_reduce, {0, 1}, {ms(at, at + 2), ms(at, at + 2)});
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_GE(clocks.lines[1].spread, kUs);
  EXPECT_LT(clocks.lines[1].spread, 2 * kUs);
  EXPECT_NEAR(clocks.lines[1].drift_ppm, -150, 1);
  for (const Ns at : {Ns{0}, 3'000 * kMs, 10'000 * kMs})
    EXPECT_NEAR(static_cast<double>(clocks.common(1, job.own(1, at)) - at), 0, 100) << at;
}

// Over a short window scatter could be taken for drift.
TEST(Clocks, ScatterIsNoDrift) {
  ClockJob job({"a", "b"});
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    const Ns at = i * kMs;
    const Ns jitter = static_cast<Ns>(random() % 8'000);
    job.together(Op::all_reduce, {0, 1}, {{at, at + 50'000}, {at, at + 50'000 + jitter}});
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.lines[1].drift_ppm, 0);
  EXPECT_NEAR(static_cast<double>(clocks.lines[1].spread), 3'600 * 36 / 30, 600);
}

// Too many operations of too many clocks to use each in full; what is used bounds as well.
TEST(Clocks, LargeGroupsAreThinnedOut) {
  constexpr std::uint32_t kRanks = 150;
  ClockJob job(std::vector<std::string>(kRanks, ""));
  std::mt19937 random(3);
  const auto below = [&random](int most) { return static_cast<Ns>(random() % unsigned(most)); };
  std::vector<std::uint32_t> everybody;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    everybody.push_back(rank);
    job.set_clock(rank, below(10'000'000), static_cast<double>(below(300)) - 150);
  }
  for (int i = 0; i < 2'000; ++i) {
    const Ns at = kMs * i;
    std::vector<Interval> times;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      times.push_back({at + below(500'000), at + 540'000 + below(3'000)});
    job.together(Op::all_reduce, everybody, times);
  }
  const Clocks clocks = relate_clocks(job.done());
  EXPECT_EQ(clocks.infeasible, "");
  // Clocks drift by 0.4 us in each millisecond of the bin's length; someone is 0.5 ms late in one
  // operation of 150.
  EXPECT_LT(clocks.bin_length, 10 * kMs);
  for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
    const Ns truth = true_offset(job, clocks, rank);
    ASSERT_LE(clocks.lines[rank].lower.value(), truth);
    ASSERT_GE(clocks.lines[rank].upper.value(), truth);
    ASSERT_LT(*clocks.lines[rank].upper - *clocks.lines[rank].lower, 150 * kUs);
    ASSERT_LE(std::abs(clocks.lines[rank].offset.value() - truth), 4 * kUs);
  }
}

TEST(Clocks, AbsurdTimesDoNoHarm) {
  constexpr Ns kMost = std::numeric_limits<Ns>::max();
  constexpr Ns kLeast = std::numeric_limits<Ns>::min();
  ClockJob job({"a", "b", "c", "c"});
  Job done = job.done();
  for (const Ns start : {kLeast, kLeast / 2, Ns{-1}, Ns{0}, kMost / 3, kMost - 1}) {
    for (const Ns end : {kLeast + 1, Ns{5}, kMost / 2, kMost}) {
      if (end < start) continue;
      job.together(Op::all_reduce, {0, 1, 2, 3}, {{0, 1}, {0, 1}, {0, 1}, {0, 1}});
      job.last_comm(1).time = {start, end};
      job.last_comm(2).time = {end, end};
      job.last_comm(3).time = {start, start};
      for (const Ns base : {kLeast, Ns{0}, kMost}) {
        done = job.done();
        done.ranks[2].recording.clock_base = base;
        const Clocks clocks = relate_clocks(done);
        for (std::size_t row = 0; row < 4; ++row) {
          clocks.common(row, start);
          clocks.common(row, end);
          const ClockError error = clocks.error(row, 1, clocks.common(row, end));
          EXPECT_LE(error.lower, 0);
          EXPECT_GE(error.upper, 0);
        }
      }
    }
  }
}

// Random jobs with true clocks.
class RandomJob {
 public:
  explicit RandomJob(unsigned seed) : random_(seed), job_(pick_hosts()) {
    window_ = std::array<Ns, 4>{20, 500, 4'000, 30'000}[below(4)] * kMs;
    const Ns largest = std::array<Ns, 3>{100 * kUs, 20 * kMs, 2'000 * kMs}[below(3)];
    const bool drifts = below(4) != 0;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      const std::size_t same = first_of_host(rank);
      if (same == rank)
        clocks_.push_back(
            {between(-largest, largest), drifts ? static_cast<double>(between(-150, 150)) : 0.0});
      else
        clocks_.push_back(clocks_[same]);
      job_.set_clock(rank, clocks_[rank].first, clocks_[rank].second);
    }
    late_rank_ = below(hosts_.size());
    const std::size_t groups = 1 + below(3);
    for (std::size_t i = 0; i < groups; ++i) add_group();
  }

  std::size_t ranks() const { return hosts_.size(); }
  Ns window() const { return window_; }
  const ClockJob& job() const { return job_; }
  std::size_t below(std::size_t count) { return random_() % count; }
  Ns between(Ns least, Ns most) {
    return least + static_cast<Ns>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }

 private:
  std::vector<std::string> pick_hosts() {
    const std::size_t hosts = 2 + below(4);
    for (std::size_t host = 0; host < hosts; ++host) {
      const std::size_t ranks = 1 + below(3);
      const bool named = below(3) != 0;
      for (std::size_t i = 0; i < ranks; ++i)
        hosts_.push_back(named ? "h" + std::to_string(host) : "");
    }
    return hosts_;
  }
  std::size_t first_of_host(std::size_t rank) const {
    for (std::size_t i = 0; i < rank && !hosts_[rank].empty(); ++i) {
      if (hosts_[i] == hosts_[rank]) return i;
    }
    return rank;
  }

  void add_group() {
    std::vector<std::uint32_t> members;
    for (std::uint32_t rank = 0; rank < hosts_.size(); ++rank) {
      if (below(4) != 0) members.push_back(rank);
    }
    if (members.size() < 2) return;
    const std::size_t operations = 1 + below(60);
    Ns at = 0;
    for (std::size_t i = 0; i < operations; ++i) {
      at += between(1, 2 * window_ / static_cast<Ns>(operations));
      add_operation(members, at);
    }
  }

  void add_operation(const std::vector<std::uint32_t>& members, Ns at) {
    constexpr std::array kOps{Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast,
                              Op::reduce,     Op::barrier,    Op::all_to_all,     Op::all_reduce};
    const Op op = kOps[below(kOps.size())];
    const std::size_t root = below(members.size());
    const Ns longest_wait = std::array<Ns, 3>{5 * kUs, 300 * kUs, 5 * kMs}[below(3)];
    std::vector<Interval> times(members.size());
    Ns last = at;
    for (std::size_t i = 0; i < members.size(); ++i) {
      times[i].start = at + between(0, longest_wait);
      if (members[i] == late_rank_) times[i].start += longest_wait;
      last = std::max(last, times[i].start);
    }
    const Ns transfer = between(8 * kUs, 400 * kUs);
    for (std::size_t i = 0; i < members.size(); ++i) {
      Ns ready = last;
      if (op == Op::broadcast) ready = std::max(times[i].start, times[root].start);
      if (op == Op::reduce && i != root) ready = times[i].start;
      times[i].end = ready + transfer + between(0, 4 * kUs);
    }
    job_.together(op, members, times, static_cast<std::int32_t>(root));
  }

  std::mt19937_64 random_;
  std::vector<std::string> hosts_;
  ClockJob job_;
  std::vector<std::pair<Ns, double>> clocks_;
  std::size_t late_rank_ = 0;
  Ns window_ = 0;
};

TEST(Clocks, BoundsHoldTheTruth) {
  int bounded = 0;
  int estimated = 0;
  int within = 0;
  for (unsigned seed = 1; seed <= 1'500; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob random(seed);
    const ClockJob& job = random.job();
    const Clocks clocks = relate_clocks(job.done());
    ASSERT_EQ(clocks.infeasible, "");
    for (std::size_t row = 0; row < random.ranks(); ++row) {
      const ClockLine& line = clocks.lines[row];
      const Ns truth = true_offset(job, clocks, row);
      ASSERT_LE(line.lower.value_or(truth), truth) << row;
      ASSERT_GE(line.upper.value_or(truth), truth) << row;
      if (!line.offset) continue;
      ASSERT_EQ(line.spread > 0, line.method == ClockMethod::end_differences);
      ASSERT_TRUE(line.spread == 0 || line.spread >= kUs);
      ASSERT_LE(line.lower.value_or(*line.offset), *line.offset);
      ASSERT_GE(line.upper.value_or(*line.offset), *line.offset);
    }
    for (int i = 0; i < 40; ++i) {
      const Ns at = random.between(-random.window() / 4, random.window() * 3 / 2);
      const std::size_t a = random.below(random.ranks());
      const std::size_t b = random.below(random.ranks());
      const Ns of_a = clocks.common(a, job.own(a, at));
      const Ns of_b = clocks.common(b, job.own(b, at));
      const Ns wrong = of_b - of_a;  // true difference 0, minus the estimated one
      const ClockError error = clocks.error(a, b, of_a);
      ASSERT_LE(error.lower, wrong) << a << ' ' << b << ' ' << at;
      ASSERT_GE(error.upper, wrong) << a << ' ' << b << ' ' << at;
      if (clocks.domain[a] == clocks.domain[b]) continue;
      bounded += error.upper < ClockError::kUnbounded ? 1 : 0;
      const std::optional<Ns> spread = clocks.spread(a, b);
      if (!spread || at < 0 || at > random.window()) continue;
      ++estimated;
      within += std::abs(wrong) <= *spread ? 1 : 0;
    }
  }
  EXPECT_GT(bounded, 10'000);
  EXPECT_GT(estimated, 10'000);
  EXPECT_GT(within, estimated / 1'000 * 995) << within << " of " << estimated;
}

}  // namespace
}  // namespace commlens
