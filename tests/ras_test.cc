// Verdicts on what ncclras prints: who stands out is said in each text.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "diagnose/order.h"
#include "diagnose/ras_open.h"
#include "diagnose/verdict.h"
#include "dump_job.h"
#include "ingest/witness_format.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::string_view kEightRanks =
    "NCCL version 2.30.7 compiled with CUDA 12.8\n\nJob summary\n===========\n\n"
    "  Nodes    Processes          GPUs  Processes      GPUs\n"
    "  (total)   per node   per process    (total)   (total)\n"
    "      2            4             1          8         8\n\n";

// One table row of 8 ranks with these words, then the errors, then the warnings.
std::string output(const std::string& row, const std::string& errors, const std::string& warnings) {
  return std::string(kEightRanks) + "Communicators... (0.00s)\n=============\n\n" +
         (row.empty()
              ? "No communicator data collected!\n"
              : "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
                "    #  in group  per comm  per node  per comm  in group\n"
                "    0         1         2         4         8         8  " +
                    row + "\n") +
         "\nErrors\n======\n\n" + errors + "\nWarnings\n========\n\n" + warnings + "\n";
}

std::string counts(const std::string& op, const std::string& lines, bool heading = true) {
  return (heading ? "#0-0 (78db921d1c117b4a) MISMATCH\n" : "") +
         ("  Communicator ranks have different " + op + " operation counts\n") + lines + "\n";
}

std::string mismatch(const std::string& warnings) {
  return output("RUNNING  MISMATCH", "", warnings);
}

Witness read_ras(const std::string& text, const std::string& path = "ras.txt") {
  auto source = Source::memory(path, text);
  Witness witness;
  witness.path = path;
  const WitnessFormat* format = detect_witness_format(text);
  EXPECT_NE(format, nullptr);
  if (format == nullptr) return witness;
  EXPECT_EQ(format->name, "nccl_ras");
  witness.format = format->name;
  format->read(source, "", witness);
  return witness;
}

std::vector<DiagnosisFinding> judge_all(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const Verdict* verdict : verdicts()) {
    for (DiagnosisFinding& finding : verdict->find(witnesses))
      findings.push_back(std::move(finding));
  }
  return order_findings(std::move(findings));
}

std::vector<Witness> outputs(const std::vector<std::string>& texts) {
  std::vector<Witness> witnesses;
  for (const std::string& text : texts)
    witnesses.push_back(read_ras(text, "ras" + std::to_string(witnesses.size())));
  return witnesses;
}

std::vector<DiagnosisFinding> judged(const std::vector<std::string>& texts) {
  return judge_all(outputs(texts));
}

// "missing_rank #61 all_reduce missing=7 odd= likely", separated by "; ".
std::string said(const std::vector<DiagnosisFinding>& findings) {
  std::string text;
  for (const DiagnosisFinding& finding : findings) {
    std::vector<std::int64_t> odd;
    for (const DifferingRank& row : finding.differing) odd.push_back(row.rank);
    text += (text.empty() ? "" : "; ") + std::string(diagnosis_name(finding.kind)) + " #" +
            std::to_string(finding.seq.value_or(-1)) + " " + finding.op +
            " missing=" + format_ranks(finding.missing_ranks) + " odd=" + format_ranks(odd) + " " +
            std::string(confidence_name(finding.confidence));
  }
  return text.empty() ? "none" : text;
}

std::string said(const std::string& text) { return said(judged({text})); }

std::string rank_line(int rank, const std::string& says = "") {
  return "  Rank " + std::to_string(rank) + says + " -- GPU " + std::to_string(rank % 4) +
         " managed by process " + std::to_string(1000 + rank) + " on node node1\n";
}

const std::string kSevenAt64 = "  7 ranks have launched up to operation 64\n";

TEST(Ras, ASetOfOneRankIsALine) {
  const auto behind = judged({mismatch(
      counts("AllReduce", kSevenAt64 + rank_line(7, " has launched up to operation 60")))});
  EXPECT_EQ(said(behind), "missing_rank #61 all_reduce missing=7 odd= likely");
  // Ranks are of the communicator; the process is what can be found.
  EXPECT_TRUE(behind.front().message.starts_with(
      "rank 7 of communicator #0-0 (process 1007, GPU 3 on node node1) has launched up to "
      "all_reduce 60, 7 other ranks up to all_reduce 64: it is behind"))
      << behind.front().message;
  EXPECT_EQ(said(mismatch(counts("AllReduce",
                                 kSevenAt64 + rank_line(7, " has launched up to operation 69")))),
            "rank_ahead #69 all_reduce missing= odd=7 likely");
  EXPECT_EQ(said(mismatch(counts("AllReduce",
                                 "  5 ranks have launched up to operation 64\n"
                                 "  2 ranks have launched up to operation 63\n" +
                                     rank_line(1) + rank_line(2) +
                                     rank_line(7, " has launched up to operation 60")))),
            "missing_rank #61 all_reduce missing=7 odd= likely");
  EXPECT_EQ(
      said(mismatch(counts("AllReduce", rank_line(0, " has launched up to operation 5") +
                                            rank_line(1, " has launched up to operation 4")))),
      "missing_rank #5 all_reduce missing= odd= undecidable");
}

// Of those who are not behind, only the largest set is said to stand where it stands.
TEST(Ras, SaysOfOthersOnlyWhatHolds) {
  const auto findings = judged({mismatch(
      counts("AllReduce",
             "  5 ranks have launched up to operation 64\n"
             "  2 ranks have launched up to operation 63\n" +
                 rank_line(1) + rank_line(2) + rank_line(7, " has launched up to operation 60")))});
  EXPECT_NE(findings.front().message.find("all_reduce 60, 5 other ranks up to all_reduce 64"),
            std::string::npos)
      << findings.front().message;
}

TEST(Ras, WhoHasNotLaunchedAnyIsBehind) {
  EXPECT_EQ(said(mismatch(counts("AllReduce",
                                 "  6 ranks have launched up to operation 9\n"
                                 "  2 ranks have not launched any operations\n" +
                                     rank_line(2) + rank_line(7)))),
            "missing_rank #1 all_reduce missing=2,7 odd= likely");
  EXPECT_EQ(
      said(mismatch(counts("AllReduce", "  7 ranks have launched up to operation 9\n" +
                                            rank_line(4, " has not launched any operations")))),
      "missing_rank #1 all_reduce missing=4 odd= likely");
}

const std::string kTwoAt9 =
    "  6 ranks have launched up to operation 10\n"
    "  2 ranks have launched up to operation 9\n" +
    rank_line(1) + rank_line(2);
const std::string kTwoAt10 =
    "  6 ranks have launched up to operation 11\n"
    "  2 ranks have launched up to operation 10\n" +
    rank_line(1) + rank_line(2);

// One operation apart is what a healthy job looks like.
TEST(Ras, OneOutputProvesNoHang) {
  const auto findings = judged({mismatch(counts("collective", kTwoAt9))});
  EXPECT_EQ(said(findings), "missing_rank #10  missing=1,2 odd= undecidable");
  EXPECT_NE(findings.front().message.find("print it again"), std::string::npos);
}

TEST(Ras, CountersThatStandAreSaidAndThoseThatGrowAreNoFault) {
  const std::string once = mismatch(counts("AllReduce", kTwoAt9));
  const std::string later = mismatch(counts("AllReduce", kTwoAt10));
  // They bear no time: they may be copies, or of one moment.
  for (const auto& twice : {judged({once, once}), judged({once + once})}) {
    EXPECT_EQ(said(twice), "missing_rank #10 all_reduce missing=1,2 odd= undecidable");
    EXPECT_NE(twice.front().message.find("two outputs"), std::string::npos);
  }
  EXPECT_EQ(said(judged({once, later})), "none");
  EXPECT_EQ(open_of_ras(outputs({once, later}), false).size(), 2U);
  // Stuck at the later ones.
  EXPECT_EQ(said(judged({once, later, later})),
            "missing_rank #11 all_reduce missing=1,2 odd= undecidable");
}

// Each kind of operation has a counter of its own: 10 of one and 77 of the other is no distance.
TEST(Ras, CountersOfDifferentOperationsAreNotCompared) {
  const std::string gathers =
      "  6 ranks have launched up to operation 77\n"
      "  2 ranks have launched up to operation 76\n" +
      rank_line(1) + rank_line(2);
  const auto findings =
      judged({mismatch(counts("AllReduce", kTwoAt9) + counts("AllGather", gathers, false))});
  EXPECT_EQ(said(findings), "missing_rank #10 all_reduce missing=1,2 odd= undecidable");
  EXPECT_NE(findings.front().evidence.back().find("AllGather"), std::string::npos);
}

TEST(Ras, DeadProcesses) {
  const std::string dead =
      "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
      "  Process 3748990 on node node1 managing GPU 3\n";
  for (const std::string row : {"", "RUNNING  INCOMPLETE"}) {
    const auto findings = judged({output(row, dead, "")});
    EXPECT_EQ(said(findings), "crash #-1  missing= odd= likely");
    EXPECT_TRUE(
        findings.front().message.starts_with("process 3748990, GPU 3 on node node1 is dead"))
        << findings.front().message;
  }
}

TEST(Ras, ProcessesWithoutData) {
  const std::string silent =
      "INCOMPLETE\n  Missing communicator data from 1 job process\n"
      "  Process 3748990 on node node1 managing GPU 3\n\n";
  const std::string block =
      "#0-0 (1bdb83b038775869) INCOMPLETE\n"
      "  Missing communicator data from 1 rank\n" +
      rank_line(7) + "\n";
  EXPECT_EQ(said(output("RUNNING  INCOMPLETE", silent + block, "")),
            "crash #-1  missing= odd= undecidable");
  EXPECT_EQ(said(output("RUNNING  INCOMPLETE", block, "")), "crash #-1  missing= odd= undecidable");
}

TEST(Ras, ErrorsAndStatuses) {
  const std::string error = "#0-0 (1bdb83b038775869) ERROR\n  Asynchronous error on 1 rank\n" +
                            rank_line(5, " reported unhandled system error") + "\n";
  EXPECT_EQ(said(output("RUNNING  ERROR", error, "")),
            "transport_error #-1  missing= odd=5 likely");
  EXPECT_EQ(said(output("RUNNING  ERROR", "", "")), "crash #-1  missing= odd= undecidable");
  const std::string status =
      "#0-0 (1bdb83b038775869) MISMATCH\n"
      "  Communicator ranks have different status\n"
      "  7 ranks have status RUNNING\n";
  EXPECT_EQ(said(output("ABORT  MISMATCH", "", status + rank_line(5, " has status ABORT"))),
            "crash #-1  missing= odd=5 likely");
  EXPECT_EQ(said(output("RUNNING  MISMATCH", "", status + rank_line(5, " has status INIT"))),
            "state_mismatch #-1  missing= odd=5 undecidable");
}

// What the table says is never passed over, however much of the rest was lost.
TEST(Ras, DetailsThatAreMissingStayOpen) {
  const std::string whole =
      mismatch(counts("AllReduce", "  7 ranks have launched up to operation 640\n" +
                                       rank_line(7, " has launched up to operation 641")));
  const std::size_t table = whole.find("Communicators...");
  for (std::size_t cut = whole.find("RUNNING"); cut + 2 < whole.size(); ++cut) {
    const std::string text = whole.substr(0, cut);
    const auto witnesses = outputs({text});
    const auto findings = judge_all(witnesses);
    const bool open = !open_of_ras(witnesses, !findings.empty()).empty();
    EXPECT_TRUE(open || !findings.empty()) << text.substr(table);
    for (const DiagnosisFinding& finding : findings) EXPECT_EQ(finding.seq, 641) << text;
  }
  const std::string unreadable =
      mismatch(counts("AllGather",
                      "  6 ranks have launched up to operation 99999999999999999999999\n"
                      "  2 ranks have launched up to operation 641\n  Rank -12 -- GPU 4\n"));
  EXPECT_EQ(said(unreadable), "none");
  EXPECT_EQ(open_of_ras(outputs({unreadable}), false).size(), 1U);
  EXPECT_TRUE(open_of_ras(outputs({output("RUNNING  OK", "", "")}), false).empty());
}

TEST(Ras, BehindALauncher) {
  const std::string text =
      mismatch(counts("AllReduce", kSevenAt64 + rank_line(7, " has launched up to operation 60")));
  for (const std::string prefix :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", "0: ", "[0] ", "[default0]:", "(Worker pid=99) "}) {
    std::string tagged;
    std::string both;  // the same from another process, whose lines are no second output
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      tagged += prefix + text.substr(at, end - at);
      both += prefix + text.substr(at, end - at) + "[1,9]<stdout>:" + text.substr(at, end - at);
      at = end;
    }
    EXPECT_EQ(said(tagged), "missing_rank #61 all_reduce missing=7 odd= likely") << prefix;
    EXPECT_EQ(read_ras(both).records, read_ras(tagged).records) << prefix;
  }
}

// A counter is no call: it holds nobody, and stands behind what was given up.
TEST(Ras, CountersAreNoLinkInACircle) {
  DumpJob job(4);
  for (std::int64_t seq = 1; seq <= 4; ++seq) job.all({.seq = seq, .state = "completed"});
  job.ranks({0, 1, 2}, {.seq = 5});
  job.give_up();
  // Four of the eight GPUs' ranks have dumps; 0 and 2 were one behind.
  const std::string ras = mismatch(counts("AllReduce",
                                          "  6 ranks have launched up to operation 9\n"
                                          "  2 ranks have launched up to operation 8\n" +
                                              rank_line(0) + rank_line(2)));
  std::vector<Witness> witnesses = job.witnesses();
  witnesses.push_back(read_ras(ras));
  const auto findings = judge_all(witnesses);
  EXPECT_EQ(said(findings), "missing_rank #5 all_reduce missing=3 odd= certain");
  for (const std::string& line : findings.front().evidence)
    EXPECT_EQ(line.find("ras.txt"), std::string::npos) << line;
}

}  // namespace
}  // namespace commlens
