// Verdicts on hand-made dumps: who called what is said in each test, and so is who is to blame.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>

#include "diagnose/joint_calls.h"
#include "diagnose/remarks.h"
#include "dump_job.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

using Ranks = std::vector<std::int64_t>;

Ranks odd_ranks(const DiagnosisFinding& finding) {
  Ranks ranks;
  for (const DifferingRank& row : finding.differing) ranks.push_back(row.rank);
  return ranks;
}

// "missing_rank 72 (ep) #5 all_to_all missing=9,14 odd= certain", one a line.
std::string words(const std::vector<DiagnosisFinding>& findings) {
  std::string text;
  for (const DiagnosisFinding& finding : findings) {
    const std::string& description = finding.group_description;
    text += std::string(diagnosis_name(finding.kind)) + " " + finding.group +
            (description.empty() ? "" : " (" + description + ")") + " #" +
            std::to_string(finding.seq.value_or(-1)) + " " + finding.op +
            " missing=" + format_ranks(finding.missing_ranks) +
            " odd=" + format_ranks(odd_ranks(finding)) + " " +
            std::string(confidence_name(finding.confidence)) + "\n";
  }
  return text;
}

// Four calls that all completed.
DumpJob running_job(int ranks) {
  DumpJob job(ranks);
  for (std::int64_t seq = 1; seq <= 4; ++seq) job.all({.seq = seq, .state = "completed"});
  return job;
}

TEST(Diagnose, NothingIsWrongWhereAllCompleted) { EXPECT_EQ(words(running_job(4).findings()), ""); }

TEST(Diagnose, CallsInFlightEverywhereAreNoFault) {
  DumpJob job = running_job(4);
  job.all({.seq = 5, .state = "started"});
  EXPECT_EQ(words(job.findings()), "");
}

TEST(Diagnose, ARankThatDidNotCallIsMissing) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.op = "_all_gather_base", .seq = 5});
  job.give_up();
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "missing_rank 0 (default_pg) #5 all_gather missing=2 odd= certain\n");
  EXPECT_EQ(findings.front().consequences, (Ranks{0, 1, 3}));
  EXPECT_FALSE(findings.front().evidence.empty());
}

TEST(Diagnose, TheSameWithoutCounters) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5});
  job.without_counters();
  job.version("2.3");
  job.give_up();
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #5 all_reduce missing=2 odd= certain\n");
}

TEST(Diagnose, OfPendingCallsOnly) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5});
  job.only_pending();
  job.give_up();
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #5 all_reduce missing=2 odd= certain\n");
  job.without_counters();  // an empty list alone is weaker
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #5 all_reduce missing=2 odd= likely\n");
}

// Of two ranks either can be the one that is wrong; the one that did not come is named.
TEST(Diagnose, OfTwoRanksTheOneThatDidNotComeIsLikelyMissing) {
  DumpJob job = running_job(2);
  job.call(0, {.seq = 5});
  job.give_up();
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #5 all_reduce missing=1 odd= likely\n");
}

// Rank 9's peers completed what it holds: they are not the ones who are missing.
TEST(Diagnose, WhoCompletedAnOperationIsNotMissingFromIt) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 2}, {.seq = 5, .state = "completed"});
  job.call(3, {.seq = 5});
  job.ranks({0, 1, 2}, {.seq = 6});
  job.only_pending();
  job.give_up();
  const auto findings = job.findings();
  ASSERT_EQ(findings.size(), 1U) << words(findings);
  EXPECT_EQ(findings[0].missing_ranks, (Ranks{3}));
  EXPECT_EQ(findings[0].seq, 6);
}

// All have called the same; rank 3's GPU is two calls behind.
TEST(Diagnose, LastCompletedTellsWhoseDeviceStandsStill) {
  DumpJob job = running_job(4);
  for (const std::int64_t seq : {5, 6}) {
    job.ranks({0, 1, 2}, {.seq = seq, .state = "completed"});
    job.call(3, {.seq = seq});
  }
  job.all({.seq = 7});
  job.all({.seq = 8});
  EXPECT_EQ(words(job.findings()), "");  // an older file than the others' looks like that
  job.advance(600000);
  job.add_group("1", "side", {0});
  job.call(0, {.seq = 1, .group = "1"});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(words(job.findings()),
              "missing_rank 0 (default_pg) #7 all_reduce missing=3 odd= likely\n");
    job.only_pending();
  }
}

TEST(Diagnose, ARankThatCalledOneTooManyIsAhead) {
  DumpJob job = running_job(8);
  job.ranks({2, 3}, {.op = "_all_gather_base", .seq = 5});
  job.give_up();
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "rank_ahead 0 (default_pg) #5 all_gather missing= odd=2,3 certain\n");
  EXPECT_EQ(findings[0].differing[0].value, "5");
  EXPECT_EQ(findings[0].differing[0].expected, "4");
}

// The others are still in the call before.
TEST(Diagnose, ARankAheadOfOthersThatStillWait) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5, .retired = true});
  job.call(2, {.seq = 5, .state = "completed"});
  job.call(2, {.seq = 6});
  EXPECT_EQ(words(job.findings()),
            "rank_ahead 0 (default_pg) #6 all_reduce missing= odd=2 certain\n");
}

TEST(Diagnose, ARankBehindOthersThatHaveLeftItsCall) {
  DumpJob job = running_job(4);
  job.call(2, {.seq = 5, .retired = true});
  job.ranks({0, 1, 3}, {.seq = 5, .state = "completed"});
  job.ranks({0, 1, 3}, {.seq = 6});
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #6 all_reduce missing=2 odd= certain\n");
}

TEST(Diagnose, TwoGroupsThatHangAtOnceAreTwoFindings) {
  DumpJob job(6);
  job.add_group("1", "tp", {0, 1, 2});
  job.add_group("2", "tp", {3, 4, 5});
  job.all({.seq = 1, .state = "completed"});
  job.ranks({0, 1}, {.seq = 1, .group = "1"});
  job.ranks({3, 5}, {.seq = 1, .group = "2"});
  job.give_up();
  const auto findings = job.findings();
  EXPECT_EQ(words(findings),
            "missing_rank 1 (tp) #1 all_reduce missing=2 odd= certain\n"
            "missing_rank 2 (tp) #1 all_reduce missing=4 odd= certain\n");
  EXPECT_EQ(findings[0].consequences, (Ranks{0, 1}));
  EXPECT_EQ(findings[1].consequences, (Ranks{3, 5}));
}

// Rank 1 sleeps; rank 0 waits for it in tp, and so misses dp, in which rank 2 waits.
TEST(Diagnose, ARankThatIsHeldElsewhereIsNoRootCause) {
  DumpJob job(4);
  job.add_group("1", "tp", {0, 1});
  job.add_group("2", "dp", {0, 2});
  job.all({.seq = 1, .state = "completed"});
  job.call(2, {.seq = 1, .group = "2"});
  job.call(0, {.seq = 1, .group = "1"});
  job.give_up();
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "missing_rank 1 (tp) #1 all_reduce missing=1 odd= likely\n");
  EXPECT_EQ(findings[0].consequences, (Ranks{0, 2}));
}

// Seven ranks of the group are held elsewhere: the one that waits for them is not ahead.
TEST(Diagnose, WhoWaitsForRanksThatAreHeldIsNotAhead) {
  DumpJob job(5);
  job.add_group("1", "tp", {1, 2, 3, 4});
  job.all({.seq = 1, .state = "completed"});
  job.call(0, {.seq = 2});
  job.ranks({1, 2, 3}, {.seq = 1, .group = "1"});
  job.give_up();
  EXPECT_EQ(words(job.findings()), "missing_rank 1 (tp) #1 all_reduce missing=4 odd= certain\n");
}

TEST(Diagnose, RanksThatWaitForEachOtherAreACircle) {
  DumpJob job(2);
  job.add_group("1", "a", {0, 1});
  job.add_group("2", "b", {0, 1});
  job.call(0, {.seq = 1, .group = "1"});
  job.call(1, {.seq = 1, .group = "2"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "order_mismatch 1 (a) #1 all_reduce missing= odd= likely\n");
}

TEST(Diagnose, AnAbsentDumpIsNoProof) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 2}, {.seq = 5});
  job.lose(3);
  const auto findings = job.findings();
  EXPECT_EQ(words(findings),
            "missing_rank 0 (default_pg) #5 all_reduce missing=3 odd= undecidable\n");
  EXPECT_NE(findings[0].message.find("no usable dump"), std::string::npos);
}

TEST(Diagnose, OneDumpOfManyAccusesNobody) {
  DumpJob job = running_job(4);
  job.all({.seq = 5});
  for (const int rank : {1, 2, 3}) job.lose(rank);
  const auto findings = job.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::undecidable);
  EXPECT_TRUE(findings[0].missing_ranks.empty());
}

TEST(Diagnose, AnAbsentDumpHidesNoMissingRank) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5});
  job.lose(3);
  job.give_up();
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #5 all_reduce missing=2 odd= likely\n");
}

// ---- mismatches

TEST(Diagnose, AnotherOperation) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5});
  job.call(2, {.op = "_all_gather_base", .seq = 5, .out = "[[4096]]"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "op_mismatch 0 (default_pg) #5 all_reduce missing= odd=2 certain\n");
  EXPECT_EQ(findings[0].differing[0].field, "op");
  EXPECT_EQ(findings[0].differing[0].value, "all_gather");
  EXPECT_EQ(findings[0].differing[0].expected, "all_reduce");
}

TEST(Diagnose, OtherSizes) {
  DumpJob job = running_job(4);
  job.ranks({0, 2, 3}, {.seq = 5, .in = "[[2048, 8]]", .out = "[[2048, 8]]"});
  job.call(1, {.seq = 5, .in = "[[2040, 8]]", .out = "[[2040, 8]]"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "size_mismatch 0 (default_pg) #5 all_reduce missing= odd=1 certain\n");
  EXPECT_EQ(findings[0].differing[0].value, "[[2040, 8]]");
  EXPECT_EQ(findings[0].differing[0].expected, "[[2048, 8]]");
}

// What all completed hangs nowhere: an open question, and no reason not to look at what comes
// later.
TEST(Diagnose, OtherSizesThatCompletedHoldNobody) {
  for (const bool more : {false, true}) {
    DumpJob job = running_job(3);
    job.ranks({0, 2}, {.seq = 5, .state = "completed", .in = "[[8]]"});
    job.call(1, {.seq = 5, .state = "completed", .in = "[[9]]"});
    if (more) {
      job.ranks({0, 2}, {.seq = 6});
      job.call(1, {.op = "broadcast", .seq = 6});
    }
    EXPECT_EQ(words(job.findings()),
              more ? "op_mismatch 0 (default_pg) #6 all_reduce missing= odd=1 certain\n" : "");
    const auto remarks = find_remarks(job.witnesses(), more);
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_TRUE(remarks[0].starts_with(
        "at all_reduce 5 of group 0 (default_pg) ranks disagree (input_sizes): ranks 0,2: [[8]]; "
        "rank 1: [[9]], since"))
        << remarks[0];
  }
}

// 1024 elements each, as other views; 1023 are not.
TEST(Diagnose, ViewsOfOneSize) {
  for (const bool other : {false, true}) {
    for (const std::string state : {"scheduled", "completed"}) {
      DumpJob job = running_job(4);
      job.ranks({0, 1, 3}, {.seq = 5, .state = state, .out = "[[2, 512]]"});
      job.call(2, {.seq = 5,
                   .state = state,
                   .in = other ? "[[3, 341]]" : "[[2, 1, 512]]",
                   .out = other ? "[[3, 341]]" : "[[1024]]"});
      const bool hangs = other && state == "scheduled";
      EXPECT_EQ(words(job.findings()),
                hangs ? "size_mismatch 0 (default_pg) #5 all_reduce missing= odd=2 certain\n" : "");
      if (hangs) {
        EXPECT_EQ(job.findings()[0].differing[0].value, "[[3, 341]]");
      } else if (state == "completed") {
        EXPECT_EQ(find_remarks(job.witnesses(), false).empty(), !other);
      }
    }
  }
}

// Lists of tensors that are not alike give each rank its own size: 10 and 10 and 11 elements.
TEST(Diagnose, UnevenListsOfTensors) {
  for (const bool even : {false, true}) {
    const std::string list = even ? "[[10], [10], [10]]" : "[[10], [10], [11]]";
    DumpJob job = running_job(3);
    for (const int rank : {0, 1, 2}) {
      const std::string own = rank == 2 ? "[[11]]" : "[[10]]";
      job.call(rank, {.op = "all_gather", .seq = 5, .in = own, .out = list});
      job.call(rank, {.op = "reduce_scatter", .seq = 6, .in = list, .out = own});
    }
    EXPECT_EQ(words(job.findings()),
              even ? "size_mismatch 0 (default_pg) #5 all_gather missing= odd=2 certain\n" : "");
  }
}

TEST(Diagnose, SizesThatMayDiffer) {
  DumpJob job = running_job(3);
  for (const int rank : {0, 1, 2}) {
    const std::string own = "[[" + std::to_string(100 + rank) + "]]";
    job.call(rank, {.op = "all_to_all", .seq = 5, .state = "completed", .in = own, .out = own});
    job.call(rank, {.op = "gather",
                    .seq = 6,
                    .state = "completed",
                    .out = rank == 0 ? "[[1024], [1024], [1024]]" : "[]"});
    job.call(rank, {.op = "scatter", .seq = 7, .state = "completed", .in = rank == 0 ? own : "[]"});
  }
  EXPECT_EQ(words(job.findings()), "");
}

// What all send is what all receive: here 30 elements are sent and 29 received.
TEST(Diagnose, SumsOfAnAllToAll) {
  for (const int lost : {0, 1}) {
    DumpJob job = running_job(3);
    for (const int rank : {0, 1, 2})
      job.call(rank, {.op = "all_to_all",
                      .seq = 5,
                      .in = "[[10]]",
                      .out = "[[" + std::to_string(9 + rank - (rank == 2 ? lost : 0)) + "]]"});
    EXPECT_EQ(
        words(job.findings()),
        lost == 0 ? "" : "size_mismatch 0 (default_pg) #5 all_to_all missing= odd= undecidable\n");
  }
}

TEST(Diagnose, OtherTypes) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 2}, {.seq = 5, .dtype = "BFloat16"});
  job.call(3, {.seq = 5, .dtype = "Float"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings),
            "dtype_mismatch 0 (default_pg) #5 all_reduce missing= odd=3 certain\n");
  EXPECT_EQ(findings[0].differing[0].value, "Float");
}

// Several calls of one launch share its number, and are compared as one.
TEST(Diagnose, CoalescedCalls) {
  for (const bool odd : {false, true}) {
    DumpJob job = running_job(3);
    for (const int rank : {0, 1, 2}) {
      job.call(rank, {.op = "all_gather", .seq = 5, .in = "[[8]]", .out = "[[24]]"});
      job.call(rank, {.op = "all_gather", .seq = 5, .in = odd && rank == 1 ? "[[7]]" : "[[9]]"});
      job.call(rank, {.op = "coalesced", .seq = 5, .in = "[]", .out = "[]"});
    }
    const auto findings = job.findings();
    ASSERT_EQ(findings.size(), odd ? 1U : 0U) << words(findings);
    if (odd) {
      EXPECT_EQ(findings[0].kind, DiagnosisKind::size_mismatch);
      EXPECT_EQ(findings[0].differing[0].value, "[[8]] + [[7]]");
    }
  }
}

TEST(Diagnose, ATieIsSaidAndNobodyIsOdd) {
  DumpJob job = running_job(4);
  job.ranks({0, 1}, {.seq = 5, .in = "[[8]]", .out = "[[8]]"});
  job.ranks({2, 3}, {.seq = 5, .in = "[[16]]", .out = "[[16]]"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings),
            "size_mismatch 0 (default_pg) #5 all_reduce missing= odd= undecidable\n");
  EXPECT_NE(findings[0].message.find("majority"), std::string::npos);
}

// Of eight members three were seen: the others could all be on the other side.
TEST(Diagnose, AMajorityOfFewIsNone) {
  DumpJob job = running_job(8);
  for (const int rank : {3, 4, 5, 6, 7}) job.lose(rank);
  job.ranks({0, 1}, {.seq = 5});
  job.call(2, {.op = "broadcast", .seq = 5});
  const auto findings = job.findings();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, DiagnosisKind::op_mismatch);
  EXPECT_EQ(findings[0].confidence, Confidence::undecidable);
}

// What follows a mismatch in its group, and ranks that it holds elsewhere, are no findings.
TEST(Diagnose, WhatFollowsFromAMismatch) {
  DumpJob job = running_job(4);
  job.add_group("1", "dp", {1, 2});
  job.ranks({0, 1, 3}, {.seq = 5});
  job.call(2, {.op = "broadcast", .seq = 5});
  job.ranks({0, 3}, {.seq = 6});
  job.call(1, {.seq = 1, .group = "1"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "op_mismatch 0 (default_pg) #5 all_reduce missing= odd=2 certain\n");
}

TEST(Diagnose, TheSameCallsInAnotherOrder) {
  DumpJob job = running_job(3);
  job.ranks({0, 2}, {.seq = 5, .in = "[[8]]"});
  job.ranks({0, 2}, {.op = "broadcast", .seq = 6});
  job.call(1, {.op = "broadcast", .seq = 5});
  job.call(1, {.seq = 6, .in = "[[8]]"});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings),
            "order_mismatch 0 (default_pg) #5 all_reduce missing= odd=1 certain\n");
}

TEST(Diagnose, TheSameCallsInAnotherOrderByTwoThreads) {
  DumpJob job = running_job(3);
  job.ranks({0, 2}, {.seq = 5, .thread = "11"});
  job.ranks({0, 2}, {.op = "broadcast", .seq = 6, .thread = "12"});
  job.call(1, {.op = "broadcast", .seq = 5, .thread = "12"});
  job.call(1, {.seq = 6, .thread = "11"});
  EXPECT_EQ(words(job.findings()),
            "concurrent_use 0 (default_pg) #5 all_reduce missing= odd=1 certain\n");
}

// ---- states, timeouts, sends and receives

TEST(Diagnose, ADeviceThatIsBehind) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5, .state = "started"});
  job.call(2, {.seq = 5, .state = "scheduled", .retired = true});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "state_mismatch 0 (default_pg) #5 all_reduce missing= odd=2 likely\n");
  EXPECT_EQ(findings[0].differing[0].expected, "started");
}

// Dumps of a running job are written one after the other: without a sign of a hang nobody is named.
TEST(Diagnose, DumpsOfARunningJobShowRanksAtDifferentPoints) {
  for (const std::string behind : {"scheduled", "started"}) {
    DumpJob job = running_job(4);
    job.ranks({0, 1, 3}, {.seq = 5, .state = "completed"});
    job.call(2, {.seq = 5, .state = behind});
    EXPECT_EQ(words(job.findings()), "");
    const auto remarks = find_remarks(job.witnesses(), false);
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_NE(remarks[0].find("in flight on rank 2, and completed on ranks 0,1,3"),
              std::string::npos)
        << remarks[0];
  }
  DumpJob two = running_job(2);
  two.call(0, {.seq = 5, .state = "started"});
  two.call(1, {.seq = 5, .state = "scheduled"});
  EXPECT_EQ(words(two.findings()), "");
  DumpJob later = running_job(4);
  later.ranks({0, 1, 3}, {.seq = 5, .state = "completed"});
  later.call(2, {.seq = 5});
  later.all({.seq = 6});
  EXPECT_EQ(words(later.findings()), "");
}

// Nor does one that is a call ahead of a file that was written a moment earlier.
TEST(Diagnose, AFileThatIsOneCallOlder) {
  for (const bool retired : {false, true}) {
    DumpJob job = running_job(4);
    job.ranks({0, 1, 3}, {.seq = 5, .state = "completed"});
    job.call(2, {.seq = 5, .retired = retired});
    job.ranks({0, 1, 3}, {.seq = 6});
    const std::string found = words(job.findings());
    EXPECT_EQ(found.empty(), !retired) << found;
    job.only_pending();
    EXPECT_EQ(words(job.findings()).empty(), !retired);
  }
}

// Nor one that is many calls ahead, nor a job of which each file was written later than the last.
TEST(Diagnose, AFileThatIsManyCallsOlder) {
  for (const bool hangs : {false, true}) {
    DumpJob job = running_job(4);
    for (int rank = 0; rank < 4; ++rank) {
      const std::int64_t last = rank == 0 ? 5 : 11;
      for (std::int64_t seq = 5; seq <= last; ++seq)
        job.call(rank, {.seq = seq, .state = seq < last ? "completed" : "scheduled"});
    }
    DumpJob stairs = running_job(4);
    for (int rank = 0; rank < 4; ++rank) {
      for (std::int64_t seq = 5; seq <= 8 + 3 * rank; ++seq)
        stairs.call(rank, {.seq = seq, .state = seq < 8 + 3 * rank ? "completed" : "scheduled"});
    }
    if (hangs) {
      job.give_up();
      stairs.give_up();
    }
    EXPECT_EQ(words(job.findings()),
              hangs ? "missing_rank 0 (default_pg) #11 all_reduce missing=0 odd= certain\n" : "");
    EXPECT_EQ(words(stairs.findings()).empty(), !hangs);
    if (hangs) continue;
    for (const DumpJob& one : {job, stairs}) {
      const auto remarks = find_remarks(one.witnesses(), false);
      ASSERT_EQ(remarks.size(), 1U);
      EXPECT_NE(remarks[0].find("in flight on rank 0, and completed on ranks 1-3"),
                std::string::npos)
          << remarks[0];
    }
  }
}

// That others wait for a rank is seen; that it never comes is not, until something proves a hang.
TEST(Diagnose, WhereNothingProvesAHangNothingIsCertain) {
  for (const bool hangs : {false, true}) {
    DumpJob behind = running_job(4);
    behind.ranks({0, 1, 3}, {.seq = 5});
    DumpJob ahead = running_job(4);
    ahead.call(3, {.seq = 5});
    for (DumpJob* job : {&behind, &ahead}) {
      if (hangs) job->give_up();
      for (int round = 0; round < 2; ++round) {
        const auto findings = job->findings();
        EXPECT_EQ(words(findings),
                  std::string(job == &behind
                                  ? "missing_rank 0 (default_pg) #5 all_reduce missing=2 odd= "
                                  : "rank_ahead 0 (default_pg) #5 all_reduce missing= odd=3 ") +
                      (hangs            ? "certain\n"
                       : job == &behind ? "likely\n"
                                        : "undecidable\n"));
        EXPECT_EQ(findings[0].message.find("nothing in these dumps proves") == std::string::npos,
                  hangs);
        EXPECT_EQ(unproven_hangs(job->witnesses(), findings).empty(), hangs);
        job->only_pending();
      }
    }
  }
}

// Tools that look into hangs ask for pending calls alone. A rank that is several calls behind in
// such dumps is named, since it is more than a file that is a moment older.
TEST(Diagnose, ADeviceThatIsSeveralCallsBehindInPendingCallsAlone) {
  for (const std::int64_t calls : {1, 2}) {
    DumpJob job = running_job(4);
    for (std::int64_t seq = 5; seq < 5 + calls; ++seq) {
      job.ranks({0, 1, 3}, {.seq = seq, .state = "completed"});
      job.call(2, {.seq = seq});
    }
    job.ranks({0, 1, 3}, {.seq = 5 + calls});
    EXPECT_EQ(words(job.findings()), "");
    job.only_pending();
    EXPECT_EQ(
        words(job.findings()),
        calls == 1 ? "" : "missing_rank 0 (default_pg) #7 all_reduce missing=2 odd= likely\n");
  }
}

// Others who are held by a call in flight are an open question, too.
TEST(Diagnose, WhoIsInACallInFlightIsNotAccused) {
  DumpJob job(3);
  job.add_group("1", "tp", {0, 1});
  job.all({.seq = 1, .state = "completed"});
  job.ranks({0, 1}, {.seq = 1, .group = "1"});
  job.call(2, {.seq = 2});
  EXPECT_EQ(words(job.findings()), "");
  const auto remarks = find_remarks(job.witnesses(), false);
  ASSERT_EQ(remarks.size(), 2U);
  EXPECT_NE(remarks[0].find("in flight on rank 2, and not called by ranks 0,1,"), std::string::npos)
      << remarks[0];
  job.give_up();
  EXPECT_NE(words(job.findings()), "");
}

// A timeout is judged by each rank's own file: others are only written later.
TEST(Diagnose, AFileThatIsWrittenMinutesLaterTimesNothingOut) {
  for (const bool own : {false, true}) {
    DumpJob job = running_job(4);
    job.add_group("1", "side", {0});
    job.call(0, {.seq = 5, .timeout_ms = 180000});
    job.ranks({1, 2, 3}, {.seq = 5, .state = "completed"});
    job.advance(200000);
    job.ranks({1, 2, 3}, {.seq = 6, .timeout_ms = 180000});
    if (own) job.call(0, {.seq = 1, .state = "completed", .group = "1"});
    EXPECT_EQ(words(job.findings()),
              own ? "missing_rank 0 (default_pg) #6 all_reduce missing=0 odd= certain\n" : "");
  }
}

TEST(Diagnose, StatesOfACallInFlightAreSaid) {
  for (const std::string state : {"scheduled", "started"}) {
    DumpJob job = running_job(4);
    job.call(0, {.seq = 5, .state = state});
    job.ranks({1, 2, 3}, {.seq = 5, .state = "started"});
    EXPECT_EQ(words(job.findings()), "");
    const auto remarks = find_remarks(job.witnesses(), false);
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_EQ(remarks[0].find("on ranks 0-3 (rank 0: scheduled, ranks 1-3: started) when") !=
                  std::string::npos,
              state == "scheduled")
        << remarks[0];
  }
}

// The same difference, and the rank behind went on for a minute by its own file.
TEST(Diagnose, ADeviceThatIsBehindForAMinute) {
  for (const bool waits : {false, true}) {
    DumpJob job = running_job(4);
    job.add_group("1", "side", {2});
    job.add_group("2", "other", {0});
    job.ranks({0, 1, 3}, {.seq = 5, .state = "completed"});
    job.call(2, {.seq = 5, .state = "started"});
    job.advance(60000);
    // Another rank's file is only later by that; no sign of a hang.
    job.call(waits ? 2 : 0, {.seq = 1, .state = "completed", .group = waits ? "1" : "2"});
    EXPECT_EQ(words(job.findings()),
              waits ? "state_mismatch 0 (default_pg) #5 all_reduce missing= odd=2 likely\n" : "");
  }
}

TEST(Diagnose, ACallThatWasGivenUpTimedOut) {
  DumpJob job = running_job(2);
  job.all({.seq = 5, .retired = true});
  EXPECT_EQ(words(job.findings()),
            "timeout 0 (default_pg) #5 all_reduce missing= odd= undecidable\n");
}

TEST(Diagnose, ACallOlderThanItsTimeoutTimedOut) {
  DumpJob job = running_job(2);
  job.add_group("1", "side", {0, 1});
  job.all({.seq = 5, .timeout_ms = 1000});
  job.advance(5000);
  job.all({.seq = 1, .state = "completed", .group = "1"});
  EXPECT_EQ(words(job.findings()),
            "timeout 0 (default_pg) #5 all_reduce missing= odd= undecidable\n");
}

// A receive can be posted long before its turn.
TEST(Diagnose, AReceiveWithoutASender) {
  for (const bool hangs : {false, true}) {
    DumpJob job = running_job(2);
    job.call(0, {.op = "recv 0<-1", .seq = 1, .p2p = true});
    if (hangs) job.give_up();
    const auto findings = job.findings();
    EXPECT_EQ(words(findings),
              hangs ? "missing_rank 0 (default_pg) #1 recv missing=1 odd= likely\n" : "");
    if (hangs) {
      EXPECT_TRUE(findings[0].message.starts_with(
          "rank 1 has not sent to rank 0, which waits in recv 1 of group 0 (default_pg)"))
          << findings[0].message;
      continue;
    }
    const auto remarks = find_remarks(job.witnesses(), false);
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_NE(remarks[0].find("rank 1 has not sent to rank 0 yet"), std::string::npos)
        << remarks[0];
  }
}

// ... and be older than its timeout, while its rank goes on.
TEST(Diagnose, AReceiveThatIsPostedEarly) {
  for (const std::string later : {"completed", "scheduled"}) {
    DumpJob job = running_job(2);
    job.call(0, {.op = "recv 0<-1", .seq = 1, .p2p = true, .timeout_ms = 1000});
    job.add_group("1", "side", {0});
    job.advance(5000);
    job.call(0, {.seq = 1, .state = later, .group = "1"});
    EXPECT_EQ(words(job.findings()).empty(), later == "completed") << words(job.findings());
  }
}

TEST(Diagnose, SendsAndReceivesOfBothSidesAreNoFault) {
  DumpJob job = running_job(2);
  job.call(0, {.op = "recv 0<-1", .seq = 1, .p2p = true});
  job.call(1, {.op = "send 1->0", .seq = 1, .p2p = true});
  EXPECT_EQ(words(job.findings()), "");
}

TEST(Diagnose, ASendThatBringsLessThanItsReceiveTakes) {
  for (const bool odd : {false, true}) {
    DumpJob job = running_job(2);
    job.call(0, {.op = "send 0->1", .seq = 1, .state = "completed", .p2p = true});
    job.call(1, {.op = "recv 1<-0", .seq = 1, .state = "completed", .p2p = true});
    job.call(0, {.op = "send 0->1", .seq = 2, .in = odd ? "[[1023]]" : "[[1024]]", .p2p = true});
    job.call(1, {.op = "recv 1<-0", .seq = 2, .out = "[[32, 32]]", .p2p = true});
    EXPECT_EQ(words(job.findings()),
              odd ? "size_mismatch 0 (default_pg) #2 send missing= odd= undecidable\n" : "");
  }
}

TEST(Diagnose, SendsInACircle) {
  DumpJob job = running_job(3);
  job.call(0, {.op = "send 0->1", .seq = 1, .p2p = true});
  job.call(1, {.op = "send 1->2", .seq = 1, .p2p = true});
  job.call(2, {.op = "send 2->0", .seq = 1, .p2p = true});
  job.give_up();
  EXPECT_EQ(words(job.findings()), "order_mismatch 0 (default_pg) #1 send missing= odd= likely\n");
}

// Ranks 2 and 3 wait for ranks 0 and 1, which stand in a call of their own group that all have
// made: that one is the cause, and nobody is accused. It may have been given up or not.
TEST(Diagnose, WhoIsHeldInAnotherGroupIsNotMissing) {
  for (const bool late : {false, true}) {
    DumpJob job = running_job(4);
    job.add_group("1", "dp", {0, 1});
    job.ranks({2, 3}, {.seq = 5, .retired = true});
    job.ranks({0, 1}, {.seq = 1, .state = "started", .group = "1", .retired = late});
    const auto findings = job.findings();
    EXPECT_EQ(words(findings), "timeout 1 (dp) #1 all_reduce missing= odd= undecidable\n");
    EXPECT_EQ(findings[0].consequences, (Ranks{0, 1, 2, 3}));
    EXPECT_EQ(findings[0].message.find("longer than its timeout") != std::string::npos, late);
  }
}

// The operations of three groups are given up; 1 and 3 stand in that of "b", which was called last
// by the clock, and which nothing older holds.
TEST(Diagnose, OfOperationsGivenUpTheOneThatHoldsTheOthersStandsFirst) {
  DumpJob job = running_job(4);
  job.add_group("a", "tp", {0, 1});
  job.add_group("b", "dp", {1, 3});
  job.add_group("c", "tp", {2, 3});
  for (const int rank : {0, 2}) job.call(rank, {.seq = 1, .group = rank == 0 ? "a" : "c"});
  job.ranks({1, 3}, {.seq = 1, .group = "b"});
  for (const int rank : {1, 3}) job.call(rank, {.seq = 1, .group = rank == 1 ? "a" : "c"});
  job.ranks({0, 2}, {.seq = 5});
  job.give_up();
  EXPECT_EQ(words(job.findings()), "timeout b (dp) #1 all_reduce missing= odd= undecidable\n");
}

// Of another group's operation rank 1's dump does not tell whether it was completed or never
// called; rank 1 is in a call that all have made.
TEST(Diagnose, ADumpThatCannotTellIsNoAbsentOne) {
  DumpJob job = running_job(4);
  job.add_group("tp", "tp", {0, 1});
  job.ranks({0, 1}, {.seq = 1, .state = "completed", .group = "tp"});
  job.all({.seq = 5, .state = "started"});
  job.call(0, {.seq = 2, .group = "tp"});
  job.only_pending();
  job.without_counters();
  EXPECT_EQ(words(job.findings()), "");
}

// Rank 3 has begun b and waits with a, the others the other way round.
TEST(Diagnose, OppositeOrderOnTwoGroups) {
  for (const int size : {2, 4}) {
    for (const bool timed : {true, false}) {
      DumpJob job = running_job(size);
      std::vector<int> all;
      for (int rank = 0; rank < size; ++rank) all.push_back(rank);
      job.add_group("a", "", all);
      job.add_group("b", "", all);
      const std::string begun = timed ? "started" : "scheduled";
      for (const int rank : all) {
        const bool odd = rank == size - 1;
        job.call(rank, {.seq = 1, .state = begun, .group = odd ? "b" : "a"});
        job.call(rank, {.seq = 1, .group = odd ? "a" : "b"});
      }
      EXPECT_EQ(words(job.findings()), "");
      job.give_up();
      EXPECT_EQ(words(job.findings()),
                !timed      ? "timeout a #1 all_reduce missing= odd= undecidable\n"
                : size == 4 ? "order_mismatch a #1 all_reduce missing= odd=3 likely\n"
                            : "order_mismatch a #1 all_reduce missing= odd= undecidable\n");
    }
  }
}

TEST(Diagnose, APairThatWasGivenUpTimedOut) {
  DumpJob job = running_job(2);
  job.call(0, {.op = "send 0->1", .seq = 1, .state = "started", .p2p = true});
  job.call(1, {.op = "recv 1<-0", .seq = 1, .state = "started", .p2p = true});
  EXPECT_EQ(words(job.findings()), "");
  DumpJob later = job;
  job.give_up();
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "timeout 0 (default_pg) #1 send missing= odd= undecidable\n");
  // Timing is on.
  EXPECT_EQ(findings[0].advice.find("TIMING"), std::string::npos);
  later.advance(600000);
  later.all({.seq = 5});
  EXPECT_EQ(words(later.findings()), "timeout 0 (default_pg) #1 send missing= odd= undecidable\n");
}

TEST(Diagnose, ASendOfAnotherTypeThanItsReceiveTakes) {
  DumpJob job = running_job(2);
  job.call(0, {.op = "send 0->1", .seq = 1, .dtype = "Half", .p2p = true});
  job.call(1, {.op = "recv 1<-0", .seq = 1, .p2p = true});
  job.give_up();
  EXPECT_EQ(words(job.findings()),
            "dtype_mismatch 0 (default_pg) #1 send missing= odd= undecidable\n");
}

// A pair that both receive is no matter of an order of groups.
TEST(Diagnose, TwoThatBothReceive) {
  DumpJob job = running_job(2);
  job.call(0, {.op = "recv 0<-1", .seq = 1, .p2p = true});
  job.call(1, {.op = "recv 1<-0", .seq = 1, .p2p = true});
  job.give_up();
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "order_mismatch 0 (default_pg) #1 recv missing= odd= likely\n");
  EXPECT_NE(findings[0].advice.find("batch_isend_irecv"), std::string::npos);
}

// "nothing here tells who is behind it" is not said below a finding that tells.
TEST(Diagnose, WhatFollowsDoesNotSayThatNothingIsKnown) {
  DumpJob job = running_job(4);
  job.ranks({0, 1, 3}, {.seq = 5, .state = "started", .retired = true});
  job.call(2, {.seq = 5, .state = "scheduled", .retired = true});
  const auto findings = job.findings();
  EXPECT_EQ(words(findings), "state_mismatch 0 (default_pg) #5 all_reduce missing= odd=2 likely\n");
  ASSERT_TRUE(findings[0].evidence.back().starts_with("follows from it: ranks 0-3 wait"));
  EXPECT_EQ(findings[0].evidence.back().find("nothing here tells"), std::string::npos);
}

TEST(Diagnose, AReceiveFromARankWithoutADumpIsUndecidable) {
  DumpJob job = running_job(2);
  job.call(0, {.op = "recv 0<-1", .seq = 1, .p2p = true});
  job.lose(1);
  EXPECT_EQ(words(job.findings()),
            "missing_rank 0 (default_pg) #1 recv missing= odd= undecidable\n");
}

// ---- properties

// A rank that hangs in a job of 8: the order of the files and of the entries says nothing.
TEST(Diagnose, OrderOfFilesAndEntriesDoesNotMatter) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    DumpJob job(8);
    job.add_group("1", "tp", {0, 1, 2, 3});
    job.add_group("2", "tp", {4, 5, 6, 7});
    const int culprit = static_cast<int>(random() % 8);
    for (std::int64_t seq = 1; seq < 6; ++seq) {
      job.all({.seq = seq, .state = "completed"});
      job.ranks({0, 1, 2, 3}, {.seq = seq, .state = "completed", .group = "1"});
      job.ranks({4, 5, 6, 7}, {.seq = seq, .state = "completed", .group = "2"});
    }
    for (int rank = 0; rank < 8; ++rank) {
      if (rank != culprit) job.call(rank, {.seq = 6, .group = rank < 4 ? "1" : "2"});
      const bool held = rank / 4 == culprit / 4;
      if (!held) job.call(rank, {.seq = 6});
    }
    std::vector<Witness> witnesses = job.witnesses();
    const std::string expected = words(find_all(witnesses));
    EXPECT_NE(expected.find("missing=" + std::to_string(culprit) + " "), std::string::npos)
        << expected;
    EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 1) << expected;
    std::shuffle(witnesses.begin(), witnesses.end(), random);
    EXPECT_EQ(words(find_all(witnesses)), expected);
    job.shuffle();
    EXPECT_EQ(words(job.findings()), expected);
  }
}

// Calls of a group of 800 ranks take no longer to join than those of pairs: once they did for the
// time of sorting 800 numbers each. Processor time, the best of three.
double seconds_to_join(int ranks, bool pairs) {
  std::vector<Witness> witnesses;
  for (int rank = 0; rank < ranks; ++rank) {
    Witness& witness = witnesses.emplace_back();
    witness.rank = rank;
    witness.path = "_dump_" + std::to_string(rank);
    witness.lists_pending = true;
    std::vector<int> members{rank / 2 * 2, rank / 2 * 2 + 1};
    if (!pairs) {
      members.resize(static_cast<std::size_t>(ranks));
      std::iota(members.rbegin(), members.rend(), 0);
    }
    const auto size = static_cast<std::int64_t>(members.size());
    witness.groups.push_back(
        {.name = "0", .description = {}, .members = std::move(members), .size = size});
    for (std::int64_t number = 0; number < 50; ++number) {
      WitnessCall& call = witness.calls.emplace_back();
      call.rank = rank;
      call.number = number;
      call.record = number;
      call.state = CallState::completed;
    }
  }
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    EXPECT_EQ(join_calls(witnesses).size(), 1U);
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

TEST(Diagnose, TheTimeToJoinCallsIsNotThatOfTheirGroupsSize) {
  const double pairs = seconds_to_join(800, true);
  const double all = seconds_to_join(800, false);
  EXPECT_LT(all, 5 * pairs + 0.01) << pairs << " s for pairs, " << all << " s for all";
}

// ---- the corpus

std::filesystem::path corpus() {
  const char* named = std::getenv("COMMLENS_CORPUS");
  return named != nullptr ? named : COMMLENS_DEFAULT_CORPUS;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect_known_answer(const std::string& folder, std::int64_t seq) {
  std::vector<Witness> witnesses;
  for (int rank = 0; rank < 16; ++rank) {
    const auto path = corpus() / "flight-recorder" / folder / ("_dump_" + std::to_string(rank));
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
    witnesses.push_back(read_dump(path.string(), file_text(path)));
    EXPECT_EQ(witnesses.back().rank, rank);
    EXPECT_FALSE(witnesses.back().notes.any());
  }
  const auto findings = find_all(witnesses);
  EXPECT_EQ(words(findings), "missing_rank 72 (EXPERT_MODEL_PARALLEL_GROUP) #" +
                                 std::to_string(seq) + " all_to_all missing=9,14 odd= likely\n");
  EXPECT_EQ(findings[0].consequences.size(), 14U);
}

TEST(DiagnoseCorpus, GpuErrors) { expect_known_answer("nvrx-gpu_error_2nd", 44791); }
TEST(DiagnoseCorpus, InterpreterLock) { expect_known_answer("nvrx-lock_gil_1st", 45265); }

}  // namespace
}  // namespace commlens
