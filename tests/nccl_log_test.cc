// Lines of logs, one per form that NCCL, RCCL, PyTorch and launchers have given them.
#include <gtest/gtest.h>

#include <string>

#include "ingest/nccl_log_fields.h"
#include "ingest/nccl_log_lines.h"
#include "ingest/nccl_log_prefix.h"
#include "ingest/nccl_log_time.h"
#include "ingest/witness_secrets.h"
#include "log_job.h"

namespace commlens {
namespace {

LogRecord only_record(std::string_view line) {
  const auto records = split_records(line, 1, true);
  EXPECT_EQ(records.size(), 1U) << line;
  return records.front();
}

LogFacts facts_of(std::string_view text) { return std::move(*read_log_text(text).log); }

// A line of NCCL's by process 42 of node-a.
std::string info(std::string_view message) {
  return "node-a:42:43 [3] NCCL INFO " + std::string(message) + "\n";
}

struct PrefixCase {
  std::string_view line;
  std::string_view host;
  std::int64_t pid;
  std::int64_t device;
  std::string_view message;
};

class Prefix : public testing::TestWithParam<PrefixCase> {};

TEST_P(Prefix, IsRead) {
  const PrefixCase& expected = GetParam();
  const LogRecord record = only_record(expected.line);
  EXPECT_EQ(record.kind, LogRecord::Kind::nccl);
  EXPECT_EQ(record.host, expected.host);
  EXPECT_EQ(record.pid, expected.pid);
  EXPECT_EQ(record.device, expected.device);
  EXPECT_EQ(record.message, expected.message);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Prefix,
    testing::Values(
        PrefixCase{"node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"[2026-05-05 06:16:47] node-a:42:43 [3] init.cc:9 NCCL WARN Hi", "node-a", 42, 3,
                   "Hi"},
        PrefixCase{"node-a:42:43 [3] init.cc:9 (commAlloc) NCCL WARN Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"node-a:42:43 [3] INFO comm 0x1", "node-a", 42, 3, "comm 0x1"},
        PrefixCase{"node-a:42:43 [3] include/socket.h:360 WARN Call", "node-a", 42, 3, "Call"},
        PrefixCase{"node-a:42:43 [3] 1558545003174220 NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"node-a:42:43 [3] 12.345678 init:120 NCCL TRACE Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"node-a:42:43 NCCL CALL ncclGroupStart()", "node-a", 42, -1, "ncclGroupStart()"},
        PrefixCase{"[1,3]<stdout>:node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"[1,3]<stderr>:node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"3: node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"[3] node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"node-a: node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"(Worker pid=9, ip=1.2.3.4) node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3,
                   "Hi"},
        PrefixCase{" 2025-02-18 12:54 node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"x.nolog [stderr] node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"**node-a:42:43 [3] NCCL INFO Hi", "node-a", 42, 3, "Hi"},
        PrefixCase{"[3] NCCL INFO Hi", "", -1, 3, "Hi"},
        PrefixCase{"NCCL WARN Hi", "", -1, -1, "Hi"},
        PrefixCase{"10:11:12 [3] NCCL INFO Hi", "", -1, 3, "Hi"}));

TEST(NcclLogPrefix, LaunchersMarksAreHints) {
  EXPECT_EQ(only_record("[1,13]<stdout>:node-a:42:43 [3] NCCL INFO Hi").hint, 13);
  EXPECT_EQ(only_record("13: node-a:42:43 [3] NCCL INFO Hi").hint, 13);
  EXPECT_EQ(only_record("[13] node-a:42:43 [3] NCCL INFO Hi").hint, 13);
  EXPECT_EQ(only_record("[3] NCCL INFO Hi").hint, -1);  // a device
  EXPECT_EQ(only_record("12:54:01 node-a:42:43 [3] NCCL INFO Hi").hint, -1);
}

TEST(NcclLogPrefix, PyTorchsOwn) {
  const LogRecord rank =
      only_record("[rank13]:[E218 04:54:22.864467604 ProcessGroupNCCL.cpp:616] [Rank 1] Hi");
  EXPECT_EQ(rank.kind, LogRecord::Kind::torch);
  EXPECT_EQ(rank.torch_rank, 13);
  EXPECT_EQ(rank.message, " [Rank 1] Hi");
  const LogRecord old = only_record("[E ProcessGroupNCCL.cpp:523] [Rank 3] Hi");
  EXPECT_EQ(old.kind, LogRecord::Kind::torch);
  EXPECT_EQ(old.torch_rank, -1);
  EXPECT_EQ(old.message, " [Rank 3] Hi");
}

TEST(NcclLogPrefix, RecordsOnOneLineAreParted) {
  const auto records = split_records(
      "node-a:42:43 [3] NCCL INFO Ring 00node-b:44:45 [0] NCCL INFO Hi[rank3]:[E1129 11:56:57.64 "
      "ProcessGroupNCCL.cpp:1] [Rank 3] There",
      7, true);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].message, "Ring ");  // the number is taken for the host's beginning
  EXPECT_FALSE(records[0].ended);
  EXPECT_TRUE(records[1].glued);
  EXPECT_EQ(records[1].pid, 44);
  EXPECT_EQ(records[2].torch_rank, 3);
  EXPECT_TRUE(records[2].ended);
}

TEST(NcclLogPrefix, AGluedHostIsKnownFromOtherLines) {
  const LogFacts facts = facts_of(
      "node-b:44:45 [0] NCCL INFO Using network IB\n"
      "node-a:42:43 [3] NCCL INFO Connected all rin12node-b:44:45 [0] NCCL INFO Connected all "
      "trees\n");
  ASSERT_EQ(facts.processes.size(), 1U);  // Connected ... is of nobody's interest
  EXPECT_EQ(facts.processes[0].host, "node-b");
}

// One process wrote over the prefix of another's line: "INnode-a" is no host.
TEST(NcclLogPrefix, APrefixThatIsBrokenOffIsNoPartOfTheHost) {
  EXPECT_EQ(only_record("node-a:42:43 [0] NCCL INnode-a:44:45 [1] NCCL INFO Hi").host, "node-a");
  const std::string known = "node-b:44:45 [1] NCCL INFO Using network IB\n";
  const LogFacts facts =
      facts_of(known + "node-a:42:43 [0] NCCL INnode-b:44:45 [1] NCCL INFO Using network IB\n");
  ASSERT_EQ(facts.processes.size(), 1U);
  EXPECT_EQ(facts.processes[0].host, "node-b");
  // What a launcher puts before a line is no such prefix.
  EXPECT_EQ(only_record("INnode-a: INnode-a:42:43 [0] NCCL INFO Hi").host, "INnode-a");
}

TEST(Secrets, WhatStandsBeforeAHostIsHidden) {
  EXPECT_EQ(without_secrets("at https://joe:horse@proxy:80/a@b and http://host/x"),
            "at https://(hidden)@proxy:80/a@b and http://host/x");
  EXPECT_EQ(without_secrets("password=horse token: horse2"), "password=(hidden) token: (hidden)");
  EXPECT_EQ(without_secrets("://"), "://");
  EXPECT_EQ(without_secrets("commId 0x5af3 node-a:42:42"), "commId 0x5af3 node-a:42:42");
  EXPECT_EQ(without_secrets("joe:horse@host //joe:ho@rse@host:1/x a@b 1[0]@2"),
            "(hidden)@host //(hidden)@host:1/x a@b 1[0]@2");
  // Behind the host and its port the path begins, whatever it holds.
  for (const std::string_view text :
       {"get https://host:80/a@b now", "https://host/a:b@c", "https://host?user=a:b@c",
        "https://host:443/x@1/y@2:3", "//host:1/a@b"})
    EXPECT_EQ(without_secrets(text), text);
  // A password may hold what else ends a host, as long as it is no port.
  EXPECT_EQ(without_secrets("https://joe:ho/rse@host/x"), "https://(hidden)@host/x");
  EXPECT_EQ(without_secrets("https://joe:123456/rse@host/x"), "https://(hidden)@host/x");
}

// The value behind each of these is a word like any other.
TEST(Secrets, WhatAWordAnnouncesIsHidden) {
  for (const std::string_view form : {"--token @",
                                      "--hf-token=@",
                                      "--password '@'",
                                      "['--token', '@']",
                                      "Authorization: Bearer @",
                                      "bearer @",
                                      "apikey=@",
                                      "x-api-key: @",
                                      "auth_key: @",
                                      "pwd=@",
                                      "DB_PASS=@",
                                      "SSHPASS=@",
                                      "PRIVATE_KEY=@",
                                      "SIGNING_KEY=@",
                                      "auth=@",
                                      "sig=@",
                                      "cookie: @",
                                      "Cookie: a=b; c=@",
                                      "session=@",
                                      "passphrase=@",
                                      "user:@@host",
                                      "//user:@@host",
                                      R"("token": "@")",
                                      "{'secret': '@'}",
                                      R"({\"token\": \"@\"})",
                                      "password=x!@",
                                      "password = @)",
                                      "Authorization: Basic @",
                                      "the password is: @",
                                      "password is @",
                                      "The Password was '@'",
                                      "token was @",
                                      "token was: @",
                                      "secret key -> @",
                                      "API key: @",
                                      "access key is @",
                                      "password set to @",
                                      "token is set to @",
                                      "password => @",
                                      "NCCL_KEY set by environment to @"}) {
    std::string text(form);
    const std::string plain = "correct-horse";
    text.replace(text.find('@'), 1, plain);
    const std::string safe = without_secrets(text);
    EXPECT_EQ(safe.find("horse"), std::string::npos) << safe;
    EXPECT_NE(safe.find("(hidden)"), std::string::npos) << safe;
    EXPECT_EQ(without_secrets(safe), safe);
  }
  EXPECT_EQ(without_secrets("{'token': 'a b', 'rank': 3}"), "{'token': '(hidden)', 'rank': 3}");
  EXPECT_EQ(without_secrets("mark eyJhbGciOiJI.eyJzdWIiOiIx.s1gnature end"), "mark (hidden) end");
}

TEST(Secrets, WordsOfLogsStay) {
  for (const std::string_view text :
       {"NCCL_IB_PKEY=0x7fff NCCL_BUFFSIZE=4194304 NCCL_TOPO_FILE=/etc/topo.xml",
        "comm 0x55 rank 0 nranks 4 cudaDev 0 busId 1b000 commId 0xabc123def456 - Init COMPLETE",
        "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
        "Channel 00/0 : 3[3] -> 4[0] [receive] via NET/IB/0/GDRDMA",
        "rkey=0x12 key size 32, keySize: 64, monkey: 5, tokens: 512, max_tokens=4096",
        "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000)",
        "PWD=/home/x signal: 11, sig=11 the password is wrong", "bypass", "fe80::1%eth0<0>",
        "token was not found, password is required; the secret key was rejected",
        "the token is 5 and tokens -> 512, session is set", "key -> value, a key is b",
        "Ring 00 : 3 -> 0 -> 1 passed"}) {
    EXPECT_EQ(without_secrets(text), text);
  }
}

// Half a token is not known for one.
TEST(Secrets, WhatIsCutIsHiddenBefore) {
  const std::string token = "hf_Qx7ZsecretT0ken9931";
  for (std::size_t at = 200; at < 245; ++at) {
    const std::string safe = evidence_text(std::string(at - 1, 'x') + " " + token + " and more");
    EXPECT_EQ(safe.find("hf_"), std::string::npos) << safe;
    EXPECT_LE(safe.size(), 243U);
  }
  EXPECT_EQ(evidence_text(std::string(239, 'x') + "\u00e9" + "y"), std::string(239, 'x') + "...");
}

TEST(Secrets, ThoseOfSettingsAreKnownByTheName) {
  const LogFacts facts = facts_of(
      "node-a:1:1 [0] NCCL INFO NCCL_PLUGIN_TOKEN set by environment to correct-horse\n"
      "node-a:1:1 [0] NCCL INFO NCCL_IB_PKEY set by environment to 3.\n");
  ASSERT_EQ(facts.settings.size(), 2U);
  EXPECT_EQ(facts.settings[0].value, "(hidden)");
  EXPECT_EQ(facts.settings[1].value, "3");
}

// The beginning of the line, with who made the call, was lost: it is missing from the calls.
TEST(NcclLogCalls, WithoutTheirHeadAreCut) {
  const std::string rest =
      "sendbuff 0x1 recvbuff 0x2 count 8 datatype 7 op 0 root 0 comm 0x10 [nranks=2] stream 0x5\n";
  const std::string whole = info("AllReduce: opCount 1 " + rest.substr(0, rest.size() - 1));
  EXPECT_EQ(facts_of(whole).cut, 0);
  for (const std::string& lost :
       {"AllReduce: opCount 1 " + rest, std::string("Send: opCount 1 sendb\n"), "ount 1 " + rest}) {
    EXPECT_EQ(facts_of(whole + lost + whole).cut, 1) << lost;
  }
  EXPECT_EQ(facts_of(whole + "step: opCount 1\nmy count is 8, my datatype 7\n").cut, 0);
}

TEST(NcclLogTime, WithinTheYear) {
  const Ns day = Ns{86'400} * 1'000'000'000;
  EXPECT_EQ(find_log_time("[2025-02-01 00:00:01] ").in_year, 31 * day + 1'000'000'000);
  EXPECT_EQ(find_log_time("[2025-02-01T00:00:01.5] ").in_year, 31 * day + 1'500'000'000);
  EXPECT_EQ(find_log_time("[E201 00:00:01.000000002 x.cpp:1]").in_year, 31 * day + 1'000'000'002);
  EXPECT_EQ(find_log_time("[E1201 00:00:00 x.cpp:1]").in_year, 335 * day);
  EXPECT_EQ(find_log_time("no time 12:54").in_year, -1);
  EXPECT_EQ(find_log_time("2025-13-01 00:00:01").in_year, -1);
  // `date -u -d "2024-03-01 12:54:31" +%s`
  EXPECT_EQ(find_log_time("[2024-03-01 12:54:31] ").since_epoch, 1'709'297'671 * 1'000'000'000L);
  EXPECT_EQ(find_log_time("[1970-01-01 00:00:01] ").since_epoch, 1'000'000'000);
  EXPECT_EQ(find_log_time("[E201 00:00:01.000000002 x.cpp:1]").since_epoch, -1);
  EXPECT_EQ(find_log_time("[9999-01-01 00:00:01] ").since_epoch, -1);
  // Days that there are not, and years whose nanoseconds do not fit, are no dates at all.
  for (const std::string_view none :
       {"[2025-02-30 00:00:01] ", "[2025-02-29 00:00:01] ", "[2025-04-31 00:00:01] ",
        "[2025-01-00 00:00:01] ", "[2262-01-01 00:00:01] ", "[9999-01-01 00:00:01] ",
        "[1969-12-31 00:00:01] ", "[E0230 00:00:01.5 x.cpp:1]", "[E0431 00:00:01.5 x.cpp:1]"}) {
    EXPECT_EQ(find_log_time(none).in_year, -1) << none;
    EXPECT_EQ(find_log_time(none).since_epoch, -1) << none;
  }
  EXPECT_EQ(find_log_time("[2024-02-29 00:00:01] ").in_year, 59 * day + 1'000'000'000);
  EXPECT_EQ(find_log_time("[E0229 00:00:01 x.cpp:1]").in_year, 59 * day + 1'000'000'000);
  EXPECT_EQ(find_log_time("[2261-12-31 23:59:59] ").since_epoch, 9'214'646'399 * 1'000'000'000L);
  EXPECT_EQ(find_log_time("[0000-01-01 00:00:01] ").since_epoch, -1);
}

TEST(NcclLogLines, DecorationGoes) {
  EXPECT_EQ(without_decoration("\x1b[0;31mred\x1b[0m text"), "red text");
  EXPECT_EQ(without_decoration("[0m node"), "node");
  EXPECT_EQ(without_decoration("**x**"), "x");
  EXPECT_EQ(without_decoration("[0] node"), "[0] node");
  EXPECT_EQ(without_decoration("\x1b["), "");
}

TEST(NcclLogLines, SecretsGo) {
  EXPECT_EQ(evidence_text("use hf_abcdefghijklmnop now"), "use (hidden) now");
  EXPECT_EQ(evidence_text("password=hunter2 x"), "password=(hidden) x");
  EXPECT_EQ(evidence_text("api_key: hunter2"), "api_key: (hidden)");
  EXPECT_EQ(evidence_text("x aB3dE5fG7hI9jK1lM3nO5pQ7 y"), "x (hidden) y");
  EXPECT_EQ(evidence_text("WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE, NumelIn=544997376)"),
            "WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE, NumelIn=544997376)");
  EXPECT_LT(evidence_text(std::string(5000, 'x')).size(), 300U);
}

TEST(NcclLogLines, EndsOfLines) {
  const std::string_view text = "a\r\nb\rc\nd";
  Source source = Source::memory("x", text);
  LogLines lines(source, {});
  LogLine line;
  std::string all;
  while (lines.next(line)) all += std::to_string(line.number) + line.text + (line.ended ? "," : "");
  EXPECT_EQ(all, "1a,2b,2c,3d");
}

TEST(NcclLogFields, AValueNeedsItsEnd) {
  EXPECT_EQ(LogText("rank 12", true).number("rank "), 12);
  EXPECT_EQ(LogText("rank 12", false).number("rank "), std::nullopt);
  EXPECT_EQ(LogText("nranks 12 rank 3 x", false).number("rank "), 3);
  EXPECT_EQ(LogText("status=12,", false).number("status=", ","), 12);
  EXPECT_EQ(LogText("comm (nil) x", false).hex("comm "), 0U);
  EXPECT_EQ(LogText("comm 0x... x", false).hex("comm "), std::nullopt);
}

struct CommCase {
  std::string_view version;
  std::string_view message;
  bool complete;
  std::uint64_t id;
};

class Communicators : public testing::TestWithParam<CommCase> {};

TEST_P(Communicators, AreRead) {
  const CommCase& expected = GetParam();
  const LogFacts facts = facts_of(info(expected.message));
  ASSERT_EQ(facts.comms.size(), 1U) << expected.version;
  EXPECT_EQ(facts.comms[0].rank, 3);
  EXPECT_EQ(facts.comms[0].nranks, 8);
  EXPECT_EQ(facts.comms[0].pointer, 0x7fU);
  EXPECT_EQ(facts.comms[0].complete_line > 0, expected.complete);
  EXPECT_EQ(facts.comms[0].id, expected.id);
  EXPECT_EQ(facts.unknown + facts.cut, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Versions, Communicators,
    testing::Values(
        CommCase{"2.2", "comm 0x7f rank 3 nranks 8", false, 0},
        CommCase{"2.4", "comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 - Init COMPLETE", true, 0},
        CommCase{"2.5", "comm 0x7f rank 3 nranks 8 cudaDev 3 busId 3b000 - Init COMPLETE", true, 0},
        CommCase{"2.17",
                 "comm 0x7f rank 3 nranks 8 cudaDev 3 busId 3b000 commId 0xab - Init COMPLETE",
                 true, 0xab},
        CommCase{
            "2.18",
            "comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 commId 0xab - Init START",
            false, 0xab},
        CommCase{"2.22",
                 "ncclCommInitRank comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 "
                 "commId 0xab - Init COMPLETE",
                 true, 0xab},
        CommCase{"2.23",
                 "ncclCommSplit comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 parent "
                 "0x9 color 1 key 3 commId 0xab - Init START",
                 false, 0xab},
        CommCase{"2.24",
                 "ncclCommSplit comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 parent "
                 "0x9 splitCount 1 color 1 key 3- Init START",
                 false, 0},
        CommCase{"2.29",
                 "[Rank 3] ncclCommInitRankConfig comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 "
                 "busId 3b000 commId 0xab - Init START",
                 false, 0xab},
        CommCase{"2.20", "comm 0x7f rank 3 nRanks 8 nNodes 2 localRanks 4 localRank 3 MNNVL 0",
                 false, 0}));

TEST(NcclLogComms, PointersAreUsedAgain) {
  const LogFacts facts =
      facts_of(info("comm 0x7f rank 3 nranks 8 cudaDev 3 busId 3b000 commId 0xa - Init COMPLETE") +
               info("comm 0x7f rank 3 nranks 8 cudaDev 3 busId 3b000 - Destroy COMPLETE") +
               info("comm 0x7f rank 0 nranks 2 cudaDev 3 busId 3b000 commId 0xb - Init COMPLETE"));
  ASSERT_EQ(facts.comms.size(), 2U);
  EXPECT_EQ(facts.comms[0].end_line, 2);
  EXPECT_EQ(facts.comms[1].nranks, 2);
}

struct ChannelCase {
  std::string_view message;
  LogTransport transport;
  std::int64_t from;
  std::int64_t to;
  bool gdr;
  std::string_view network;
};

class Channels : public testing::TestWithParam<ChannelCase> {};

TEST_P(Channels, AreRead) {
  const ChannelCase& expected = GetParam();
  const LogFacts facts = facts_of(info(expected.message));
  ASSERT_EQ(facts.channels.size(), 1U) << expected.message;
  const LogChannel& channel = facts.channels[0];
  EXPECT_EQ(channel.transport, expected.transport);
  EXPECT_EQ(channel.from, expected.from);
  EXPECT_EQ(channel.to, expected.to);
  EXPECT_EQ(channel.gdr, expected.gdr);
  EXPECT_EQ(channel.network, expected.network);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Channels,
    testing::Values(
        ChannelCase{"Ring 00 : 0[0] -> 1[1] via P2P/IPC", LogTransport::p2p, 0, 1, false, ""},
        ChannelCase{"Ring 00 : 1 -> 0 [receive] via NET/Socket/0", LogTransport::net, 1, 0, false,
                    "Socket"},
        ChannelCase{"Channel 00 : 0[1000] -> 1[2000] via P2P/direct pointer", LogTransport::p2p, 0,
                    1, false, ""},
        ChannelCase{"Channel 00 : 0[1000] -> 1[2000] via direct shared memory", LogTransport::shm,
                    0, 1, false, ""},
        ChannelCase{"Channel 00 : 3[0] -> 4[1] via SHM/direct/direct", LogTransport::shm, 3, 4,
                    false, ""},
        ChannelCase{"Channel 00/0 : 3[3] -> 4[0] via P2P/CUMEM/read", LogTransport::p2p, 3, 4,
                    false, ""},
        ChannelCase{"Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/2/GDRDMA", LogTransport::net, 3,
                    4, true, "IB"},
        ChannelCase{"Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/2(7)/GDRDMA(PCI)/Shared",
                    LogTransport::net, 3, 4, true, "IB"},
        ChannelCase{"Channel 13/1 : 3[3] -> 4[0] [receive] via NET/AWS Libfabric/3",
                    LogTransport::net, 3, 4, false, "AWS Libfabric"},
        ChannelCase{"CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA", LogTransport::collnet, 3,
                    3, true, "SHARP"}));

// A terminal that cuts lines ends each with a line break.
TEST(NcclLogChannels, AMarkThatIsCutIsNoOther) {
  for (const std::string_view end : {"NET/AWS Libfabric/0/GD", "NET/IB/0/", "NET/IB/0(",
                                     "NET/IB/0(1", "NET/IB/0/GDRDMA(P", "NET/IB/0/GDRDMA/Sha"}) {
    const LogFacts facts = facts_of(
        info("Channel 02/0 : 4[4] -> 12[4] [receive] via " + std::string(end)) + info("Hi"));
    EXPECT_TRUE(facts.channels.empty()) << end;
    EXPECT_EQ(facts.cut, 1) << end;
  }
  for (const std::string_view end :
       {"NET/IB/0", "NET/IB/0/GDRDMA", "NET/IB/0(3)/GDRDMA", "NET/IB/0/GDRDMA(PCI)",
        "NET/IB/0/GDRDMA/Shared", "NET/IB/0/Shared", "NET/IB/0(12)", "NET/IB/0/Comm"}) {
    const LogFacts facts =
        facts_of(info("Channel 02/0 : 4[4] -> 12[4] [receive] via " + std::string(end)));
    ASSERT_EQ(facts.channels.size(), 1U) << end;
    EXPECT_EQ(facts.channels[0].gdr, end.find("GDRDMA") != std::string_view::npos) << end;
  }
}

TEST(NcclLogChannels, RingsAreNone) {
  const LogFacts facts =
      facts_of(info("Channel 00/02 :    0   1   2") + info("Channel 00/64 : 0") +
               info("Ring 00 : 1 -> 0 -> 1") + info("Tree 0 : -1 -> 0 -> 1/-1/-1") +
               info("Connected to proxy localRank 0 -> connection 0x1"));
  EXPECT_TRUE(facts.channels.empty());
  EXPECT_EQ(facts.unknown + facts.cut, 0);
}

TEST(NcclLogCalls, AllOfOne) {
  const LogFacts facts =
      facts_of(info("AllReduce: opCount 1d sendbuff 0x7e recvbuff 0x7e count 64 datatype 7 op 0 "
                    "root 0 comm 0x7f [nranks=2] stream 0x1"));
  ASSERT_EQ(facts.calls.size(), 1U);
  EXPECT_EQ(facts.calls[0].op, Op::all_reduce);
  EXPECT_EQ(facts.calls[0].op_count, 0x1d);
  EXPECT_EQ(facts.calls[0].count, 64);
  EXPECT_EQ(facts.calls[0].datatype, 7);
  EXPECT_EQ(facts.comms[0].nranks, 2);
}

TEST(NcclLogCalls, RcclSaysTheRank) {
  const LogFacts facts =
      facts_of(info("AllReduce: opCount 3 sendbuff 0x7e recvbuff 0x7e count 64 datatype 6 op 0 "
                    "root 0 comm 0x7f [nranks=256] stream 0x1 "
                    "task 0 globalrank 170"));
  ASSERT_EQ(facts.calls.size(), 1U);
  EXPECT_EQ(facts.processes[0].hint, 170);
}

TEST(NcclLogCalls, SendNamesThePeer) {
  const LogFacts facts = facts_of(
      "[0] NCCL INFO Send: opCount 1 sendbuff (nil) recvbuff 0x7f count 8 datatype 7 op 0 root 1 "
      "comm 0x55 [nranks=2] "
      "stream 0x5\n");
  ASSERT_EQ(facts.calls.size(), 1U);
  EXPECT_EQ(facts.calls[0].op, Op::send);
  EXPECT_EQ(facts.calls[0].root, 1);
}

TEST(NcclLogCalls, WrappedLinesAreJoined) {
  // By a terminal that cut the word, by one that broke a number, by an editor at a blank.
  const std::string head =
      "node-a:42:43 [3] NCCL INFO Broadcast: opCount 0 sendbuff 0x7e recvbuff 0x7e ";
  for (const std::string& tail :
       {std::string("coun$\n 8 datatype 0 op 0 root 0 comm 0x16 [nranks=2] stream 0x1\n"),
        std::string("count\n8 datatype 0 op 0 root 0 comm 0x16 [nranks=2] stream 0x1\n"),
        std::string("count 8 datatype 0 op 0 root 0 comm 0x1\n6 [nranks=2] stream 0x1\n"),
        std::string("count 8 datatype 0\nop 0 root 0 comm 0x16\n[nranks=2] stream 0x1\n")}) {
    const LogFacts facts = facts_of(head + tail);
    ASSERT_EQ(facts.calls.size(), 1U) << tail;
    EXPECT_EQ(facts.calls[0].count, 8) << tail;
    EXPECT_EQ(facts.comms[0].pointer, 0x16U) << tail;
  }
}

TEST(NcclLogCalls, LinesThatAreCutAreCounted) {
  const LogFacts facts = facts_of(
      info("AllReduce: opCount 1d sendb") + info("Connected all rings") +
      "node-a:42:43 [3] NCCL INFO AllReduce: opCount 1d sendbuff 0x7e recvbuff 0x7e count 6");
  EXPECT_TRUE(facts.calls.empty());
  EXPECT_EQ(facts.cut, 2);
  EXPECT_TRUE(facts.ends_cut);
}

// NCCL_DEBUG=TRACE, NCCL_DEBUG_SUBSYS=CALL.
std::string traced_line(std::string_view message) {
  return "node-a:42:43 NCCL CALL " + std::string(message) + "\n";
}

TEST(NcclLogCalls, TracedOnesAreRead) {
  const LogFacts facts = facts_of(
      traced_line("ncclGetUniqueId(0x5216)") +
      traced_line("ncclCommInitRank(0x55d8, 4, 0x5216, 3, 1)") + traced_line("ncclGroupStart()") +
      traced_line("ncclAllReduce(7f5d,7f5e,64,7,0,0,0x55d8,(nil))") +
      traced_line("ncclSend(0,7f5d,8,9,0,2,0x55d8,0x1)") + traced_line("ncclGroupEnd()"));
  ASSERT_EQ(facts.comms.size(), 1U);
  EXPECT_EQ(facts.comms[0].rank, 3);
  EXPECT_EQ(facts.comms[0].nranks, 4);
  EXPECT_EQ(facts.comms[0].device, 1);
  EXPECT_EQ(facts.comms[0].id, 0x5216U);
  EXPECT_EQ(facts.comms[0].complete_line, 2);
  ASSERT_EQ(facts.calls.size(), 2U);
  EXPECT_TRUE(facts.calls[0].traced);
  EXPECT_EQ(facts.calls[0].op, Op::all_reduce);
  EXPECT_EQ(facts.calls[0].count, 64);
  EXPECT_EQ(facts.calls[0].datatype, 7);
  EXPECT_EQ(facts.calls[0].comm.index(), 0U);
  EXPECT_EQ(facts.calls[1].op, Op::send);
  EXPECT_EQ(facts.calls[1].root, 2);
  EXPECT_EQ(facts.unknown + facts.cut, 0);
}

TEST(NcclLogCalls, TracedSplitsNameTheirParent) {
  const LogFacts facts = facts_of(traced_line("ncclCommSplit(0x55d8, 1, 0, 0x55e0, 2, 8)"));
  ASSERT_EQ(facts.comms.size(), 1U);
  EXPECT_EQ(facts.comms[0].pointer, 0x55e0U);
  EXPECT_EQ(facts.comms[0].parent, 0x55d8U);
  EXPECT_EQ(facts.comms[0].color, 1);
  EXPECT_EQ(facts.comms[0].rank, 2);
  EXPECT_EQ(facts.comms[0].nranks, 8);
}

// ALL at level TRACE writes each call twice, one line behind the other; an excerpt can begin
// between the two.
TEST(NcclLogCalls, TracedOnesCountOnce) {
  const std::string counted = info(
      "AllReduce: opCount 1d sendbuff 0x7e recvbuff 0x7f count 64 datatype 7 op 0 root 0 comm "
      "0x55d8 [nranks=2] stream 0x1");
  const std::string traced = traced_line("ncclAllReduce(7e,7f,64,7,0,0,0x55d8,0x1)");
  const LogFacts facts = facts_of(traced + counted + traced + counted + traced);
  ASSERT_EQ(facts.calls.size(), 2U);
  EXPECT_FALSE(facts.calls[0].traced || facts.calls[1].traced);
  EXPECT_EQ(facts_of(traced + traced).calls.size(), 2U);
}

TEST(NcclLogCalls, TracedOnesThatAreCutOrOddAreCounted) {
  EXPECT_EQ(facts_of(traced_line("ncclAllReduce(7e,7f,6")).cut, 1);
  EXPECT_EQ(facts_of(traced_line("ncclAllReduce(7e,7f,6") + "4,7,0,0,0x55d8,0x1)\n").calls.size(),
            1U);
  EXPECT_EQ(facts_of(traced_line("ncclAllReduce(7e,7f,x,7,0,0,0x55d8,0x1)")).unknown, 1);
  const LogFacts documented = facts_of(traced_line("ncclSend(0,0x...,8,7,0,2,0x...,0x...)"));
  EXPECT_TRUE(documented.calls.empty());
  EXPECT_EQ(documented.unknown + documented.cut, 0);
}

TEST(NcclLogCalls, DocumentationIsNoCall) {
  EXPECT_TRUE(facts_of(info("AllReduce: opCount 0 sendbuff 0x... recvbuff 0x... count 2 datatype 7 "
                            "op 0 root 0 comm 0x... "
                            "[nranks=2] stream 0x..."))
                  .calls.empty());
  EXPECT_TRUE(facts_of(info("## [170260.347287] [07:00] 000001 KL HWID 42300700 "
                            "ncclDevFunc_AllReduce nw 4 nRanks 8"))
                  .calls.empty());
}

TEST(NcclLogTuning, OfAllVersions) {
  const LogFacts facts =
      facts_of(info("262144 Bytes -> Algo 0 proto 1 time 54.707825") +
               info("AllReduce: 262144 Bytes -> Algo 1 proto 2 time 3.5") +
               info("AllGather: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}") +
               info("AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 "
                    "nthreads 512") +
               info("AllGather [Copy Engine]: 1024 Bytes -> cudaMemcpy"));
  ASSERT_EQ(facts.tuning.size(), 4U);
  EXPECT_EQ(facts.tuning[0].algorithm + facts.tuning[0].protocol, "TREELL128");
  EXPECT_EQ(facts.tuning[0].op, Op::unknown);
  EXPECT_EQ(facts.tuning[1].algorithm + facts.tuning[1].protocol, "RINGSIMPLE");
  EXPECT_EQ(facts.tuning[2].op, Op::all_gather);
  EXPECT_EQ(facts.tuning[3].algorithm, "AllReduce_AGxLL_R");
}

TEST(NcclLogSettings, VersionsAndValues) {
  const LogFacts facts = facts_of(
      info("NCCL version 2.21.5+cuda12.4") + info("NCCL_SHM_DISABLE set by environment to 1.") +
      info("NCCL_ALGO set by environment to Ring") + info("SECRET_TOKEN set by environment to x"));
  EXPECT_EQ(facts.processes[0].version, "2.21.5");
  EXPECT_EQ(facts.processes[0].cuda, "12.4");
  ASSERT_EQ(facts.settings.size(), 2U);
  EXPECT_EQ(facts.settings[0].value, "1");
  EXPECT_EQ(facts.settings[1].value, "Ring");
  EXPECT_EQ(facts_of(info("NCCL version 2.4.7+cudaCUDA_MAJOR.CUDA_MINOR")).processes[0].cuda, "");
  EXPECT_TRUE(facts_of(info("RCCL version 2.18.3+hip5.5 develop:6ecf771+")).processes[0].rccl);
}

TEST(NcclLogNetwork, Interfaces) {
  const LogFacts facts =
      facts_of(info("NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>") +
               info("NET/Socket : Using [0]eth0:10.0.0.1<0> [1]v%1:fe80::1%v<0>") +
               info("Bootstrap : Using eth0:10.0.0.1<0>") +
               info("NET/IB : Using [RO]; OOB eth0:10.0.0.1<0>") + info("Using network IB"));
  ASSERT_EQ(facts.interfaces.size(), 3U);
  EXPECT_EQ(facts.interfaces[0].names, (std::vector<std::string>{"mlx5_0:1/RoCE", "mlx5_1:1/IB"}));
  EXPECT_EQ(facts.interfaces[1].addresses, (std::vector<std::string>{"10.0.0.1", "fe80::1%v"}));
  EXPECT_EQ(facts.processes[0].network, "IB");
}

TEST(NcclLogTimings, Phases) {
  const LogFacts facts = facts_of(
      info("Init timings: rank 5 nranks 8 total 2.46 (kernels 0.18, bootstrap 1.60, rest 0.02)") +
      info("Init timings - ncclCommInitRank: rank 0 nranks 2 total 0.37 (kernels 0.28, alloc 0.05, "
           "bootstrap 0.00)"));
  ASSERT_EQ(facts.timings.size(), 2U);
  EXPECT_EQ(facts.timings[0].rank, 5);
  ASSERT_EQ(facts.timings[0].phases.size(), 3U);
  EXPECT_EQ(facts.timings[0].phases[1].name, "bootstrap");
  EXPECT_DOUBLE_EQ(facts.timings[0].phases[1].seconds, 1.60);
}

struct WatchdogCase {
  std::string_view line;
  LogWatchdog::Kind kind;
  std::int64_t rank;
  std::int64_t group_rank;
  std::string_view group;
  std::int64_t seq;
  std::int64_t enqueued;
  std::int64_t completed;
};

class Watchdogs : public testing::TestWithParam<WatchdogCase> {};

TEST_P(Watchdogs, AreRead) {
  const WatchdogCase& expected = GetParam();
  const LogFacts facts = facts_of(std::string(expected.line) + "\n");
  ASSERT_EQ(facts.watchdog.size(), 1U) << expected.line;
  const LogWatchdog& line = facts.watchdog[0];
  EXPECT_EQ(line.kind, expected.kind);
  EXPECT_EQ(line.rank, expected.rank);
  EXPECT_EQ(line.group_rank, expected.group_rank);
  EXPECT_EQ(line.group, expected.group);
  EXPECT_EQ(line.seq, expected.seq);
  EXPECT_EQ(line.enqueued, expected.enqueued);
  EXPECT_EQ(line.completed, expected.completed);
}

constexpr auto kTimedOut = LogWatchdog::Kind::timed_out;
constexpr auto kPosition = LogWatchdog::Kind::position;
constexpr std::int64_t kUnsaid = LogWatchdog::kNotSaid;

INSTANTIATE_TEST_SUITE_P(
    Generations, Watchdogs,
    testing::Values(
        WatchdogCase{
            "[E ProcessGroupNCCL.cpp:737] [Rank 2] Watchdog caught collective operation timeout: "
            "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1808499 milliseconds before "
            "timing out.",
            kTimedOut, -1, 2, "", kUnsaid, kUnsaid, kUnsaid},
        WatchdogCase{
            "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, TensorShape=[4, 8], Timeout(ms)=1800000) ran for "
            "1 milliseconds",
            kTimedOut, -1, 2, "", 9, kUnsaid, kUnsaid},
        WatchdogCase{
            "[rank5]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught "
            "collective "
            "operation timeout: WorkNCCL(SeqNum=9, OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=32, "
            "Timeout(ms)=600000) ran for 600061 milliseconds before timing out.",
            kTimedOut, 5, 2, "", 9, kUnsaid, kUnsaid},
        WatchdogCase{"[rank5]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:1664] [PG 1 Rank 2] Exception "
                     "(either an error or "
                     "timeout) detected by watchdog at work: 9, last enqueued NCCL work: 10, last "
                     "completed NCCL work: 8.",
                     kPosition, 5, 2, "PG 1", 9, 10, 8},
        WatchdogCase{"[rank5]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank "
                     "5] Timeout at NCCL "
                     "work: 9, last enqueued NCCL work: 10, last completed NCCL work: 8.",
                     kPosition, 5, 5, "PG 0", 9, 10, 8},
        WatchdogCase{"[rank5]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:1834] [PG ID 2 PG GUID 37(tp) "
                     "Rank 1] Work timeout is "
                     "detected by watchdog at work: 9, last enqueued NCCL work: 10, last completed "
                     "NCCL work: 8.",
                     kPosition, 5, 1, "GUID 37", 9, 10, 8},
        WatchdogCase{"[rank5]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:1] [PG ID 2 PG GUID 37 Rank "
                     "1] PG status: last enqueued "
                     "work: 10, last started work: 9, last completed work: 8",
                     kPosition, 5, 1, "GUID 37", kUnsaid, 10, 8},
        WatchdogCase{"[rank0]:[E418 01:32:50.9 ProcessGroupNCCL.cpp:1890] [PG ID 0 PG GUID "
                     "0(default_pg) Rank 0] Received a "
                     "dump signal due to a collective timeout from  rank 1 and we will try our "
                     "best. Last enqueued NCCL work: "
                     "10, last completed NCCL work: 10.This is most likely",
                     LogWatchdog::Kind::dump_signal, 0, 0, "GUID 0", kUnsaid, 10, 10}));

TEST(NcclLogWatchdog, WrappedLinesAreJoined) {
  const LogFacts facts = facts_of(
      "x.log [stderr] [rank3]:[E909 09:55:46.9 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank "
      "3] Timeout at NCCL work: "
      "2070, last enqueued \nNCCL work: 2082, last completed NCCL work: 2069.\n"
      "y [rank13]:[E909 09:55:30.4 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 13] Process "
      "group watchdog thread "
      "terminated with \nexception: [Rank 13] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=2070, "
      "OpType=REDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600068 \nmilliseconds "
      "before timing out.\n");
  ASSERT_EQ(facts.watchdog.size(), 2U);
  EXPECT_EQ(facts.watchdog[0].enqueued, 2082);
  EXPECT_EQ(facts.watchdog[1].rank, 13);
  EXPECT_EQ(facts.watchdog[1].seq, 2070);
}

TEST(NcclLogEvents, OfWarnings) {
  const auto kind_of = [](std::string_view message) {
    const LogFacts facts =
        facts_of("node-a:42:43 [3] transport/x.cc:9 NCCL WARN " + std::string(message) + "\n");
    return facts.events.empty() ? LogEventKind::result_row : facts.events[0].kind;
  };
  EXPECT_EQ(kind_of("Cuda failure 'out of memory'"), LogEventKind::out_of_memory);
  EXPECT_EQ(kind_of("Cuda failure 2 'out of memory'"), LogEventKind::out_of_memory);
  EXPECT_EQ(kind_of("Cuda failure 'an illegal memory access was encountered'"),
            LogEventKind::cuda_failure);
  EXPECT_EQ(kind_of("HIP failure 'invalid argument'"), LogEventKind::cuda_failure);
  EXPECT_EQ(kind_of("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"),
            LogEventKind::duplicate_gpu);
  EXPECT_EQ(kind_of("NET/IB : Got completion from peer 1.2.3.4<5> with error 12, opcode 0, len 0, "
                    "vendor err 129"),
            LogEventKind::ib_completion);
  EXPECT_EQ(kind_of("NET/IB: Got completion from peer 1.2.3.4<5> with "
                    "status=IBV_WC_RETRY_EXC_ERR(12) opcode=x(0)"),
            LogEventKind::ib_completion);
  EXPECT_EQ(kind_of("NET/IB : mlx5_0:1 Got async event : port error"), LogEventKind::ib_event);
  EXPECT_EQ(kind_of("NET/IB : mlx5_0:1 Got async event : GID table change"),
            LogEventKind::result_row);
  EXPECT_EQ(kind_of("Connect to 10.0.0.1<44091> failed : Connection refused"),
            LogEventKind::connect_failed);
  EXPECT_EQ(kind_of("Call to connect failed : Connection timed out"), LogEventKind::connect_failed);
  EXPECT_EQ(kind_of("Net : Call to recv from 10.0.0.1<44091> failed : Broken pipe"),
            LogEventKind::peer_gone);
  EXPECT_EQ(kind_of("Net : Connection closed by remote peer node-b<1>"), LogEventKind::peer_gone);
  EXPECT_EQ(kind_of("Message truncated : received 8 bytes instead of 4"), LogEventKind::truncated);
  EXPECT_EQ(kind_of("Error : ring 2 does not loop back to start (7 != 2)"), LogEventKind::topology);
  EXPECT_EQ(kind_of("Failed to open libibverbs.so[.1]"), LogEventKind::result_row);
  EXPECT_EQ(kind_of("Something new"), LogEventKind::other_warning);
}

TEST(NcclLogEvents, BackTracesAndTheirLookAlikes) {
  EXPECT_EQ(facts_of(info("group.cc:64 -> 3 [Async thread]")).events.size(), 1U);
  const LogFacts none = facts_of(info("init.cc:2353 Cuda Host Alloc Size 4 pointer 0x7f") +
                                 info("misc/utils.cc:297 memory stack hunk malloc(65536)") +
                                 info("Connected to proxy localRank 0 -> connection 0x7f"));
  EXPECT_TRUE(none.events.empty());
  EXPECT_EQ(none.unknown, 0);
}

TEST(NcclLog, UnknownLinesAreCountedByShape) {
  const Witness witness = read_log_text(info("Frobnicating 12 at 0x7f") +
                                        info("Frobnicating 13 at 0x80") + info("Other 1"));
  EXPECT_EQ(witness.log->unknown, 3);
  EXPECT_EQ(witness.notes.count(Note::unknown_log_line), 3);
  EXPECT_EQ(witness.notes.example(Note::unknown_log_line),
            "2 x \"Frobnicating # at #\"; 1 x \"Other #\"");
}

TEST(NcclLog, IsToldByContent) {
  const WitnessFormat* log = find_witness_format("nccl_log");
  EXPECT_TRUE(log->sniff("training...\nnode-a:42:43 [3] NCCL INFO x"));
  EXPECT_TRUE(log->sniff("node-a:42:43 [0] INFO NET : Using"));
  EXPECT_TRUE(log->sniff("[rank3]:[E1 x ProcessGroupNCCL.cpp:1] y"));
  EXPECT_FALSE(log->sniff("{\"a\": \"NCCL INFO x\"}"));
  EXPECT_FALSE(log->sniff("nothing of the kind"));
  EXPECT_FALSE(log->sniff(""));
}

}  // namespace
}  // namespace commlens
