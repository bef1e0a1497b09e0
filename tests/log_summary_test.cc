// What a log says without anything being wrong: text and sums written by hand.
#include "diagnose/log_summary.h"

#include <gtest/gtest.h>

#include "log_job.h"

namespace commlens {
namespace {

const Table& table(const std::vector<Table>& tables, std::string_view name) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [name](const Table& one) { return one.name == name; });
  EXPECT_NE(found, tables.end()) << name;
  return *found;
}

std::string word(const Cell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* ranks = std::get_if<std::vector<std::int64_t>>(&cell))
    return ranks->empty() ? "none" : format_ranks(*ranks);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&cell)) {
    std::string words;
    for (const std::string& text : *texts) words += (words.empty() ? "" : "+") + text;
    return words;
  }
  return "-";
}

// Rows as lines.
std::string words(const Table& table) {
  std::string text;
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? " " : "") + word(row[i]);
    text += "\n";
  }
  return text;
}

// Two ranks on two hosts, with one communicator of both.
std::string rank(int number) {
  const std::string host = number == 0 ? "node-a" : "node-b";
  const std::string before = host + ":10" + std::to_string(number) + ":1 [0] NCCL INFO ";
  const std::string comm = "comm 0x1" + std::to_string(number) + " rank " + std::to_string(number) +
                           " nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xab - Init ";
  std::string text = before + "NCCL version 2.27.3+cuda12.9\n" + before +
                     "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n" + before +
                     "Using network IB\n" + before + "NCCL_ALGO set by environment to Ring\n" +
                     before + "ncclCommInitRank " + comm + "START\n";
  for (const char* channel : {"00/0", "01/0"})
    text += before + "Channel " + channel + " : 0[0] -> 1[0] [" +
            (number == 0 ? "send" : "receive") + "] via NET/IB/0/GDRDMA\n";
  text +=
      before + "ncclCommInitRank " + comm + "COMPLETE\n" + before +
      "Init timings - ncclCommInitRank: rank " + std::to_string(number) + " nranks 2 total 0." +
      std::to_string(number + 1) + "0 (kernels 0.05, alloc 0.0" + std::to_string(number + 1) +
      ", bootstrap 0.01, allgathers 0.00, topo 0.00, graphs 0.00, connections 0.00, rest 0.00)\n";
  for (int call = 0; call < 3; ++call)
    text += before + "AllReduce: opCount " + std::to_string(call) +
            " sendbuff 0x7e recvbuff 0x7e count 256 datatype 7 op 0 root 0 comm 0x1" +
            std::to_string(number) + " [nranks=2] stream 0x1\n";
  if (number == 0)
    text += before + "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n";
  return text;
}

TEST(LogSummary, IsWhatTheLinesSay) {
  std::vector<Witness> witnesses;
  witnesses.push_back(read_log_text(rank(0), "a.log"));
  witnesses.push_back(read_log_text(rank(1), "b.log"));
  const std::vector<Table> tables = summarize_logs(witnesses);
  EXPECT_EQ(words(table(tables, "hosts")),
            "node-a 1 0 NCCL 2.27.3 12.9 IB mlx5_0:1/RoCE\n"
            "node-b 1 1 NCCL 2.27.3 12.9 IB mlx5_0:1/RoCE\n");
  // 2 ranks, both seen; nodes not said; both initialised, none ended; 3 calls of each.
  EXPECT_EQ(words(table(tables, "communicators")), "commId 0xab 2 0,1 - 2 0 0 6\n");
  // Means of 0.1 and 0.2 s; the phases by their longest.
  EXPECT_EQ(words(table(tables, "init_phases")).substr(0, 60),
            "total 2 150000000 200000000\nkernels 2 50000000 50000000\nallo");
  // Both ends write of the two channels.
  EXPECT_EQ(words(table(tables, "transports")), "NET/IB/GDRDMA 1 2\n");
  EXPECT_EQ(words(table(tables, "pairs")), "commId 0xab 0 1 NET/IB/GDRDMA 2\n");
  EXPECT_EQ(words(table(tables, "tuning")), "all_reduce 1024 RING LL 2 1\n");
  EXPECT_EQ(words(table(tables, "calls")), "commId 0xab all_reduce 1024 6\n");
  EXPECT_EQ(words(table(tables, "settings")), "NCCL_ALGO Ring 2\n");
}

// Rank 2 began and did not finish, rank 3 wrote nothing.
TEST(LogSummary, SetupsThatDidNotFinishAreTold) {
  const auto line = [](int number, const std::string& end) {
    return "node-a:10" + std::to_string(number) + ":1 [0] NCCL INFO ncclCommInitRank comm 0x1" +
           std::to_string(number) + " rank " + std::to_string(number) +
           " nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xab - Init " + end + "\n";
  };
  const auto told = [](const std::string& text) {
    std::vector<Witness> witnesses;
    witnesses.push_back(read_log_text(text));
    const auto sentences = unfinished_setups(witnesses);
    return sentences.empty() ? std::string("nothing") : sentences.front();
  };
  const std::string two =
      line(0, "START") + line(1, "START") + line(0, "COMPLETE") + line(1, "COMPLETE");
  EXPECT_EQ(told(two + line(2, "START")),
            "rank 2 began to set up commId 0xab, and no line says that they finished; rank 3 wrote "
            "nothing of it; if the job hangs, look at these first");
  EXPECT_EQ(told(two), "nothing");
}

// A bare line is of one host's log, or of nobody known.
TEST(LogSummary, VersionsThatNobodySigns) {
  const std::string one = "node-a:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n";
  const std::string other = "node-b:2:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.2<0>\n";
  const std::string bare = "NCCL version 2.4.8+cuda10.0\n";
  const auto hosts_of = [](const std::string& text) {
    std::vector<Witness> witnesses;
    witnesses.push_back(read_log_text(text, "job.log"));
    return words(table(summarize_logs(witnesses), "hosts"));
  };
  EXPECT_NE(hosts_of(one + bare).find("NCCL 2.4.8"), std::string::npos);
  EXPECT_EQ(hosts_of(one + bare).find("\n-"), std::string::npos);
  const std::string both = hosts_of(one + other + bare);
  EXPECT_NE(both.find("NCCL 2.4.8"), std::string::npos) << both;
}

TEST(LogSummary, NothingWithoutALog) { EXPECT_TRUE(summarize_logs({}).empty()); }

TEST(LogSummary, WarningsThatNoVerdictTells) {
  const auto open = [](std::string_view text) {
    std::vector<Witness> witnesses;
    witnesses.push_back(read_log_text(text));
    return open_warnings(witnesses);
  };
  const std::string warning = "node-a:1:1 [0] x.cc:1 NCCL WARN Something new happened\n";
  ASSERT_EQ(open(warning).size(), 1U);
  EXPECT_TRUE(open(warning)[0].starts_with("1 warning is not understood: run.log:1: "))
      << open(warning)[0];
  ASSERT_EQ(open(warning + warning).size(), 1U);
  EXPECT_TRUE(
      open(warning + warning)[0].starts_with("2 warnings are not understood, first run.log:1: "));
  EXPECT_TRUE(open("node-a:1:1 [0] NCCL INFO NET/Plugin : none\n").empty());
  // One that all ranks survived is named as such.
  const std::string comm =
      "node-a:1:1 [0] NCCL INFO comm 0x5 rank 0 nranks 1 cudaDev 0 busId 1000 ";
  const auto over = open(comm + "commId 0x7 - Init COMPLETE\n" + warning +
                         "node-a:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 "
                         "count 8 datatype 7 op 0 root 0 comm 0x5 [nranks=1] stream 0x1\n" +
                         comm + "- Destroy COMPLETE\n");
  ASSERT_EQ(over.size(), 1U);
  EXPECT_TRUE(over[0].starts_with("1 warning came to nothing")) << over[0];
}

}  // namespace
}  // namespace commlens
