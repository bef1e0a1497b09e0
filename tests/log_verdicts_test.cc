// What is said about whole logs: own ones, the same in any mixture, and the known answers of public
// ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "diagnose/log_duplicates.h"
#include "log_job.h"

namespace commlens {
namespace {

std::string said(std::string_view text) { return verdict_words(judge_text(text)); }

std::string call(int rank, std::string_view op, int op_count, int count, int datatype = 7,
                 int thread = 0) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const int pid = 100 + rank;
  return "node-a:" + std::to_string(pid) + ":" + std::to_string(thread == 0 ? pid : thread) + " [" +
         std::to_string(rank) + "] NCCL INFO " + std::string(op) + ": opCount " +
         kDigits[static_cast<std::size_t>(op_count)] + " sendbuff 0x7e recvbuff 0x7e count " +
         std::to_string(count) + " datatype " + std::to_string(datatype) + " op 0 root 0 comm 0x5" +
         std::to_string(rank) + " [nranks=4] stream 0x1\n";
}

std::string init(int rank, int nranks = 4, std::string_view id = "ab") {
  const std::string device = std::to_string(rank);
  return "node-a:" + std::to_string(100 + rank) + ":" + std::to_string(200 + rank) + " [" + device +
         "] NCCL INFO comm 0x5" + device + " rank " + device + " nranks " + std::to_string(nranks) +
         " cudaDev " + device + " nvmlDev " + device + " busId " + device + "000 commId 0x" +
         std::string(id) + " - Init COMPLETE\n";
}

std::string inits() { return init(0) + init(1) + init(2) + init(3); }

// One rank's watchdog line of the newest form.
std::string position(int rank, int seq, int enqueued, int completed,
                     std::string_view group = "PG ID 0 PG GUID 0(default_pg)") {
  return "[rank" + std::to_string(rank) + "]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:1834] [" +
         std::string(group) + " Rank " + std::to_string(rank) +
         "] Timeout at NCCL work: " + std::to_string(seq) +
         ", last enqueued NCCL work: " + std::to_string(enqueued) +
         ", last completed NCCL work: " + std::to_string(completed) + ".\n";
}

std::string caught(int rank, int seq, std::string_view op, int in, int out) {
  return "[rank" + std::to_string(rank) + "]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:607] [Rank " +
         std::to_string(rank) +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + std::to_string(seq) +
         ", OpType=" + std::string(op) + ", NumelIn=" + std::to_string(in) +
         ", NumelOut=" + std::to_string(out) +
         ", Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n";
}

TEST(LogVerdicts, HealthyLogsSayNothing) {
  EXPECT_EQ(said(inits()), "none");
  EXPECT_EQ(said(inits() + call(0, "AllReduce", 0, 8) + call(1, "AllReduce", 0, 8)), "none");
  EXPECT_EQ(said("node-a:1:1 [0] x.cc:1 NCCL WARN Failed to open libibverbs.so[.1]\n"), "none");
  EXPECT_EQ(said("node-a:1:1 [0] x.cc:1 NCCL WARN Something new\n"), "none");  // nothing came of it
}

// Calls that are traced (NCCL_DEBUG_SUBSYS=CALL): "AllReduce 8" is one of 8 elements.
std::string traced(int rank, const std::vector<std::pair<std::string, int>>& calls,
                   bool from_start = true) {
  const std::string head =
      "node-a:" + std::to_string(100 + rank) + ":" + std::to_string(100 + rank) + " NCCL CALL nccl";
  const std::string comm = "0x5" + std::to_string(rank);
  std::string text;
  if (from_start)
    text += head + "CommInitRank(" + comm + ", 4, 0xab, " + std::to_string(rank) + ", " +
            std::to_string(rank) + ")\n";
  for (const auto& [op, count] : calls)
    text += head + op + "(7e,7f," + std::to_string(count) + ",7,0,0," + comm + ",0x1)\n";
  return text;
}

// Each text a file of its own.
std::string said_of_files(const std::vector<std::string>& texts) {
  std::vector<Witness> witnesses;
  for (std::size_t i = 0; i < texts.size(); ++i)
    witnesses.push_back(read_log_text(texts[i], "nccl." + std::to_string(i) + ".log"));
  return verdict_words(judge(witnesses));
}

using Traced = std::vector<std::pair<std::string, int>>;

TEST(LogVerdicts, TracedCallsAreComparedInTheirOrder) {
  const Traced usual = {{"AllReduce", 8}, {"AllGather", 4}, {"AllReduce", 16}};
  const auto job = [&usual](const Traced& odd, bool from_start = true) {
    std::vector<std::string> texts;
    for (int rank = 0; rank < 4; ++rank)
      texts.push_back(traced(rank, rank == 2 ? odd : usual, from_start));
    return texts;
  };
  const auto joined = [](const std::vector<std::string>& texts) {
    return texts[0] + texts[1] + texts[2] + texts[3];
  };
  EXPECT_EQ(said_of_files(job(usual)), "none");
  EXPECT_EQ(said(joined(job(usual))), "none");
  const Traced larger = {{"AllReduce", 8}, {"AllGather", 5}, {"AllReduce", 16}};
  EXPECT_EQ(said_of_files(job(larger)), "size_mismatch odd=2 likely");
  EXPECT_EQ(said(joined(job(larger))), "size_mismatch odd=2 likely");
  const Traced other = {{"AllReduce", 8}, {"Broadcast", 4}, {"AllReduce", 16}};
  EXPECT_EQ(said(joined(job(other))), "op_mismatch odd=2 likely");
  const Traced swapped = {{"AllGather", 4}, {"AllReduce", 8}, {"AllReduce", 16}};
  EXPECT_EQ(said_of_files(job(swapped)), "order_mismatch odd=2 likely");
  const Traced one_more = {{"AllReduce", 8}, {"AllReduce", 8}, {"AllGather", 4}, {"AllReduce", 16}};
  // Or a line stands there twice.
  EXPECT_EQ(said_of_files(job(one_more)), "op_mismatch undecidable");
  EXPECT_EQ(said(joined(job(one_more))), "op_mismatch undecidable");
  // It left a call out, or its line is lost.
  const Traced one_less = {{"AllReduce", 8}, {"AllReduce", 16}};
  EXPECT_EQ(said_of_files(job(one_less)), "op_mismatch undecidable");
  EXPECT_EQ(said(joined(job(one_less))), "op_mismatch undecidable");
  // An excerpt: nothing tells which call is which.
  EXPECT_EQ(said_of_files(job(larger, false)), "none");
}

// Calls in another order, which come together again: no line is lost.
TEST(LogVerdicts, TracedCallsInAnotherOrder) {
  const Traced usual = {{"AllReduce", 8}, {"AllGather", 4}, {"AllReduce", 16}, {"Broadcast", 2}};
  const Traced odd = {{"AllGather", 4}, {"AllReduce", 8}, {"AllReduce", 16}, {"Broadcast", 2}};
  EXPECT_EQ(said(traced(0, usual) + traced(1, usual) + traced(2, odd) + traced(3, usual)),
            "order_mismatch odd=2 likely");
}

// Three ranks lack one line each, so that all seem to have made the same calls.
TEST(LogVerdicts, LostLinesAreNoOtherOrder) {
  std::string text = inits();
  for (int rank = 0; rank < 3; ++rank)
    text += call(rank, "AllReduce", 0, 8) + call(rank, "AllReduce", 1, 16);
  text += call(3, "AllReduce", 1, 16) + call(3, "AllReduce", 2, 8);
  EXPECT_EQ(said(text), "none");
}

// Two lines that are lost, and one that is written twice.
TEST(LogVerdicts, LostAndRepeatedTracedLinesAccuseNobody) {
  const Traced usual = {
      {"AllReduce", 8}, {"AllGather", 4}, {"AllReduce", 8}, {"Broadcast", 2}, {"AllReduce", 16}};
  const auto said_of = [&usual](const Traced& odd) {
    return said(traced(0, usual) + traced(1, odd) + traced(2, usual) + traced(3, usual));
  };
  EXPECT_EQ(said_of({{"AllReduce", 8}, {"Broadcast", 2}, {"AllReduce", 16}}),
            "op_mismatch undecidable");
  EXPECT_EQ(said_of({{"AllReduce", 8}, {"AllReduce", 8}, {"AllGather", 4}, {"AllReduce", 8}}),
            "op_mismatch undecidable");
}

// Programs repeat themselves: behind a lost line, and at the ends of cut logs, calls are alike by
// chance.
TEST(LogVerdicts, LostLinesOfALoopAccuseNobody) {
  Traced usual;
  for (int step = 0; step < 30; ++step)
    usual.insert(usual.end(), {{"AllGather", 4}, {"AllReduce", 8}, {"ReduceScatter", 2}});
  for (std::size_t at = 1; at < usual.size(); at += 7) {
    Traced lost = usual;
    lost.erase(lost.begin() + static_cast<std::ptrdiff_t>(at));
    Traced twice = usual;
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(at), usual[at]);
    Traced both = twice;
    both.erase(both.begin() + static_cast<std::ptrdiff_t>(both.size() - at / 2 - 1));
    for (const Traced& odd : {lost, twice, both}) {
      for (const bool shared : {true, false}) {
        std::vector<std::string> texts;
        for (int rank = 0; rank < 4; ++rank)
          texts.push_back(traced(rank, rank == 2 ? odd : usual, true));
        const std::string all = texts[0] + texts[1] + texts[2] + texts[3];
        const std::string words = shared ? said(all) : said_of_files(texts);
        EXPECT_EQ(words.find("odd="), std::string::npos) << words << " at " << at;
      }
    }
  }
}

// Who is wrong cannot be told: then nobody's side is taken by what it holds up.
TEST(LogVerdicts, WhereNobodyIsOddAllAreHeld) {
  const Traced usual = {{"AllReduce", 8}, {"AllGather", 4}, {"AllReduce", 16}};
  const Traced fewer = {{"AllReduce", 8}, {"AllReduce", 16}};
  const auto findings =
      judge_text(traced(0, usual) + traced(1, fewer) + traced(2, usual) + traced(3, usual));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].consequences, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

// Machines number their GPUs alike.
TEST(LogVerdicts, DuplicateGpusOfTwoHostsAreTwo) {
  const auto line = [](const std::string& host, int rank, int other) {
    return host + ":" + std::to_string(10 + rank) +
           ":1 [0] init.cc:497 NCCL WARN Duplicate GPU detected : rank " + std::to_string(rank) +
           " and rank " + std::to_string(other) + " both on CUDA device 1000\n";
  };
  const auto findings =
      judge_text(line("hA", 0, 1) + line("hA", 1, 0) + line("hB", 2, 3) + line("hB", 3, 2));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].message,
            "ranks 0,1 share a GPU (1000 of hA); ranks 2,3 share a GPU (1000 of hB)");
  EXPECT_EQ(findings[0].differing.size(), 4U);
}

// A line that was lost in the file that all write to is in no other's calls.
TEST(LogVerdicts, ALostTracedLineAccusesNobody) {
  const Traced usual = {{"AllReduce", 8}, {"AllReduce", 8}, {"AllGather", 4},
                        {"AllReduce", 8}, {"Broadcast", 2}, {"AllReduce", 8}};
  for (std::size_t lost = 0; lost < usual.size(); ++lost) {
    Traced fewer = usual;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(lost));
    const std::string text =
        traced(0, usual) + traced(1, fewer) + traced(2, usual) + traced(3, usual);
    const auto findings = judge_text(text);
    for (const DiagnosisFinding& finding : findings) {
      EXPECT_TRUE(finding.differing.empty()) << lost;
      EXPECT_EQ(finding.confidence, Confidence::undecidable) << lost;
    }
  }
}

// Traced and counted calls of different ranks: numbers of one side are none of the other's.
TEST(LogVerdicts, TracedCallsBesideCountedOnes) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 3; ++rank)
    texts.push_back(init(rank) + call(rank, "AllReduce", 3, 8) + call(rank, "AllReduce", 4, 8));
  texts.push_back(traced(3, {{"AllReduce", 8}, {"AllReduce", 8}}));
  EXPECT_EQ(said_of_files(texts), "none");
  texts.back() = traced(3, {{"AllReduce", 8}, {"AllReduce", 9}});
  EXPECT_EQ(said_of_files(texts), "size_mismatch odd=3 likely");
}

// No opCount shows whether a line is lost: who made one call less is not told by counting.
TEST(LogVerdicts, OneTracedCallLessNamesNobody) {
  const Traced four(4, {"AllReduce", 8});
  const Traced three(3, {"AllReduce", 8});
  EXPECT_EQ(said(traced(0, four) + traced(1, four) + traced(2, four) + traced(3, three) +
                 "node-a:103:103 [3] NCCL INFO NCCL_DEBUG set by environment to INFO\n" +
                 caught(0, 4, "ALLREDUCE", 8, 8) + caught(1, 4, "ALLREDUCE", 8, 8)),
            "timeout undecidable");
}

// Only in files of their own is it sure that the k-th send meets the k-th receive.
TEST(LogVerdicts, TracedSendsAndReceives) {
  const auto pair_call = [](int rank, std::string_view op, int peer, int count) {
    return traced(rank, {}) + "node-a:" + std::to_string(100 + rank) + ":1 NCCL CALL nccl" +
           std::string(op) + "(0,7f," + std::to_string(count) + ",7,0," + std::to_string(peer) +
           ",0x5" + std::to_string(rank) + ",0x1)\n";
  };
  const std::string sends = pair_call(0, "Send", 1, 8);
  EXPECT_EQ(said_of_files({sends, pair_call(1, "Recv", 0, 8)}), "none");
  EXPECT_EQ(said_of_files({sends, pair_call(1, "Recv", 0, 4)}), "size_mismatch undecidable");
  EXPECT_EQ(said(sends + pair_call(1, "Recv", 0, 4)), "none");
}

// The watchdogs say only that ranks wait; rank 3 made one call less than they did.
TEST(LogVerdicts, WhoMadeOneCallLessAndWritesOnIsMissing) {
  std::string calls = inits();
  for (int rank = 0; rank < 4; ++rank) calls += call(rank, "AllReduce", 0, 8);
  for (int rank = 0; rank < 3; ++rank) calls += call(rank, "AllReduce", 1, 8);
  const std::string later = "node-a:103:103 [3] NCCL INFO NCCL_DEBUG set by environment to INFO\n";
  const std::string timeouts = caught(0, 2, "ALLREDUCE", 8, 8) + caught(1, 2, "ALLREDUCE", 8, 8);
  EXPECT_EQ(said(calls + later + timeouts), "missing_rank missing=3 likely");
  // It may have written no more because its lines were cut off; or a line was lost; or no job
  // hangs.
  EXPECT_EQ(said(calls + timeouts), "timeout undecidable");
  EXPECT_EQ(
      said(calls + "node-a:103:103 [3] NCCL INFO AllReduce: opCount 1 sendb\n" + later + timeouts),
      "timeout undecidable");
  EXPECT_EQ(said(calls + later), "none");
  // Rank 3 has made a call of another communicator that rank 2 has not: it may wait there.
  const auto other = [](int rank, const std::string& message) {
    return "node-a:" + std::to_string(100 + rank) + ":1 [" + std::to_string(rank) + "] NCCL INFO " +
           message + "\n";
  };
  std::string held = calls;
  for (const int rank : {2, 3})
    held += other(rank, "comm 0x9" + std::to_string(rank) + " rank " + std::to_string(rank - 2) +
                            " nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xcd - Init COMPLETE");
  held +=
      other(3,
            "AllReduce: opCount 0 sendbuff 0x7e recvbuff 0x7e count 8 datatype 7 op 0 root 0 comm "
            "0x93 [nranks=2] stream 0x1");
  EXPECT_EQ(said(held + later + timeouts), "timeout undecidable");
  // It may wait in a receive, of that communicator or of another.
  EXPECT_EQ(said(calls + call(3, "Recv", 1, 8) + later + timeouts), "timeout undecidable");
  // A line in the middle was lost: the last call is the one that the others made last.
  std::string gap = inits();
  for (int rank = 0; rank < 4; ++rank) gap += call(rank, "AllReduce", 0, 8);
  for (int rank = 0; rank < 3; ++rank) gap += call(rank, "AllReduce", 1, 8);
  for (int rank = 0; rank < 4; ++rank) gap += call(rank, "AllReduce", 2, 8);
  EXPECT_EQ(said(gap + later + timeouts), "timeout undecidable");
}

TEST(LogVerdicts, AnotherOperation) {
  const auto findings =
      judge_text(inits() + call(0, "AllReduce", 0, 8) + call(1, "AllReduce", 0, 8) +
                 call(2, "AllGather", 0, 8) + call(3, "AllReduce", 0, 8));
  EXPECT_EQ(verdict_words(findings), "op_mismatch odd=2 certain");
  EXPECT_EQ(findings[0].op, "all_reduce");
  EXPECT_EQ(findings[0].differing[0].value, "all_gather");
}

TEST(LogVerdicts, AnotherSizeOrType) {
  const std::string most = inits() + call(0, "AllReduce", 0, 8) + call(1, "AllReduce", 0, 8) +
                           call(3, "AllReduce", 0, 8);
  EXPECT_EQ(said(most + call(2, "AllReduce", 0, 9)), "size_mismatch odd=2 certain");
  EXPECT_EQ(said(most + call(2, "AllReduce", 0, 8, 6)), "dtype_mismatch odd=2 certain");
}

TEST(LogVerdicts, BytesAreBytesWithoutAReduction) {
  EXPECT_EQ(said(inits() + call(0, "AllGather", 0, 8, 7) + call(1, "AllGather", 0, 32, 0)), "none");
}

TEST(LogVerdicts, TwoAgainstTwoIsUndecided) {
  EXPECT_EQ(said(inits() + call(0, "AllReduce", 0, 8) + call(1, "AllReduce", 0, 8) +
                 call(2, "AllGather", 0, 8) + call(3, "AllGather", 0, 8)),
            "op_mismatch undecidable");
}

TEST(LogVerdicts, WithoutInitialisationByOpCount) {
  // An excerpt: rank 2's first call is not the others'.
  const std::string others = call(0, "AllReduce", 3, 8) + call(0, "Reduce", 4, 8) +
                             call(1, "AllReduce", 3, 8) + call(1, "Reduce", 4, 8);
  EXPECT_EQ(said(others + call(2, "Reduce", 4, 8)), "none");
  EXPECT_EQ(said(others + call(2, "AllGather", 4, 8)), "op_mismatch odd=2 likely");
  // Two of one size that disagree can be two communicators.
  EXPECT_EQ(said(call(0, "AllReduce", 3, 8) + call(1, "AllGather", 3, 8)), "none");
  // Calls of one group share a count: nothing to compare by.
  EXPECT_EQ(said(others + call(2, "AllGather", 3, 8) + call(2, "AllGather", 3, 9)), "none");
}

// opCount tells that a line of rank 1 is not in the log: nothing behind it is rank 1's fault.
TEST(LogVerdicts, ALineThatIsLostIsNoOtherCall) {
  const auto job = [](const std::string& of_rank_1, std::string_view last_op = "AllReduce") {
    std::string text = inits();
    for (const int rank : {0, 2, 3}) {
      text += call(rank, "AllReduce", 0, 8) + call(rank, "AllGather", 1, 8) +
              call(rank, "AllReduce", 2, 9);
      text += call(rank, rank == 2 ? last_op : "AllReduce", 3, 10);
    }
    return text + of_rank_1;
  };
  const std::string first = call(1, "AllReduce", 0, 8);
  const std::string second = call(1, "AllGather", 1, 8);
  const std::string rest = call(1, "AllReduce", 2, 9) + call(1, "AllReduce", 3, 10);
  EXPECT_EQ(said(job(first + second + rest)), "none");
  EXPECT_EQ(said(job(first + rest)), "none");
  EXPECT_EQ(said(job(second + rest)), "none");
  // Another call in its place is one, and behind a lost line nobody is named.
  EXPECT_EQ(said(job(first + call(1, "AllReduce", 1, 8) + rest)), "op_mismatch odd=1 certain");
  EXPECT_EQ(said(job(first + second + rest, "Reduce")), "op_mismatch odd=2 certain");
  EXPECT_EQ(said(job(first + rest, "Reduce")), "op_mismatch undecidable");
  // A call too many is counted like any other.
  EXPECT_EQ(said(job(first + call(1, "Reduce", 1, 8) + call(1, "AllGather", 2, 8))),
            "op_mismatch odd=1 certain");
  // Its head is lost, or the line was cut before "opCount".
  for (const std::size_t from : {8, 27, 43}) {
    EXPECT_EQ(said(job(first + second.substr(from) + rest)), "none") << second.substr(from);
  }
  // Sends and receives take numbers, too, and are not the same on all ranks.
  std::string pairs = inits();
  for (int rank = 0; rank < 4; ++rank) {
    const bool sends = rank < 2;
    pairs += call(rank, "AllReduce", 0, 8);
    if (sends) pairs += call(rank, rank == 0 ? "Send" : "Recv", 1, 4);
    pairs += call(rank, rank == 2 ? "AllGather" : "AllReduce", sends ? 2 : 1, 8);
  }
  EXPECT_EQ(said(pairs), "op_mismatch odd=2 certain");
}

// One of the lines of a pair is lost: those behind it are no pair.
TEST(LogVerdicts, AReceiveThatIsLostShiftsThePairs) {
  const auto p2p_call = [](int rank, std::string_view op, int op_count, int peer, int count) {
    std::string text = call(rank, op, op_count, count);
    return text.replace(text.find("root 0"), 6, "root " + std::to_string(peer));
  };
  std::string sends = inits();
  for (const int number : {0, 1, 2}) sends += p2p_call(0, "Send", number, 1, 10 + number);
  EXPECT_EQ(said(sends + p2p_call(1, "Recv", 0, 0, 10) + p2p_call(1, "Recv", 2, 0, 12)), "none");
  EXPECT_EQ(said(sends + p2p_call(1, "Recv", 1, 0, 11) + p2p_call(1, "Recv", 2, 0, 12)), "none");
  EXPECT_EQ(said(sends + p2p_call(1, "Recv", 0, 0, 10) + p2p_call(1, "Recv", 1, 0, 12)),
            "size_mismatch undecidable");
}

// RCCL: of an all-to-all-v each rank passes sizes of its own.
TEST(LogVerdicts, AnAllToAllVIsUneven) {
  for (const std::string op : {"AllToAllv", "AllToAll"}) {
    std::string text = inits();
    for (int rank = 0; rank < 4; ++rank) text += call(rank, op, 0, rank == 2 ? 11 : 10);
    EXPECT_EQ(said(text), op == "AllToAllv" ? "none" : "size_mismatch odd=2 certain");
  }
  std::string text = inits();
  for (int rank = 0; rank < 4; ++rank)
    text += call(rank, rank == 2 ? "AllReduce" : "AllToAllv", 0, 10 + rank);
  EXPECT_EQ(said(text), "op_mismatch odd=2 certain");
}

TEST(LogVerdicts, AnotherOrder) {
  std::string text = inits();
  for (const int rank : {0, 1, 3})
    text += call(rank, "AllReduce", 0, 8) + call(rank, "AllGather", 1, 8);
  text += call(2, "AllGather", 0, 8) + call(2, "AllReduce", 1, 8);
  EXPECT_EQ(said(text), "order_mismatch odd=2 certain");
}

TEST(LogVerdicts, TwoThreadsOfOneCommunicator) {
  std::string text = inits();
  for (const int rank : {0, 1, 3})
    text += call(rank, "AllReduce", 0, 8, 7, 901) + call(rank, "AllGather", 1, 8, 7, 902);
  text += call(2, "AllGather", 0, 8, 7, 902) + call(2, "AllReduce", 1, 8, 7, 901);
  EXPECT_EQ(said(text), "concurrent_use odd=2 certain");
}

TEST(LogVerdicts, ARankThatNeverCalled) {
  const auto findings = judge_text(
      position(0, 9, 12, 8) + position(1, 9, 9, 8) + position(3, 9, 9, 8) +
      "[rank2]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 2] "
      "PG status: last enqueued work: 8, last started work: 8, last completed work: 8\n");
  EXPECT_EQ(verdict_words(findings), "missing_rank missing=2 certain");
  EXPECT_EQ(findings[0].seq, 9);
  EXPECT_EQ(findings[0].consequences, (std::vector<std::int64_t>{0, 1, 3}));
}

TEST(LogVerdicts, ARankThatIsStuckEarlier) {
  EXPECT_EQ(said(position(0, 9, 9, 8) + position(1, 9, 9, 8) + position(2, 7, 9, 6)),
            "missing_rank missing=2 likely");
}

TEST(LogVerdicts, ARankThatCalledOneTooMany) {
  const auto rest = [](int rank) {
    return "[rank" + std::to_string(rank) +
           "]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank " +
           std::to_string(rank) +
           "] Received a dump signal due to a collective timeout from  rank 2 and we. Last "
           "enqueued NCCL "
           "work: 8, last completed NCCL work: 8.This\n";
  };
  EXPECT_EQ(said(rest(0) + rest(1) + rest(3) + position(2, 9, 9, 8)), "rank_ahead odd=2 certain");
}

// PyTorch 2.6 and newer: the same facts in other words.
TEST(LogVerdicts, TheWatchdogsNewerWords) {
  const auto newer = [](int rank, int seq, int enqueued, int completed, std::string_view group) {
    return "[rank" + std::to_string(rank) + "]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:2299] [" +
           std::string(group) + " Rank " + std::to_string(rank) +
           "]  failure detected by watchdog at work sequence id: " + std::to_string(seq) +
           " PG status: last enqueued work: " + std::to_string(enqueued) +
           ", last completed work: " + std::to_string(completed) + "\n";
  };
  const auto all = [&](auto line) {
    std::string text;
    for (const int rank : {0, 1, 2})
      text +=
          caught(rank, 9, "ALLREDUCE", 4, 4) + line(rank, 9, 9, 8, "PG ID 0 PG GUID 0(default_pg)");
    return text + line(3, 8, 8, 8, "PG ID 0 PG GUID 0(default_pg)");
  };
  const auto older = [](int rank, int seq, int enqueued, int completed, std::string_view group) {
    return position(rank, seq, enqueued, completed, group);
  };
  EXPECT_EQ(said(all(newer)), said(all(older)));
  // Ranks 0 and 1 wait in one group, ranks 2 and 3 in another, each at its number 9.
  const auto groups = [&](auto line) {
    return caught(0, 9, "ALLREDUCE", 4, 4) + line(0, 9, 9, 8, "PG ID 1 PG GUID 11") +
           caught(1, 9, "ALLREDUCE", 4, 4) + line(1, 9, 9, 8, "PG ID 1 PG GUID 11") +
           caught(2, 9, "BROADCAST", 8, 8) + line(2, 9, 9, 8, "PG ID 1 PG GUID 12") +
           caught(3, 9, "BROADCAST", 8, 8) + line(3, 9, 9, 8, "PG ID 1 PG GUID 12");
  };
  EXPECT_EQ(said(groups(newer)), said(groups(older)));
  EXPECT_EQ(said(groups(newer)).find("op_mismatch"), std::string::npos) << said(groups(newer));
}

TEST(LogVerdicts, GroupsOfOneNumberAreNotOneGroup) {
  // "PG 5" is a counter of each process's own; these are two groups of two ranks.
  EXPECT_EQ(said("[rank4]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:1] [PG 5 Rank 0] Timeout at NCCL "
                 "work: 9, last enqueued NCCL "
                 "work: 9, last completed NCCL work: 8.\n"
                 "[rank7]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:1] [PG 5 Rank 1] Timeout at NCCL "
                 "work: 3, last enqueued NCCL "
                 "work: 3, last completed NCCL work: 2.\n"),
            "timeout undecidable");
}

TEST(LogVerdicts, WaitingInDifferentOperations) {
  EXPECT_EQ(said(caught(0, 9, "ALLREDUCE", 8, 8) + position(0, 9, 9, 8) +
                 caught(1, 9, "ALLREDUCE", 8, 8) + position(1, 9, 9, 8) +
                 caught(2, 9, "BROADCAST", 8, 8) + position(2, 9, 9, 8)),
            "op_mismatch odd=2 certain");
  EXPECT_EQ(said(caught(0, 9, "ALLREDUCE", 8, 8) + position(0, 9, 9, 8) +
                 caught(1, 9, "ALLREDUCE", 8, 8) + position(1, 9, 9, 8) +
                 caught(2, 9, "ALLREDUCE", 7, 7) + position(2, 9, 9, 8)),
            "size_mismatch odd=2 certain");
  // An uneven all-to-all is none.
  EXPECT_EQ(said(caught(0, 9, "ALLTOALL_BASE", 8, 9) + position(0, 9, 9, 8) +
                 caught(1, 9, "ALLTOALL_BASE", 9, 8) + position(1, 9, 9, 8)),
            "timeout undecidable");
}

// Each rank of a pipeline makes other sends and receives, and numbers them for itself.
TEST(LogVerdicts, SendsAndReceivesHaveNoNumberInCommon) {
  const auto waits = [](int rank, int seq, std::string_view op, std::string_view group) {
    return caught(rank, seq, op, 8, 8) + position(rank, seq, seq, seq - 1, group);
  };
  for (const std::string_view group :
       {"PG ID 0 PG GUID 0(default_pg)", "PG ID 5 PG GUID 23(PIPELINE_MODEL_PARALLEL_GROUP)"}) {
    EXPECT_EQ(said(waits(0, 41, "RECV", group) + waits(1, 41, "SEND", group) +
                   waits(2, 41, "RECV", group) + waits(3, 41, "RECV", group)),
              "timeout undecidable");
    for (const std::string_view op : {"COALESCED", "RECV", "SEND", "RECVANYSOURCE"}) {
      EXPECT_EQ(said(waits(0, 21, op, group) + waits(1, 41, op, group) + waits(2, 41, op, group)),
                "timeout undecidable");
    }
    // One that waits in a collective of such a group has made sends as well.
    EXPECT_EQ(said(waits(0, 9, "ALLREDUCE", group) + waits(1, 9, "ALLREDUCE", group) +
                   waits(2, 9, "RECV", group)),
              "timeout undecidable");
  }
  // Lines that do not name the operation: the group's name tells.
  const std::string_view pipeline = "PG ID 5 PG GUID 23(PIPELINE_MODEL_PARALLEL_GROUP)";
  EXPECT_EQ(said(position(0, 41, 41, 40, pipeline) + position(1, 41, 41, 40, pipeline) +
                 position(2, 21, 21, 20, pipeline)),
            "timeout undecidable");
  EXPECT_EQ(
      said("Saving checkpoint to /x\n" + waits(1, 9, "RECV", "PG ID 0 PG GUID 0(default_pg)")),
      "timeout undecidable");
  const auto findings = judge_text(waits(0, 7, "SEND", pipeline) + waits(1, 7, "RECV", pipeline));
  EXPECT_NE(findings[0].message.find("rank 0 waits in SEND 7"), std::string::npos);
  EXPECT_NE(findings[0].message.find("rank 1 waits in RECV 7"), std::string::npos);
  // A line that does not name the operation counts as the others under its number.
  const auto named =
      judge_text(position(0, 9, 9, 8) + caught(1, 9, "ALLREDUCE", 8, 8) + position(1, 9, 9, 8));
  EXPECT_NE(named[0].message.find("ranks 0,1 wait in ALLREDUCE 9"), std::string::npos)
      << named[0].message;
  // Collectives of any group are compared as ever.
  EXPECT_EQ(said(waits(0, 9, "ALLREDUCE", "PG ID 5 PG GUID 23(TENSOR)") +
                 waits(1, 9, "ALLREDUCE", "PG ID 5 PG GUID 23(TENSOR)") +
                 waits(2, 9, "BROADCAST", "PG ID 5 PG GUID 23(TENSOR)")),
            "op_mismatch odd=2 certain");
}

TEST(LogVerdicts, BeforeGroupsWereNamed) {
  const auto old = [](int rank, int seq, std::string_view op) {
    return "[E ProcessGroupNCCL.cpp:475] [Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: "
           "WorkNCCL(SeqNum=" +
           std::to_string(seq) + ", OpType=" + std::string(op) +
           ", Timeout(ms)=1800000) ran for 1800116 "
           "milliseconds before timing out.\n";
  };
  EXPECT_EQ(said(old(0, 9, "ALLREDUCE") + old(1, 9, "ALLREDUCE") + old(2, 9, "BROADCAST")),
            "op_mismatch odd=2 likely");
  EXPECT_EQ(said(old(0, 9, "ALLREDUCE") + old(1, 9, "ALLREDUCE")), "timeout undecidable");
  EXPECT_EQ(said(old(0, 9, "ALLREDUCE") + old(0, 9, "BROADCAST")),
            "timeout undecidable");  // two groups
}

TEST(LogVerdicts, OnlyAConsequence) {
  EXPECT_EQ(said("[rank0]:[E1129 11:56:57.6 ProcessGroupNCCL.cpp:1] [Rank 0] Some NCCL operations "
                 "have failed or timed out. x\n"),
            "timeout undecidable");
}

TEST(LogVerdicts, DesyncReport) {
  const auto findings = judge_text(
      "\t - [0] Timeout at collective: ALLREDUCE, #39\n"
      "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
      "\t   - [0, 1] joined but didn't finish collective #39 (count from 1)\n"
      "\t   - [2] finished collective #38, but didn't join collective #39 (count from 1)\n");
  EXPECT_EQ(verdict_words(findings), "missing_rank missing=2 certain");
  EXPECT_EQ(findings[0].seq, 39);
  EXPECT_EQ(findings[0].op, "all_reduce");
  EXPECT_EQ(said("\t - To our best knowledge, ranks [3, 5] are the lagging ranks that caused this "
                 "timeout. They never joined any "
                 "collectives\n"),
            "missing_rank missing=3,5 certain");
}

TEST(LogVerdicts, BarriersAndHorovodNameRanks) {
  EXPECT_EQ(said("node-a:1:1 [0] NCCL INFO x\nRuntimeError: [Rank 0]: Ranks 1, 2 failed to pass "
                 "monitoredBarrier in 5000 ms\n"),
            "missing_rank missing=1,2 certain");
  EXPECT_EQ(said("Stalled ops:\nallreduce.x [missing ranks: 1, 3]\n"),
            "missing_rank missing=1,3 likely");
  EXPECT_EQ(said("[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:2: [allreduce.x, allreduce.y ...]\n"),
            "missing_rank missing=2 likely");
}

TEST(LogVerdicts, ACheckpointKeepsTheOthersWaiting) {
  const std::string waits = position(1, 9, 9, 8) + position(2, 9, 9, 8);
  EXPECT_EQ(said("Saving checkpoint to /x\n" + waits), "missing_rank missing=0 likely");
  EXPECT_EQ(said("Saving checkpoint to /x\nCheckpoint saved\n" + waits), "timeout undecidable");
  EXPECT_EQ(said("Saving checkpoint to /x\n" + position(0, 9, 9, 8) + waits),
            "timeout undecidable");
}

TEST(LogVerdicts, TheFirstErrorCountsNotItsEchoes) {
  const std::string gone =
      "node-a:1:2 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer "
      "node-b<511>\n"
      "node-a:1:2 [0] NCCL INFO misc/socket.cc:749 -> 6\n";
  EXPECT_EQ(said(gone), "transport_error undecidable");
  EXPECT_EQ(
      said(gone + "node-b:3:4 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"),
      "out_of_memory likely");
  EXPECT_EQ(said(gone + "node-b:3:4 [3] x.cc:1 NCCL WARN Cuda failure 'an illegal memory access "
                        "was encountered'\n"),
            "crash likely");
}

std::string destroyed(int rank) {
  const std::string number = std::to_string(rank);
  return "node-a:" + std::to_string(100 + rank) + ":1 [" + number + "] NCCL INFO comm 0x5" +
         number + " rank " + number + " nranks 4 cudaDev " + number + " busId " + number +
         "000 - Destroy COMPLETE\n";
}

// All ranks called on and ended in good order: the warning is not what ended the job.
TEST(LogVerdicts, AWarningThatAllSurvivedIsNoFinding) {
  std::string calls;
  std::string ends;
  for (int rank = 0; rank < 4; ++rank) {
    calls += call(rank, "AllReduce", 0, 8);
    ends += destroyed(rank);
  }
  for (const std::string_view words :
       {"misc/socket.cc:600 NCCL WARN Connect to 10.0.0.1<1234> failed : Connection refused",
        "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
        "transport/p2p.cc:5 NCCL WARN Cuda failure 'peer access is already enabled'",
        "transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<44> with "
        "status=12 opcode=0 len=0 vendor err 129 (Recv)"}) {
    const std::string warning = "node-a:100:2 [0] " + std::string(words) + "\n";
    EXPECT_EQ(said(inits() + warning + calls + ends + "training finished\n"), "none") << words;
    EXPECT_EQ(said(warning + inits() + calls + ends), "none") << words;
    // One did not end, one did not call on, or nothing came behind it.
    EXPECT_NE(said(inits() + warning + calls + ends.substr(0, ends.find("node-a:103"))), "none");
    EXPECT_NE(said(inits() + warning + calls.substr(0, calls.find("node-a:103")) + ends), "none");
    EXPECT_NE(said(inits() + calls + warning + ends), "none");
    EXPECT_NE(said(inits() + warning), "none");
    // How a process ended is no warning.
    EXPECT_EQ(said(inits() + calls + ends + "node-a:103:103: Segmentation fault\n").substr(0, 4),
              said(inits() + warning + calls + ends + "node-a:103:103: Segmentation fault\n")
                  .substr(0, 4));
  }
}

TEST(LogVerdicts, LinesOfSeveralRunsAreNotCompared) {
  const auto later = [](std::string text, std::string_view time) {
    for (std::size_t at = text.find("11:56:57.6"); at != std::string::npos;
         at = text.find("11:56:57.6"))
      text.replace(at, 10, time);
    return text;
  };
  const std::string first = position(0, 10, 10, 9) + position(1, 10, 10, 9);
  const std::string second = position(2, 5, 5, 4) + position(3, 5, 5, 4);
  EXPECT_EQ(said(first + later(second, "11:56:59.1")), "missing_rank missing=2,3 certain");
  EXPECT_EQ(said(first + "restarting\n" + later(second, "12:01:57.6")), "timeout undecidable");
  // No clock tells: a rank that counts back, other processes on the same GPUs.
  EXPECT_EQ(said(first + position(0, 5, 5, 4) + second), "timeout undecidable");
  std::string again = inits();
  for (std::size_t at = again.find("node-a:1"); at != std::string::npos;
       at = again.find("node-a:1", at + 1))
    again.replace(at, 8, "node-a:9");
  EXPECT_EQ(said(inits() + first + again + second), "timeout undecidable");
  EXPECT_EQ(said(inits() + first + second), "missing_rank missing=2,3 certain");
  EXPECT_EQ(said(init(0) + init(1) + first + init(2) + init(3) + second),
            "missing_rank missing=2,3 certain");  // files of ranks, one behind the other
}

TEST(LogVerdicts, TimeDecidesWhereItIsSaid) {
  const std::string connect =
      "[2026-05-05 06:16:47] node-a:1:2 [0] x.cc:1 NCCL WARN Connect to 1.2.3.4<5> failed : "
      "Connection refused\n";
  const auto memory = [](std::string_view time) {
    return "[2026-05-05 " + std::string(time) +
           "] node-b:3:4 [3] x.cc:1 NCCL WARN Cuda failure 'out of memory'\n";
  };
  EXPECT_EQ(said(connect + memory("06:16:41")), "out_of_memory likely");
  EXPECT_EQ(said(connect + memory("06:16:47")), "out_of_memory likely");
  EXPECT_EQ(said(connect + memory("06:19:00")), "transport_error likely");
}

TEST(LogVerdicts, WhatFollowsATimeoutIsNoCause) {
  EXPECT_EQ(
      said(position(1, 9, 9, 8) +
           "node-a:1:2 [0] x.cc:1 NCCL WARN Connect to 1.2.3.4<5> failed : Connection refused\n"),
      "timeout undecidable");
  EXPECT_EQ(said("node-a:1:2 [0] x.cc:1 NCCL WARN NET/IB : Got completion from peer 1.2.3.4<5> "
                 "with status=12 opcode=0\n" +
                 position(1, 9, 9, 8)),
            "transport_error likely");
}

TEST(LogVerdicts, DuplicateGpu) {
  EXPECT_EQ(said("node-a:1:2 [0] init.cc:497 NCCL WARN Duplicate GPU detected : rank 2 and rank 0 "
                 "both on CUDA device 1000\n"
                 "node-a:1:2 [0] NCCL INFO init.cc:867 -> 5\n"),
            "duplicate_gpu odd=0,2 certain");
  EXPECT_EQ(said("torch.distributed.DistBackendError: NCCL error in: x.cpp:1691, invalid usage, "
                 "NCCL version 2.19.3\nncclInvalidUsage: "
                 "This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU "
                 "detected : rank 0 and rank 1 both "
                 "on CUDA device 31000\n"),
            "duplicate_gpu odd=0,1 certain");
}

std::string setup_line(std::string_view host, int pid, int rank, std::string_view bus,
                       std::string_view end = "Init START") {
  return std::string(host) + ":" + std::to_string(pid) +
         ":1 [0] NCCL INFO ncclCommInitRank comm 0x" + std::to_string(pid) + " rank " +
         std::to_string(rank) + " nranks 3 cudaDev 0 nvmlDev 0 busId " + std::string(bus) +
         " commId 0x7 - " + std::string(end) + "\n";
}

// Without NCCL's own warning: by the hosts and buses of the lines that begin a communicator.
TEST(LogVerdicts, DuplicateGpuByTheRanksOwnLines) {
  const auto findings =
      judge_text(setup_line("node-a", 1, 0, "3b000") + setup_line("node-a", 2, 1, "3b000") +
                 setup_line("node-a", 3, 2, "5d000"));
  EXPECT_EQ(verdict_words(findings), "duplicate_gpu odd=0,1 undecidable");
  ASSERT_EQ(findings[0].evidence.size(), 2U);
  // NCCL counts what is on the host: it is one machine.
  const auto counted = [](std::string_view counts) {
    return said(setup_line("node-a", 1, 0, "3b000") + setup_line("node-a", 2, 1, "3b000") +
                "node-a:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 3 " + std::string(counts) +
                " localRank 0 MNNVL 0\n");
  };
  EXPECT_EQ(counted("nNodes 2 localRanks 2"), "duplicate_gpu odd=0,1 likely");
  EXPECT_EQ(counted("nNodes 3 localRanks 1"), "none");
  EXPECT_EQ(findings[0].evidence[0], "run.log:1: node-a: rank 0 nranks 3 cudaDev 0 busId 3b000");
  // Another bus, another host, another communicator.
  EXPECT_EQ(said(setup_line("node-a", 1, 0, "3b000") + setup_line("node-a", 2, 1, "5d000")),
            "none");
  EXPECT_EQ(said(setup_line("node-a", 1, 0, "3b000") + setup_line("node-b", 2, 1, "3b000")),
            "none");
  EXPECT_EQ(
      said(setup_line("node-a", 1, 0, "3b000") +
           "node-a:2:1 [0] NCCL INFO comm 0x2 rank 1 nranks 3 cudaDev 0 busId 3b000 commId 0x8 - "
           "Init START\n"),
      "none");
  // NCCL's own warning says it with certainty, and once.
  EXPECT_EQ(said(setup_line("node-a", 1, 0, "3b000") + setup_line("node-a", 2, 1, "3b000") +
                 "node-a:1:2 [0] init.cc:867 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 "
                 "both on CUDA device 3b000\n"),
            "duplicate_gpu odd=0,1 certain");
}

// Machines of one name have the same buses, too.
TEST(LogVerdicts, MachinesOfOneNameAreNoDuplicateGpu) {
  std::string text;
  for (const int rank : {0, 1}) text += setup_line("worker", 1 + rank, rank, "3b000");
  for (const int rank : {0, 1})
    text += setup_line("worker", 1 + rank, rank, "3b000", "Init COMPLETE");
  EXPECT_EQ(said(text), "none");  // NCCL refuses one GPU, and they came up
  std::vector<Witness> witnesses;
  witnesses.push_back(read_log_text(text));
  ASSERT_EQ(shared_host_names(witnesses).size(), 1U);
  EXPECT_NE(shared_host_names(witnesses)[0].find("ranks 0,1 of commId 0x7"), std::string::npos);
  const std::string begun =
      setup_line("worker", 1, 0, "3b000") + setup_line("worker", 2, 1, "3b000");
  EXPECT_EQ(said(begun + "worker:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 3 nNodes 3 localRanks 1 "
                         "localRank 0 MNNVL 0\n"),
            "none");
  EXPECT_EQ(said(setup_line("localhost", 1, 0, "3b000") + setup_line("localhost", 2, 1, "3b000")),
            "none");
  // Machines of one GPU each, of uneven numbers, or processes on one GPU: the lines are the same.
  std::string single;
  for (const int rank : {0, 1, 2}) single += setup_line("worker", 1 + rank, rank, "3b000");
  EXPECT_EQ(said(single), "duplicate_gpu odd=0-2 undecidable");
  EXPECT_EQ(said(setup_line("worker", 1, 0, "3b000") + setup_line("worker", 2, 1, "5d000") +
                 setup_line("worker", 3, 2, "3b000")),
            "duplicate_gpu odd=0,2 undecidable");
  // Two machines of two GPUs, or four processes on two GPUs: the lines are the same.
  std::string even;
  for (int rank = 0; rank < 4; ++rank) {
    std::string line = setup_line("worker", 1 + rank, rank, rank % 2 == 0 ? "3b000" : "5d000");
    even += line.replace(line.find("nranks 3"), 8, "nranks 4");
  }
  EXPECT_EQ(said(even), "duplicate_gpu odd=0-3 undecidable");
}

TEST(LogVerdicts, TorchrunsListOfFailures) {
  const auto findings = judge_text(
      "node-a:1:2 [0] NCCL INFO x\nRoot Cause (first observed failure):\n[0]:\n  time      : x\n"
      "  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 1234)\n");
  EXPECT_EQ(verdict_words(findings), "crash likely");
  EXPECT_NE(findings[0].message.find("rank 3"), std::string::npos) << findings[0].message;
}

TEST(LogVerdicts, NoGpuDirectRdma) {
  const std::string without =
      "node-a:1:2 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [receive] via NET/IB/0\n";
  EXPECT_EQ(said(without), "misconfiguration likely");
  EXPECT_EQ(said("node-a:1:2 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0\n"),
            "none");
  EXPECT_EQ(
      said("node-a:1:2 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [receive] via NET/Socket/0\n"),
      "none");
}

// The odd one passes the size of the whole, the others that of one rank's part.
TEST(LogVerdicts, TheWholeForAPart) {
  for (const std::string op : {"ReduceScatter", "AllGather", "AllReduce"}) {
    std::string text = inits();
    for (int rank = 0; rank < 4; ++rank) text += call(rank, op, 0, rank == 2 ? 4096 : 1024);
    const auto findings = judge_text(text);
    EXPECT_EQ(verdict_words(findings), "size_mismatch odd=2 certain");
    const bool told = findings[0].message.find("the size of the whole") != std::string::npos;
    EXPECT_EQ(told, op != "AllReduce") << findings[0].message;
    std::string same = inits();
    for (int rank = 0; rank < 4; ++rank) same += call(rank, op, 0, 1024);
    EXPECT_EQ(said(same), "none");
  }
}

std::string p2p(int rank, std::string_view op, int peer, int count, int datatype = 7) {
  std::string text = call(rank, op, 0, count, datatype);
  return text.replace(text.find("root 0"), 6, "root " + std::to_string(peer));
}

TEST(LogVerdicts, ASendWhoseReceiveTakesOther) {
  // Uneven, as of an all-to-all of unequal parts; in any order.
  const std::string even = inits() + p2p(0, "Send", 1, 8) + p2p(0, "Recv", 1, 9) +
                           p2p(1, "Recv", 0, 8) + p2p(1, "Send", 0, 9);
  EXPECT_EQ(said(even), "none");
  const auto findings = judge_text(even + p2p(0, "Send", 1, 1024) + p2p(1, "Recv", 0, 512));
  EXPECT_EQ(verdict_words(findings), "size_mismatch undecidable");
  EXPECT_EQ(findings[0].message,
            "send 1 of rank 0 to rank 1 in commId 0xab brings 1024 elements of float32, and its "
            "receive takes 512 elements of float32; it cannot be said who of them is wrong");
  ASSERT_EQ(findings[0].evidence.size(), 2U);
  EXPECT_EQ(said(even + p2p(0, "Send", 1, 8, 7) + p2p(1, "Recv", 0, 8, 9)),
            "dtype_mismatch undecidable");
  // The same bytes of another type; a receive that has not been called yet.
  EXPECT_EQ(said(even + p2p(0, "Send", 1, 8, 7) + p2p(1, "Recv", 0, 16, 9)), "none");
  EXPECT_EQ(said(even + p2p(0, "Send", 1, 8)), "none");
  // A cut line may be the receive that is meant; and an excerpt may begin anywhere.
  EXPECT_EQ(said(even + "node-a:101:101 [1] NCCL INFO Recv: opCount 1 sendb\n" +
                 p2p(0, "Send", 1, 1024) + p2p(1, "Recv", 0, 512)),
            "none");
  EXPECT_EQ(said(p2p(0, "Send", 1, 1024) + p2p(1, "Recv", 0, 512)), "none");
}

// One line a receive: rank `to`, process `to` of its host.
std::string receive_line(std::string_view host, int to, std::string_view via, int channel = 0) {
  return std::string(host) + ":" + std::to_string(100 + to) + ":2 [0] NCCL INFO Channel 0" +
         std::to_string(channel) + "/0 : 9[1] -> " + std::to_string(to) + "[0] [receive] via " +
         std::string(via) + "\n";
}

TEST(LogVerdicts, GpuDirectRdmaOnSomeHostsOnly) {
  const std::string some = receive_line("node-a", 0, "NET/IB/0/GDRDMA") +
                           receive_line("node-a", 1, "NET/IB/1/GDRDMA") +
                           receive_line("node-b", 2, "NET/IB/0");
  const auto findings = judge_text(some);
  EXPECT_EQ(verdict_words(findings), "misconfiguration odd=2 likely");
  EXPECT_EQ(findings[0].message,
            "no receive over the network uses GPU Direct RDMA on node-b, and all do on node-a: "
            "transfers to the former pass host memory");
  EXPECT_EQ(findings[0].evidence[0], "run.log:3: Channel 0 : 9 -> 2 [receive] via NET/IB/0");
  EXPECT_EQ(said(receive_line("node-a", 0, "NET/IB/0/GDRDMA") +
                 receive_line("node-b", 2, "NET/IB/0/GDRDMA(PCI)/Shared")),
            "none");
  // Sends go without on many machines whose receives do not.
  EXPECT_EQ(said(receive_line("node-a", 0, "NET/IB/0/GDRDMA") +
                 "node-b:1:2 [0] NCCL INFO Channel 00/0 : 2[0] -> 0[0] [send] via NET/IB/0\n"),
            "none");
  // Another network is another thing.
  EXPECT_EQ(said(receive_line("node-a", 0, "NET/IB/0/GDRDMA") +
                 receive_line("node-b", 2, "NET/Socket/0")),
            "none");
}

// A GPU that is far from an adapter does without, by NCCL's own choice: no line says whether it is.
TEST(LogVerdicts, GpuDirectRdmaWithSomeAdaptersOnly) {
  const auto far = judge_text(receive_line("node-a", 0, "NET/IB/0/GDRDMA") +
                              receive_line("node-a", 0, "NET/IB/1", 1));
  EXPECT_EQ(verdict_words(far), "misconfiguration odd=0 undecidable");
  EXPECT_NE(far[0].message.find("rank 0 (pid 100 on node-a) with adapter 1, 1 of 1"),
            std::string::npos)
      << far[0].message;
  EXPECT_NE(far[0].message.find("Missing: how far"), std::string::npos);
  // The same pair with and without: distance does not explain it.
  EXPECT_EQ(
      said(receive_line("node-a", 0, "NET/IB/0/GDRDMA") + receive_line("node-a", 0, "NET/IB/0", 1)),
      "misconfiguration odd=0 likely");
  // Two jobs: each as it is, here all of one without.
  EXPECT_EQ(
      said("node-a:100:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x1 - "
           "Init START\n"
           "node-b:102:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x2 - "
           "Init START\n" +
           receive_line("node-a", 0, "NET/IB/0/GDRDMA") + receive_line("node-b", 2, "NET/IB/0")),
      "misconfiguration likely");
}

TEST(LogVerdicts, SocketsOverWhatLeadsNowhere) {
  const auto host = [](std::string_view name, std::string_view list) {
    return std::string(name) + ":1:2 [0] NCCL INFO NET/Socket : Using " + std::string(list) + "\n" +
           std::string(name) + ":1:2 [0] NCCL INFO Using network Socket\n";
  };
  const std::string good = host("node-b", "[0]eth0:10.0.0.2<0>");
  EXPECT_EQ(said(host("node-a", "[0]docker0:172.17.0.1<0>") + good), "misconfiguration likely");
  EXPECT_EQ(said(host("node-a", "[0]eth0:10.0.0.1<0> [1]veth1:fe80::1%veth1<0>") + good),
            "misconfiguration likely");
  EXPECT_EQ(said(host("node-a", "[0]eth0:10.0.0.1<0>") + good), "none");
  EXPECT_EQ(said(host("node-a", "[0]docker0:172.17.0.1<0>")), "none");  // one host needs no network
}

TEST(LogVerdicts, HostsThatDiffer) {
  EXPECT_EQ(
      said("node-a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB "
           "eth0:1.1.1.1<0>\n"
           "node-b:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:1.1.1.2<0>\n"),
      "misconfiguration likely");
  EXPECT_EQ(said("node-a:1:2 [0] NCCL INFO Using network IB\nnode-b:1:2 [0] NCCL INFO Using "
                 "network Socket\n"),
            "misconfiguration likely");
}

// A list of adapters of one process.
std::string adapters(std::string_view host, int pid, std::string_view list) {
  return std::string(host) + ":" + std::to_string(pid) + ":2 [0] NCCL INFO NET/IB : Using " +
         std::string(list) + " [RO]; OOB eth0:1.1.1.1<0>\n";
}

TEST(LogVerdicts, AdaptersOfOtherNamesAndKinds) {
  const std::string a = adapters("node-a", 1, "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE");
  // In any order they are the same.
  EXPECT_EQ(said(a + adapters("node-b", 1, "[0]mlx5_1:1/RoCE [1]mlx5_0:1/RoCE")), "none");
  // Numbers shift where another card sits in a host.
  EXPECT_EQ(said(a + adapters("node-b", 1, "[0]mlx5_0:1/RoCE [1]mlx5_4:1/RoCE")), "none");
  EXPECT_EQ(said(a + adapters("node-b", 1, "[0]mlx5_0:1/IB [1]mlx5_1:1/IB")),
            "misconfiguration likely");
}

TEST(LogVerdicts, RanksWithOtherAdapters) {
  const std::string both = "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE";
  const std::string three =
      adapters("node-a", 100, both) + adapters("node-a", 101, both) + init(0) + init(1) + init(2);
  const auto findings = judge_text(three + adapters("node-a", 102, "[0]mlx5_1:1/RoCE"));
  ASSERT_EQ(verdict_words(findings), "misconfiguration odd=2 likely");
  EXPECT_EQ(findings[0].message,
            "ranks of one host use different network adapters: rank 2 (pid 102 on node-a) uses "
            "mlx5_1:1/RoCE, and the others of node-a mlx5_0:1/RoCE, mlx5_1:1/RoCE");
  ASSERT_EQ(findings[0].differing.size(), 1U);
  EXPECT_EQ(findings[0].differing[0].rank, 2);
  EXPECT_EQ(said(three + adapters("node-a", 102, both)), "none");
  // Each its own: as it should be.
  EXPECT_EQ(said(adapters("node-a", 100, "[0]mlx5_0:1/RoCE") +
                 adapters("node-a", 101, "[0]mlx5_1:1/RoCE") +
                 adapters("node-a", 102, "[0]mlx5_2:1/RoCE")),
            "none");
}

// Inside one host no adapter is used, whatever it lacks.
TEST(LogVerdicts, AJobOfOneHostHasNoFaultOfTheNetwork) {
  const auto off = [](std::string_view host, int pid, std::string_view adapter) {
    return std::string(host) + ":" + std::to_string(pid) +
           ":2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 '" + std::string(adapter) +
           "'\n";
  };
  const std::string two = "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE";
  const std::string odd = adapters("node-a", 100, two) + adapters("node-a", 101, two) +
                          adapters("node-a", 102, two) +
                          adapters("node-a", 103, "[0]mlx5_0:1/RoCE");
  EXPECT_EQ(said(inits() + odd), "none");
  EXPECT_EQ(said(init(0, 8) + init(1, 8) + init(2, 8) + init(3, 8) + odd),
            "misconfiguration odd=3 likely");
  EXPECT_EQ(said(inits() + off("node-a", 100, "mlx5_0")), "none");
  // Of several hosts: only where all adapters are concerned, or no list says that there are others.
  const std::string elsewhere =
      "node-b:109:2 [0] NCCL INFO comm 0x9 rank 4 nranks 5 cudaDev 0 nvmlDev 0 busId 1000 commId "
      "0xab - Init COMPLETE\n";
  const std::string job = init(0, 5) + init(1, 5) + elsewhere;
  EXPECT_EQ(said(job + off("node-a", 100, "mlx5_0")), "misconfiguration likely");
  EXPECT_EQ(said(job + adapters("node-a", 100, two) + adapters("node-b", 109, two) +
                 off("node-a", 100, "mlx5_0")),
            "none");
  EXPECT_EQ(said(job + adapters("node-a", 100, two) + adapters("node-b", 109, two) +
                 off("node-a", 100, "mlx5_0") + off("node-a", 100, "mlx5_1")),
            "misconfiguration likely");
}

// What one job or network has says nothing of another.
TEST(LogVerdicts, NoGpuDirectRdmaOfOneJobOrNetwork) {
  const std::string none =
      receive_line("node-a", 0, "NET/IB/0") + receive_line("node-b", 1, "NET/IB/0");
  const std::string all =
      receive_line("node-a", 0, "NET/IB/0/GDRDMA") + receive_line("node-b", 1, "NET/IB/0/GDRDMA");
  std::vector<Witness> witnesses;
  witnesses.push_back(read_log_text(none, "first.log"));
  witnesses.push_back(read_log_text(all, "second.log"));
  EXPECT_EQ(verdict_words(judge(witnesses)), "misconfiguration likely");
  witnesses.clear();
  witnesses.push_back(read_log_text(all, "first.log"));
  witnesses.push_back(read_log_text(all, "second.log"));
  EXPECT_EQ(verdict_words(judge(witnesses)), "none");
  const auto over = [](std::string_view way) { return receive_line("node-a", 0, way); };
  EXPECT_EQ(said(over("NET/AWS Libfabric/0")), "misconfiguration undecidable");
  EXPECT_EQ(said(over("NET/AWS Libfabric/0/GDRDMA")), "none");
  EXPECT_EQ(said(over("NET/Socket/0")), "none");
  EXPECT_EQ(said(over("NET/AWS Libfabric/0/GDRDMA") + over("NET/IB/0")), "misconfiguration likely");
}

// Healthy: what only looks like adapters that differ.
TEST(LogVerdicts, AdaptersOfOtherJobsAndOfBrokenLinesAreNotCompared) {
  const std::string two = "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE";
  const std::string one = "[0]mlx5_0:1/RoCE";
  const auto init_on = [](std::string_view host, int pid, int rank, std::string_view id) {
    return std::string(host) + ":" + std::to_string(pid) + ":2 [0] NCCL INFO comm 0x5" +
           std::to_string(pid) + " rank " + std::to_string(rank) +
           " nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x" + std::string(id) +
           " - Init COMPLETE\n";
  };
  // Two jobs, each of one host, in one file.
  EXPECT_EQ(said(adapters("node-a", 1, two) + init_on("node-a", 1, 0, "aa") +
                 adapters("node-b", 1, one) + init_on("node-b", 1, 0, "bb")),
            "none");
  // One job of both.
  EXPECT_EQ(said(adapters("node-a", 1, two) + init_on("node-a", 1, 0, "aa") +
                 adapters("node-b", 1, one) + init_on("node-b", 1, 1, "aa")),
            "misconfiguration likely");
  // A terminal broke the list: what stands on the first line is not all.
  EXPECT_EQ(
      said(adapters("node-a", 1, two) + "node-b:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE\n"
                                        "[1]mlx5_1:1/RoCE [RO]; OOB eth0:1.1.1.1<0>\n"),
      "none");
  // Each rank the nearest adapter, two of them the same.
  EXPECT_EQ(said(adapters("node-a", 1, one) + adapters("node-a", 2, one) +
                 adapters("node-a", 3, "[0]mlx5_1:1/RoCE")),
            "none");
  // Several hosts of one name: one device twice in a communicator.
  EXPECT_EQ(said(adapters("localhost", 1, two) + adapters("localhost", 2, two) +
                 adapters("localhost", 3, one) + init_on("localhost", 1, 0, "aa") +
                 init_on("localhost", 2, 1, "aa") + init_on("localhost", 3, 2, "aa")),
            "none");
}

// A channel from rank 0 on node-a to rank 1 on node-b, by these adapters of the two.
std::string across(int channel, int from, int to) {
  const auto line = [channel](std::string_view host, std::string_view way, int adapter) {
    return std::string(host) + ":1:2 [0] NCCL INFO Channel 0" + std::to_string(channel) +
           "/0 : 0[0] -> 1[0] [" + std::string(way) + "] via NET/IB/" + std::to_string(adapter) +
           "/GDRDMA\n";
  };
  return line("node-a", "send", from) + line("node-b", "receive", to);
}

TEST(LogVerdicts, ConnectionsFromOneRailToAnother) {
  const std::string lists = adapters("node-a", 1, "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE") +
                            adapters("node-b", 1, "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE");
  const std::string failed =
      "node-a:1:2 [0] transport/net_ib.cc:1615 NCCL WARN NET/IB : Got completion from peer "
      "10.0.0.2<5486> with status=12 opcode=0 len=0 vendor err 129 (Recv)\n";
  // Without a fault any connection is fine, and a fault without a crossed one is no matter of
  // rails.
  EXPECT_EQ(said(lists + across(0, 0, 1)), "none");
  EXPECT_EQ(said(lists + across(0, 0, 0) + across(1, 1, 1) + failed), "transport_error likely");
  const auto findings = judge_text(lists + across(0, 0, 0) + across(1, 0, 1) + failed);
  EXPECT_EQ(verdict_words(findings), "transport_error likely; misconfiguration undecidable");
  EXPECT_NE(findings[1].message.find("1 of 2 connections between hosts lead from one adapter to "
                                     "another one (mlx5_0:1 of node-a to mlx5_1:1 of node-b)"),
            std::string::npos)
      << findings[1].message;
  // Numbers differ, the adapters do not.
  EXPECT_EQ(
      said(adapters("node-a", 1, "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE") +
           adapters("node-b", 1, "[0]mlx5_1:1/RoCE [1]mlx5_0:1/RoCE") + across(0, 0, 1) + failed),
      "transport_error likely");
}

// One line of rank 1 without memory, and one of rank 2 whose kernel failed. By kind alone the
// memory would be the cause.
std::string memory_at(std::string_view time) {
  return "[rank1]:[E" + std::string(time) +
         " x.cpp:1] CUDA out of memory. Tried to allocate 2 GiB\n";
}
std::string kernel_at(std::string_view time) {
  return "[rank2]:[E" + std::string(time) +
         " x.cpp:1] RuntimeError: CUDA error: an illegal memory\n";
}
std::string dated_memory_at(std::string_view time) {
  return "[" + std::string(time) +
         "] node-a:101:9 [1] x.cc:9 NCCL WARN Cuda failure 'out of memory'\n";
}
std::string dated_kernel_at(std::string_view time) {
  return "[" + std::string(time) + "] node-a:102:9 [2] x.cc:9 NCCL WARN Cuda failure 'illegal'\n";
}

// c10's lines do not say their year: those of the new one come later.
TEST(LogVerdicts, AtNewYearTheFirstErrorIsOfTheOldOne) {
  const auto first_of = [](const std::string& text) {
    const auto findings = judge_text(inits() + text);
    return findings.empty() ? "none" : std::string(diagnosis_name(findings.front().kind));
  };
  EXPECT_EQ(first_of(memory_at("1230 10:00:09.5") + kernel_at("1230 10:00:00.5")), "crash");
  EXPECT_EQ(first_of(memory_at("1230 10:00:00.5") + kernel_at("1230 10:00:09.5")), "out_of_memory");
  EXPECT_EQ(first_of(memory_at("0101 00:00:03.5") + kernel_at("1231 23:59:58.5")), "crash");
  EXPECT_EQ(first_of(memory_at("1231 23:59:58.5") + kernel_at("101 00:00:03.5")), "out_of_memory");
  // Where all say the year, it decides.
  EXPECT_EQ(
      first_of(dated_memory_at("2026-01-01 00:00:03") + dated_kernel_at("2025-12-31 23:59:58")),
      "crash");
  EXPECT_EQ(
      first_of(dated_memory_at("2026-12-31 23:59:58") + dated_kernel_at("2026-01-01 00:00:03")),
      "crash");
  // One of them says it.
  EXPECT_EQ(first_of(dated_memory_at("2026-01-01 00:00:03") + kernel_at("1231 23:59:58.5")),
            "crash");
}

TEST(LogVerdicts, AtNewYearTheWatchdogsOfOneHangLieTogether) {
  const auto hang = [](std::string_view last) {
    std::string text = inits();
    for (int rank = 0; rank < 3; ++rank) text += position(rank, 9, 9, 8);
    text += position(3, 8, 8, 7);
    for (std::size_t at = text.find("E1129 11:56:57.6"); at != std::string::npos;
         at = text.find("E1129 11:56:57.6"))
      text.replace(at, 16,
                   text.find("E1129 11:56:57.6", at + 1) == std::string::npos
                       ? last
                       : std::string_view("E1231 23:59:57.6"));
    return text;
  };
  const std::string same = said(hang("E1231 23:59:58.6"));
  EXPECT_NE(same, "timeout undecidable");
  EXPECT_EQ(said(hang("E0101 00:00:02.6")), same);
  EXPECT_EQ(said(hang("E0101 00:20:02.6")), "timeout undecidable");  // minutes apart
}

// NCCL compares the names of algorithms, protocols and networks in any case.
TEST(LogVerdicts, SettingsInAnotherCaseAreTheSame) {
  const auto job = [](std::string_view name, std::string_view first, std::string_view other) {
    std::string text = inits();
    for (int rank = 0; rank < 4; ++rank)
      text += "node-a:" + std::to_string(100 + rank) + ":9 [0] NCCL INFO " + std::string(name) +
              " set by environment to " + std::string(rank == 2 ? other : first) + "\n";
    return text;
  };
  EXPECT_EQ(said(job("NCCL_PROTO", "Simple", "simple")), "none");
  EXPECT_EQ(said(job("NCCL_ALGO", "allreduce:Ring", "AllReduce:ring")), "none");
  EXPECT_EQ(said(job("NCCL_NET", "Socket", "socket")), "none");
  EXPECT_EQ(said(job("NCCL_NET", "Socket", "IB")), "misconfiguration odd=2 certain");
  // "True" is a number to NCCL, and none of its names.
  EXPECT_EQ(said(job("NCCL_P2P_DISABLE", "true", "True")), "misconfiguration odd=2 certain");
  // Two spellings of most, and another value: as one of most has written it.
  const std::string mixed = job("NCCL_PROTO", "Simple", "LL") +
                            "node-a:103:9 [0] NCCL INFO NCCL_ALGO set by environment to RING\n"
                            "node-a:102:9 [0] NCCL INFO NCCL_ALGO set by environment to ring\n"
                            "node-a:101:9 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n";
  const auto findings = judge_text(mixed);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(verdict_words(findings),
            "misconfiguration odd=1 certain; misconfiguration odd=2 certain");
  for (const DiagnosisFinding& finding : findings) {
    ASSERT_EQ(finding.differing.size(), 1U);
    if (finding.differing.front().rank == 1) {
      EXPECT_EQ(finding.differing.front().expected, "ring");
    }
  }
}

// Where a terminal cuts lines, "2.2" and "Ri" are what is left of "2.21.5+cuda12.4" and "Ring".
TEST(LogVerdicts, VersionsAndSettingsThatAreCutDoNotDiffer) {
  std::string text = inits();
  for (int rank = 0; rank < 4; ++rank) {
    const std::string before = "node-a:" + std::to_string(100 + rank) + ":9 [0] NCCL INFO ";
    text += before + "NCCL version " + (rank == 1 ? "2.2" : "2.21.5+cuda12.4") + "\n" + before +
            "NCCL_ALGO set by environment to " + (rank == 2 ? "Ri" : "Ring") + "\n";
  }
  EXPECT_EQ(said(text + "node-a:103:9 [0] NCCL INFO AllReduce: opCount 1 sendb\n"), "none");
  EXPECT_EQ(said(text), "misconfiguration odd=2 certain");  // no line is cut
}

TEST(LogVerdicts, VersionsAndSettingsThatDiffer) {
  const auto version = [](int rank, std::string_view text) {
    return "node-a:" + std::to_string(100 + rank) + ":1 [0] NCCL INFO NCCL version " +
           std::string(text) + "+cuda12.4\n";
  };
  EXPECT_EQ(said(version(0, "2.21.5") + version(1, "2.21.5") + version(2, "2.20.3") + inits()),
            "misconfiguration odd=2 certain");
  EXPECT_EQ(said("node-a:100:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\nnode-a:101:1 "
                 "[0] NCCL INFO NCCL_ALGO set by "
                 "environment to Tree\n" +
                 inits()),
            "misconfiguration certain");
  EXPECT_EQ(said("node-a:100:1 [0] NCCL INFO NCCL_IB_HCA set by environment to a\nnode-a:101:1 [0] "
                 "NCCL INFO NCCL_IB_HCA set by "
                 "environment to b\n" +
                 inits()),
            "none");
}

TEST(LogVerdicts, SlowInitialisation) {
  const auto timings = [](std::string_view total, std::string_view bootstrap) {
    return "node-a:1:2 [0] NCCL INFO Init timings - ncclCommInitRank: rank 5 nranks 8 total " +
           std::string(total) + " (kernels 0.18, bootstrap " + std::string(bootstrap) +
           ", rest 0.02)\n";
  };
  const auto findings = judge_text(timings("12.46", "11.60"));
  EXPECT_EQ(verdict_words(findings), "slow_init likely");
  EXPECT_NE(findings[0].message.find("bootstrap"), std::string::npos);
  EXPECT_EQ(said(timings("0.46", "0.20")), "none");
}

TEST(LogVerdicts, ProcessesThatAreAlone) {
  const auto alone = [](int rank) {
    return "[1," + std::to_string(rank) + "]<stdout>:node-a:" + std::to_string(100 + rank) +
           ":1 [0] NCCL INFO comm 0x5 rank 0 nranks 1 "
           "cudaDev 0 busId 1000 commId 0x" +
           std::to_string(rank + 1) + " - Init COMPLETE\n";
  };
  EXPECT_EQ(said(alone(0) + alone(1)), "separate_jobs likely");
  EXPECT_EQ(said(alone(0)), "none");
}

TEST(LogVerdicts, TwoJobsOnTheSameGpus) {
  const auto rank = [](int job, int who, std::string_view end) {
    return "node-a:" + std::to_string(100 * job + who) + ":1 [0] NCCL INFO comm 0x5 rank " +
           std::to_string(who) + " nranks 2 cudaDev 0 busId " + std::to_string(who) +
           "000 commId 0x" + std::to_string(job) + " - Init " + std::string(end) + "\n";
  };
  const std::string first = rank(1, 0, "START") + rank(1, 1, "START");
  const std::string second = rank(2, 0, "START") + rank(2, 1, "START");
  const std::string first_ends = rank(1, 0, "COMPLETE") + rank(1, 1, "COMPLETE");
  EXPECT_EQ(said(first + second + first_ends), "separate_jobs likely");
  EXPECT_EQ(said(first + first_ends + second), "none");  // one after the other
}

// Lines of different ranks can be written in any mixture.
TEST(LogVerdicts, MixingRanksChangesNothing) {
  std::vector<std::vector<std::string>> ranks(4);
  for (int rank = 0; rank < 4; ++rank) {
    auto& lines = ranks[static_cast<std::size_t>(rank)];
    lines = {init(rank), call(rank, "AllReduce", 0, 8),
             call(rank, rank == 2 ? "AllGather" : "AllReduce", 1, 8),
             position(rank, 9, rank == 1 ? 9 : 12, 8)};
  }
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::size_t> at(4, 0);
    std::string text;
    for (int left = 16; left > 0;) {
      const std::size_t rank = random() % 4;
      if (at[rank] == 4) continue;
      text += ranks[rank][at[rank]++];
      --left;
    }
    const std::string words = said(text);
    ASSERT_EQ(words, "op_mismatch odd=2 certain") << text;
  }
}

// A file for each rank says the same as one for all.
TEST(LogVerdicts, OneFileForEachRank) {
  std::vector<Witness> witnesses;
  for (int rank = 0; rank < 4; ++rank)
    witnesses.push_back(
        read_log_text(init(rank) + call(rank, rank == 2 ? "AllGather" : "AllReduce", 0, 8),
                      "rank" + std::to_string(rank) + ".log"));
  const auto findings = judge(witnesses);
  EXPECT_EQ(verdict_words(findings), "op_mismatch odd=2 certain");
  EXPECT_TRUE(findings[0].evidence[2].starts_with("rank2.log:2: ")) << findings[0].evidence[2];
}

// --- public logs
// -----------------------------------------------------------------------------------

std::string corpus() {
  const char* given = std::getenv("COMMLENS_CORPUS");
  return std::string(given != nullptr ? given : COMMLENS_DEFAULT_CORPUS) + "/nccl-log";
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Known {
  std::string_view file;
  std::string_view words;
};

// Where a known cause is not in the lines of the excerpt, "none" or "undecidable" is the right
// answer.
constexpr Known kKnown[] = {
    {"aws-efa-eks-mpirun-16rank-2.9.9", "none"},
    {"aws-fsdp-slurm-readme-2.26.2", "none"},
    {"byteps-issue-61-k8s-2.3.7", "none"},
    {"deepresearcher-issue-16-ray-workerdict-alltoall", "timeout undecidable"},
    {"eunomia-2.29.7-phase0", "none"},
    {"eunomia-2.29.7-shm-transport", "duplicate_gpu odd=0,1 certain"},
    {"eunomia-2.29.7-tuning", "none"},
    {"horovod-issue-3929-duplicate-gpu-mpirun", "duplicate_gpu odd=0-2,4,5 certain"},
    {"llamafactory-issue-6269-watchdog-reducescatter-8rank", "timeout undecidable"},
    {"milabench-pr-269-wrapped-multinode-reduce", "timeout undecidable"},
    {"mscclpp-issue-665-mpirun-24ch-2rank", "none"},
    {"nccl-issue-1027-hang-after-init-complete-1proc8gpu", "misconfiguration undecidable"},
    {"nccl-issue-1176-srun-bootstrap-truncated-mixed-torch", "op_mismatch likely"},
    {"nccl-issue-1203-aml-epoch-end-hang", "none"},
    {"nccl-issue-1232-hydra-prefix-rank-order", "none"},
    {"nccl-issue-1235-cuda-oom-then-peer-closed", "out_of_memory likely"},
    {"nccl-issue-1238-nranks1-opcount0", "none"},
    {"nccl-issue-1328-truncated-terminal-wrap-rank0", "none"},
    {"nccl-issue-1405-ib-status12-kubernetes", "transport_error likely"},
    {"nccl-issue-1412-no-gdr-33GBps", "none"},  // its channel lines are not in the excerpt
    {"nccl-issue-1453-tuning-algo-proto-2.2x", "none"},
    {"nccl-issue-1537-gdr-disabled-hca", "misconfiguration likely"},
    {"nccl-issue-1609-h800-nvls-timeout", "none"},
    {"nccl-issue-1610-multi-pg-watchdog",
     "timeout undecidable"},  // no line shows the second thread
    {"nccl-issue-1610-same-comm-two-threads-timeout", "timeout undecidable"},
    {"nccl-issue-1814-h800-64rank-init", "none"},
    {"nccl-issue-1936-2.27.5-socket-alltoall-hang", "none"},
    {"nccl-issue-203-tf-2rank-coll", "none"},
    {"nccl-issue-214-error4-gdr-2.4", "op_mismatch likely"},
    {"nccl-issue-224-horovod-2.4.2-mixed-net", "none"},
    {"nccl-issue-257-allreduce-hang-iommu-2.4.8",
     "none"},  // cut before any communicator is complete
    {"nccl-issue-268-tf-2.4.7-socket-truncated", "size_mismatch likely"},
    {"nccl-issue-429-mixed-tf-interleaved-2.7", "none"},
    {"nccl-issue-520-ring-does-not-loop-efa", "misconfiguration likely"},
    {"nccl-issue-529-ipv6-zone-2.5.6", "none"},
    {"nccl-issue-534-init-timings-2.22.3", "slow_init likely"},
    {"nccl-issue-783-send-nil-sendbuff-rank0", "none"},
    {"nccl-issue-795-efa-remote-error-2.14.3", "transport_error undecidable"},
    {"nccl-tests-issue-15-2.2.13-no-nccl-tag", "transport_error likely"},
    {"nccl-tests-issue-182-graph-no-gdr-vm", "misconfiguration likely"},
    {"nccl-tests-issue-185-modify-qp-unreachable", "transport_error likely"},
    {"nccl-tests-issue-244-two-node-init", "none"},
    {"nv-peer-memory-issue-78-bonds-2.7.8", "none"},
    {"nvidia-doc-2.30-all-subsystems", "none"},
    {"pytorch-ci-infra-pr-490-bootstrap-timings", "none"},
    {"pytorch-issue-68893-ansi-veth-2.7.8", "misconfiguration likely"},
    {"rccl-doc-coll-task-globalrank", "none"},
    {"rccl-issue-429-rank2-calls-allgather", "op_mismatch odd=2 likely"},
    {"rccl-issue-908-warn-2.18.3", "misconfiguration likely"},
    {"torchtitan-issue-1369-tp2-coll", "none"},
    {"torchtune-issue-2093-checkpoint-timeout-8rank", "missing_rank missing=0 likely"},
    {"vllm-omni-issue-2928-dump-signal", "timeout undecidable"},
    {"weathergenerator-issue-360-srun-prefix-watchdog", "timeout undecidable"},
};

TEST(LogCorpus, KnownAnswers) {
  if (!std::filesystem::is_directory(corpus())) GTEST_SKIP() << corpus() << " is absent";
  for (const Known& known : kKnown) {
    const std::string path = corpus() + "/" + std::string(known.file) + ".log";
    if (!std::filesystem::exists(path)) {
      ADD_FAILURE() << path << " is absent";
      continue;
    }
    EXPECT_EQ(said(file_text(path)), known.words) << known.file;
  }
}

TEST(LogCorpus, EveryFileIsKnownByItsContentAndHardlyALineIsNot) {
  if (!std::filesystem::is_directory(corpus())) GTEST_SKIP() << corpus() << " is absent";
  for (const auto& entry : std::filesystem::directory_iterator(corpus())) {
    const std::string text = file_text(entry.path());
    const WitnessFormat* format =
        detect_witness_format(std::string_view(text).substr(0, std::size_t{64} << 10U));
    ASSERT_NE(format, nullptr) << entry.path();
    EXPECT_EQ(format->name, "nccl_log") << entry.path();
    const Witness witness = read_log_text(text);
    EXPECT_EQ(witness.log->unknown, 0)
        << entry.path() << witness.notes.example(Note::unknown_log_line);
  }
}

// A file can stop at any byte: nothing breaks, and who would be named by the whole is not replaced
// by somebody else.
TEST(LogCorpus, CutAnywhere) {
  if (!std::filesystem::is_directory(corpus())) GTEST_SKIP() << corpus() << " is absent";
  for (const Known& known : kKnown) {
    const std::string text = file_text(corpus() + "/" + std::string(known.file) + ".log");
    const auto whole = judge_text(text);
    const std::size_t step = std::max<std::size_t>(text.size() / 150, 1);
    for (std::size_t size = 0; size < text.size(); size += step) {
      const auto findings = judge_text(std::string_view(text).substr(0, size));
      for (const DiagnosisFinding& finding : findings) {
        for (const std::int64_t rank : finding.missing_ranks) {
          ASSERT_FALSE(whole.empty());
          const auto& missing = whole.front().missing_ranks;
          EXPECT_NE(std::find(missing.begin(), missing.end(), rank), missing.end())
              << known.file << " at " << size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace commlens
