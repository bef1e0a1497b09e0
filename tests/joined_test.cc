// Logs and dumps beside timelines: jobs, log text and answers are written by hand.
#include "match/joined.h"

#include <gtest/gtest.h>

#include <random>

#include "ingest/measured_format.h"
#include "log_job.h"
#include "made_job.h"
#include "match/call_order.h"

namespace commlens {
namespace {

using made::Comm;

constexpr Ns kNow = 1'700'000'000'000'000'000;

// A line of the process with this id on host node-a.
std::string line(int pid, const std::string& message) {
  return "node-a:" + std::to_string(pid) + ":" + std::to_string(pid) + " [0] NCCL INFO " + message +
         "\n";
}

// Initialisation of a communicator of two ranks, with what stands between its lines.
std::string init(int pid, const std::string& comm, int rank, const std::string& id,
                 const std::string& inside = "") {
  const std::string text = "ncclCommInitRank comm " + comm + " rank " + std::to_string(rank) +
                           " nranks 2 cudaDev 0 nvmlDev 0 busId 3b000 commId " + id + " - Init ";
  return line(pid, text + "START") + inside + line(pid, text + "COMPLETE");
}

// One call of 4-byte elements. `number`: NCCL's opCount, of one digit or two.
std::string call(int pid, const std::string& comm, const std::string& op, int count,
                 int number = 0) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto digit = [kHex](int value) { return kHex[static_cast<std::size_t>(value % 16)]; };
  return line(pid, op + ": opCount " + digit(number / 16) + digit(number) +
                       " sendbuff 0x7f0 recvbuff 0x7f1 count " + std::to_string(count) +
                       " datatype 7 op 0 root 0 comm " + comm + " [nranks=2] stream 0x55");
}

std::string tuned(int pid, const std::string& op, int bytes, const std::string& choice) {
  return line(pid, op + ": " + std::to_string(bytes) + " Bytes -> " + choice);
}

GroupIdentity pair_of(const std::string& name, const std::string& description) {
  return {.name = name, .description = description, .size = 2, .ranks = {0, 1}};
}

// Operations one after the other: of a letter's kind, "A" an all-reduce of 1024 bytes, "B" one of
// 4096, "G" an all-gather of 2048 in all.
std::vector<Comm> operations(const std::string& letters, std::int32_t group = 0,
                             bool numbered = false) {
  std::vector<Comm> comm;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const Ns start = kNow + static_cast<Ns>(i) * 1'000'000 + group * 1'000;
    Comm one{.start = start, .end = start + 100'000, .group = group};
    if (numbered) one.seq = static_cast<std::int64_t>(i) + 1;
    if (letters[i] == 'B') one.bytes = 4096;
    if (letters[i] == 'G') {
      one.op = Op::all_gather;
      one.bytes = 2048;
    }
    comm.push_back(one);
  }
  return comm;
}

// Other characters are lines that were lost.
std::string calls(int pid, const std::string& comm, const std::string& letters,
                  bool counted = false) {
  std::string text;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const int number = counted ? static_cast<int>(i) : 0;
    if (letters[i] == 'A') text += call(pid, comm, "AllReduce", 256, number);
    if (letters[i] == 'B') text += call(pid, comm, "AllReduce", 1024, number);
    if (letters[i] == 'G') text += call(pid, comm, "AllGather", 256, number);
  }
  return text;
}

// Rank 0 of two, process 100 on node-a.
Job rank_zero(std::vector<GroupIdentity> groups, std::vector<Comm> comm) {
  Job job =
      made::job({{.rank = 0, .host = "node-a", .groups = std::move(groups), .comm = comm}}, 2);
  for (RankTimeline& rank : job.ranks) {
    rank.recording.process = 100;
    rank.devices[0].exposures.assign(rank.devices[0].comm.size(), Exposure{.starts_inside = true});
    for (CommOp& op : rank.devices[0].comm)
      op.name = rank.recording.strings.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)");
  }
  return job;
}

Joined join(const Job& job, const std::string& log) {
  std::vector<Witness> witnesses;
  witnesses.push_back(read_log_text(log));
  return join_witnesses(job, witnesses, {});
}

// "all_reduce 1024 dp[0,1] 3/3 ncclAllReduce RING LL 4 P2P/CUMEM - order likely", one a line.
std::string words(const Joined& joined) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  std::string text;
  for (const JoinedRow& row : joined.rows) {
    text += std::string(op_name(row.op)) + " " + std::to_string(row.bytes.value_or(-1)) + " " +
            row.group + " " + std::to_string(row.witnessed) + "/" + std::to_string(row.count) +
            " " + or_dash(row.host_call) + " " + or_dash(row.algorithm) + " " +
            or_dash(row.protocol) + " " + (row.channels ? std::to_string(*row.channels) : "-") +
            " " + or_dash(row.transport) + " " + or_dash(row.nic) + " " +
            (row.by ? std::string(joined_by_name(*row.by)) : "-") + " " +
            (row.confidence ? std::string(confidence_name(*row.confidence)) : "-") + "\n";
  }
  return text;
}

TEST(CallOrder, LostLinesAndOperationsLeaveGaps) {
  const auto events = [](const std::string& letters) {
    std::vector<CommEvent> made;
    for (const char letter : letters) {
      made.push_back({});
      made.back().op = Op::all_reduce;
      made.back().bytes = letter;
    }
    return made;
  };
  const auto rows = [&](const std::string& ops, const std::string& called) {
    return lay_beside(events(ops), events(called)).call_of;
  };
  // The recording begins in the middle of what was called.
  EXPECT_EQ(rows("BBC", "ABBCABBC"), (std::vector<std::int32_t>{1, 2, 3}));
  // The call of D is lost; what follows is not shifted.
  EXPECT_EQ(rows("ABCDEFGH", "ABCEFGH"), (std::vector<std::int32_t>{0, 1, 2, -1, 3, 4, 5, 6}));
  // The operation D was not recorded.
  EXPECT_EQ(rows("ABCEFGH", "ABCDEFGH"), (std::vector<std::int32_t>{0, 1, 2, 4, 5, 6, 7}));
  // The first calls are lost: found from behind.
  EXPECT_EQ(rows("ABCDEFGH", "DEFGH"), (std::vector<std::int32_t>{-1, -1, -1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(lay_beside(events("AAAA"), events("BBBBBBBB")).paired, 0U);
  EXPECT_EQ(lay_beside({}, events("AB")).paired, 0U);
}

TEST(CallOrder, WhatIsLeftOfCallsMayBeTheOperations) {
  const auto events = [](const std::string& letters) {
    std::vector<CommEvent> made;
    for (const char letter : letters) {
      made.push_back({});
      made.back().op = Op::all_reduce;
      made.back().bytes = letter;
    }
    return made;
  };
  const auto may = [&](const std::string& ops, const std::string& calls,
                       const std::vector<std::int64_t>& lost) {
    return may_have_lost(events(ops), events(calls), lost);
  };
  // Of A B C D E F the lines of B, C and E are left out; what is in between has its place.
  EXPECT_TRUE(may("ABCDEF", "ADF", {0, 2, 1}));
  EXPECT_FALSE(may("ABCDEF", "ADF", {0, 1, 1}));
  EXPECT_FALSE(may("ABCDEF", "ADF", {0, 0, 0}));
  EXPECT_TRUE(may("CDEF", "ADF", {0, 2, 1}));
  EXPECT_FALSE(may("CDEF", "BBBB", {0, 2, 1, 0}));
  // Lines that were lost alone are nothing that fits.
  EXPECT_FALSE(may("BC", "AD", {0, 2}));
  const auto remains = [&](const std::string& ops, const std::string& calls) {
    return longest_remains(events(ops), events(calls));
  };
  EXPECT_EQ(remains("ABCDEF", "ADF"), 3U);
  EXPECT_EQ(remains("ABCDEF", "XADXF"), 2U);
  EXPECT_EQ(remains("ABCDEF", "FDA"), 1U);
  EXPECT_EQ(remains("ABCDEF", "XY"), 0U);
  EXPECT_EQ(remains("", "XY"), 0U);
}

TEST(Joined, OperationsAreToldByTheLogOfTheirProcess) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("AAGA"));
  const std::string log =
      line(100, "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>") +
      init(100, "0x10", 0, "0xabc",
           line(100, "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/1/GDRDMA") +
               line(100, "Channel 00/0 : 1[1] -> 0[0] [receive] via NET/IB/1/GDRDMA")) +
      call(100, "0x10", "AllReduce", 256) +
      tuned(100, "AllReduce", 1024, "Algo RING proto LL channel{Lo..Hi}={0..3}") +
      call(100, "0x10", "AllReduce", 256) + call(100, "0x10", "AllGather", 256) +
      tuned(100, "AllGather", 1024, "Algo TREE proto SIMPLE channel{Lo..Hi}={0..0}") +
      call(100, "0x10", "AllReduce", 256) + call(100, "0x10", "AllReduce", 256);
  const Joined joined = join(job, log);
  // An all-gather of 256 floats a rank is 2048 bytes in all; the tuner's line counts one rank's.
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 3/3 ncclAllReduce RING LL 4 NET/IB/GDRDMA mlx5_1:1/RoCE order "
            "likely\n"
            "all_gather 2048 dp[0,1] 1/1 ncclAllGather TREE SIMPLE 1 NET/IB/GDRDMA mlx5_1:1/RoCE "
            "order likely\n");
  EXPECT_EQ(joined.rows[0].kernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(joined.operations, 4);
  EXPECT_EQ(joined.without_witness, 0);
  EXPECT_EQ(joined.calls, 5);
  EXPECT_EQ(joined.calls_without_operation, 1);
}

TEST(Joined, NumbersOfBothSidesDecide) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABABABAB", 0, true));
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABABABABAB");
  EXPECT_EQ(words(join(job, log)),
            "all_reduce 1024 dp[0,1] 4/4 ncclAllReduce - - - - - sequence certain\n"
            "all_reduce 4096 dp[0,1] 4/4 ncclAllReduce - - - - - sequence certain\n");
}

// A log names no group, and may have lost lines: what looks like another communicator's calls can
// be what is left of the right one's.
TEST(Joined, NumbersOfOneOfSeveralCommunicatorsAreLikely) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABABABAB", 0, true));
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABABABABAB");
  const std::string other = init(100, "0x20", 0, "0xdef");
  const std::string likely =
      "all_reduce 1024 dp[0,1] 4/4 ncclAllReduce - - - - - sequence likely\n"
      "all_reduce 4096 dp[0,1] 4/4 ncclAllReduce - - - - - sequence likely\n";
  EXPECT_EQ(words(join(job, log + other + calls(100, "0x20", "GGGG"))), likely);
  EXPECT_EQ(words(join(job, log + other)), likely);
  // One of four ranks, and one in which the process is rank 1, cannot be meant.
  std::string larger = other;
  for (std::size_t at = 0; (at = larger.find("nranks 2", at)) != std::string::npos; ++at)
    larger.replace(at, 8, "nranks 4");
  const std::string second = init(100, "0x30", 1, "0xfed");
  EXPECT_EQ(words(join(job, log + larger + second)),
            "all_reduce 1024 dp[0,1] 4/4 ncclAllReduce - - - - - sequence certain\n"
            "all_reduce 4096 dp[0,1] 4/4 ncclAllReduce - - - - - sequence certain\n");
}

TEST(Joined, TwoGroupsAlikeAreRefused) {
  std::vector<Comm> comm = operations("AAAA", 0);
  for (const Comm& one : operations("AAAA", 1)) comm.push_back(one);
  const Job job = rank_zero({pair_of("1", "dp"), pair_of("2", "ep")}, comm);
  const std::string both = init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef") +
                           calls(100, "0x10", "AAAA") + calls(100, "0x20", "AAAA");
  const Joined joined = join(job, both);
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 0/4 - - - - - - - undecidable\n"
            "all_reduce 1024 ep[0,1] 0/4 - - - - - - - undecidable\n");
  EXPECT_EQ(joined.rows[0].reason,
            "nccl_log: 2 communicators have its size and fit its operations equally well");
  EXPECT_EQ(joined.calls_without_operation, 8);
  // One communicator's lines alone: either group could be it.
  const Joined half = join(job, init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "AAAA"));
  EXPECT_EQ(half.rows[0].confidence, Confidence::undecidable);
  EXPECT_EQ(half.rows[0].reason,
            "nccl_log: 2 groups of the rank fit the same communicator equally well");
}

TEST(Joined, TheCommunicatorsIdentifierTellsGroupsAlikeApart) {
  std::vector<Comm> comm = operations("AAAA", 0);
  for (const Comm& one : operations("AAAA", 1)) comm.push_back(one);
  GroupIdentity first = pair_of("0xabc", "");
  GroupIdentity second = pair_of("0xdef", "");
  const Job job = rank_zero({first, second}, comm);
  const std::string log =
      init(100, "0x10", 0, "0xabc", line(100, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read")) +
      init(100, "0x20", 0, "0xdef", line(100, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct")) +
      calls(100, "0x10", "AAAA") + tuned(100, "AllReduce", 1024, "Algo RING proto LL") +
      calls(100, "0x20", "AAAA") + tuned(100, "AllReduce", 1024, "Algo NVLS proto SIMPLE");
  EXPECT_EQ(words(join(job, log)),
            "all_reduce 1024 group 0xabc[0,1] 4/4 ncclAllReduce RING LL - P2P/CUMEM - communicator "
            "certain\n"
            "all_reduce 1024 group 0xdef[0,1] 4/4 ncclAllReduce NVLS SIMPLE - SHM - communicator "
            "certain\n");
}

TEST(Joined, LostCallLinesLeaveTheirOperationsWithoutWitness) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABGAABGB"));
  // The line of the third A is lost.
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABGABGB");
  const Joined joined = join(job, log);
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 2/3 ncclAllReduce - - - - - order likely\n"
            "all_reduce 4096 dp[0,1] 3/3 ncclAllReduce - - - - - order likely\n"
            "all_gather 2048 dp[0,1] 2/2 ncclAllGather - - - - - order likely\n");
  EXPECT_EQ(joined.without_witness, 1);
  EXPECT_EQ(joined.calls_without_operation, 0);
}

// Two communicators make the same calls, and one of them has lost most of its lines: by their
// numbers what is left of them stands where it would.
TEST(Joined, WhatHasLostMostOfItsLinesMayBeMeant) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABBABGAABGBABA"));
  const std::string start = init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef");
  const std::string whole = calls(100, "0x10", "ABBABGAABGBABA", true);
  const Joined both = join(job, start + whole + calls(100, "0x20", "...A...A..B...", true));
  EXPECT_EQ(both.without_witness, 14);
  EXPECT_EQ(both.rows[0].reason,
            "nccl_log: 2 communicators have its size and fit its operations equally well");
  // Other calls, or some of them at other places.
  for (const std::string& other : {std::string("...B...B..A..."), std::string("A..B..A..B..AA"),
                                   std::string("GG..........GG"), std::string("GGGGGGGGGGGGGG")}) {
    EXPECT_EQ(join(job, start + whole + calls(100, "0x20", other, true)).without_witness, 0)
        << other;
  }
}

// Numbers of calls count lines that were lost: the fourth line can be of the fifth operation.
TEST(Joined, LostLinesAreCounted) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABGABGABGABG", 0, true));
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABGA.GABGABG", true);
  const Joined joined = join(job, log);
  EXPECT_EQ(joined.without_witness, 1);
  EXPECT_EQ(joined.rows[0].by, JoinedBy::sequence);
  EXPECT_EQ(joined.rows[0].confidence, Confidence::likely);
}

TEST(Joined, ALogOfAnotherRunIsRefused) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABAB"));
  const std::string log = init(200, "0x10", 0, "0xabc") + calls(200, "0x10", "ABAB");
  const Joined joined = join(job, log);
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 0/2 - - - - - - - -\n"
            "all_reduce 4096 dp[0,1] 0/2 - - - - - - - -\n");
  EXPECT_EQ(joined.inputs[0].reason,
            "none of its processes is that of rank 0 (pid 100): it may be of another run");
  // The same process id, but another rank of the job.
  const Joined other = join(job, init(100, "0x10", 1, "0xabc") + calls(100, "0x10", "ABAB"));
  EXPECT_NE(other.inputs[0].reason, "");
  // The same process id and rank, but other calls.
  const Joined calls_differ =
      join(job, init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "GGGGG"));
  EXPECT_EQ(calls_differ.rows[0].confidence, Confidence::undecidable);
}

// What a plugin measured in process 100: all-reduces of 1024 bytes in one communicator, call by
// call.
Measured measured(const std::string& communicator, int count, const std::string& algorithm) {
  Measured file;
  file.path = "plugin.json";
  file.format = "plugin_trace";
  file.process = 100;
  file.host = "node-a";
  const std::uint32_t group =
      file.add_group({.id = communicator, .name = {}, .size = 2, .nodes = 1, .ranks = {}});
  for (int i = 0; i < count; ++i) {
    MeasuredCall call;
    call.group = group;
    call.op = Op::all_reduce;
    call.rank = 0;
    call.bytes = 1024;
    call.channels = 2;
    call.algorithm = file.strings.intern(algorithm);
    call.protocol = file.strings.intern("LL");
    file.calls.push_back(call);
  }
  return file;
}

// A timeline that does not tell its process, but its host: what ran elsewhere is not it.
TEST(Joined, WithoutIdsTheRankOfAnotherHostIsRefused) {
  Job job = rank_zero({pair_of("1", "dp")}, operations("ABAB"));
  job.ranks[0].recording.process = kUnknown;
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABAB");
  job.ranks[0].recording.host = "node-a.cluster";
  EXPECT_EQ(join(job, log).inputs[0].reason, "");
  job.ranks[0].recording.host = "node-b";
  EXPECT_EQ(join(job, log).inputs[0].reason,
            "none of its processes is that of rank 0: it may be of another run");
  std::vector<Measured> files;
  files.push_back(measured("0xabc", 5, "RING"));
  files[0].rank = 0;
  EXPECT_EQ(join_witnesses(job, {}, files).inputs[0].reason,
            "there is no timeline of its process or rank");
  job.ranks[0].recording.host = "node-a";
  EXPECT_EQ(join_witnesses(job, {}, files).inputs[0].reason, "");
}

// Each line of `log` with this date before it.
std::string dated(const std::string& date, const std::string& log) {
  std::string text;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = log.find('\n', at) + 1;
    text += "[" + date + " 12:00:00] " + log.substr(at, end - at);
    at = end;
  }
  return text;
}

// kNow is 2023-11-14 22:13:20 UTC; the log's zone is not known.
TEST(Joined, ALogOfAnotherTimeIsRefused) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("ABAB", 0, true));
  const std::string setup = init(100, "0x10", 0, "0xabc");
  const std::string called = calls(100, "0x10", "ABAB");
  const auto reason = [&job](const std::string& log) { return join(job, log).inputs[0].reason; };
  EXPECT_EQ(reason(setup + called), "");
  EXPECT_EQ(reason(dated("2023-11-14", setup + called)), "");
  EXPECT_EQ(reason(dated("2023-11-15", setup + called)), "");
  EXPECT_EQ(reason(dated("2022-11-14", setup + called)),
            "its calls were written 365 days before the recording: they are of another run, or of "
            "another part of this one");
  EXPECT_EQ(
      reason(dated("2024-11-14", setup + called)),
      "it was written 365 days after the recording: it is of another run, or of another part of "
      "this one");
  // The job was started days before it was recorded.
  EXPECT_EQ(reason(dated("2023-11-10", setup) + dated("2023-11-14", called)), "");
  EXPECT_EQ(reason(dated("2023-11-10", setup)), "");
  // Lines behind the last date can be of any later time, those before the first of any earlier.
  EXPECT_EQ(reason(dated("2023-11-10", setup) + called), "");
  EXPECT_EQ(reason(setup + called + dated("2023-12-24", line(100, "Connected all rings"))), "");
  // Dates that a line speaks of, or that stand in a path, are not when it was written.
  const auto behind = [&](const std::string& before) {
    std::string text;
    for (const std::string& part : {setup, called}) {
      for (std::size_t at = 0; at < part.size();) {
        const std::size_t end = part.find('\n', at) + 1;
        text += before + part.substr(at, end - at);
        at = end;
      }
    }
    return text;
  };
  EXPECT_EQ(reason(behind("/logs/2022-11-14_10:00:00/rank0.log:")), "");
  EXPECT_EQ(reason("License valid until 2027-01-01 00:00:00 " + setup + called), "");
}

TEST(Joined, AProcessThatSeveralRanksCanHaveIsNobodys) {
  Job job = made::job(
      {{.rank = 0, .host = "", .groups = {pair_of("1", "dp")}, .comm = operations("AAAA")},
       {.rank = 1, .host = "", .groups = {pair_of("1", "dp")}, .comm = operations("AAAA")}},
      2);
  for (RankTimeline& rank : job.ranks) {
    rank.recording.process = 100;
    rank.devices[0].exposures.assign(rank.devices[0].comm.size(), Exposure{.starts_inside = true});
  }
  // No line says the rank: the initialisation is lost.
  const Joined joined = join(job, calls(100, "0x10", "AAAA"));
  EXPECT_EQ(words(joined), "all_reduce 1024 dp[0,1] 0/8 - - - - - - - -\n");
  EXPECT_EQ(joined.inputs[0].reason, "several timelines can be of its process or rank");
  EXPECT_EQ(joined.calls_without_operation, 4);
  // With it there is one rank that it can be.
  const Joined told = join(job, init(100, "0x10", 1, "0xabc") + calls(100, "0x10", "AAAA"));
  EXPECT_EQ(told.calls_without_operation, 0);
  EXPECT_EQ(told.inputs[0].reason, "");
}

// Two recordings of one rank are of one process; a call that both hold counts once.
TEST(Joined, RecordingsOfOneRankShareItsCalls) {
  Job job = rank_zero({pair_of("1", "dp")}, operations("ABAB"));
  Job again = rank_zero({pair_of("1", "dp")}, operations("ABAB"));
  again.ranks[0].run = 1;
  job.ranks.push_back(std::move(again.ranks[0]));
  const Joined joined = join(job, init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABAB"));
  EXPECT_EQ(joined.rows[0].witnessed, 4);
  EXPECT_EQ(joined.inputs[0].joined, 4);
  EXPECT_EQ(joined.calls_without_operation, 0);
}

// What a log says of one rank contradicts the timeline: that process is refused and named, the
// other one is joined.
TEST(Joined, AProcessOfAnotherRankIsNamed) {
  Job job = rank_zero({pair_of("1", "dp")}, operations("ABAB"));
  Job other = rank_zero({pair_of("1", "dp")}, operations("ABAB"));
  other.ranks[0].rank = 1;
  other.ranks[0].recording.process = 101;
  job.ranks.push_back(std::move(other.ranks[0]));
  const Joined joined = join(job, init(100, "0x10", 1, "0xabc") + calls(100, "0x10", "ABAB") +
                                      init(101, "0x20", 1, "0xabc") + calls(101, "0x20", "ABAB"));
  EXPECT_EQ(joined.inputs[0].joined, 4);
  EXPECT_EQ(joined.inputs[0].reason,
            "its process 100 on node-a is rank 1 there, but rank 0 by the timeline");
}

// Rank 0's log tells its operations for certain, rank 1's fits nothing.
TEST(Joined, WhatFitsNothingOnOneRankIsNotCertain) {
  Job job = rank_zero({pair_of("1", "dp")}, operations("ABAB", 0, true));
  Job other = rank_zero({pair_of("1", "dp")}, operations("ABAB", 0, true));
  other.ranks[0].rank = 1;
  other.ranks[0].recording.process = 101;
  job.ranks.push_back(std::move(other.ranks[0]));
  const Joined joined = join(job, init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABAB") +
                                      init(101, "0x20", 1, "0xabc") + calls(101, "0x20", "GGGG"));
  EXPECT_NE(joined.rows[0].reason, "");
  EXPECT_EQ(joined.rows[0].confidence, Confidence::likely);
}

TEST(Joined, WithoutCallsTheOnlyCommunicatorWithTheseMembersTells) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("AA"));
  const std::string ways = line(100, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read");
  EXPECT_EQ(words(join(job, init(100, "0x10", 0, "0xabc", ways))),
            "all_reduce 1024 dp[0,1] 0/2 - - - - P2P/CUMEM - members likely\n");
  const Joined two = join(job, init(100, "0x10", 0, "0xabc", ways) + init(100, "0x20", 0, "0xdef"));
  EXPECT_EQ(words(two), "all_reduce 1024 dp[0,1] 0/2 - - - - - - - undecidable\n");
}

// As operations(), on a stream, of no group.
std::vector<Comm> ungrouped(const std::string& letters, std::int64_t stream = 0) {
  std::vector<Comm> comm = operations(letters, static_cast<std::int32_t>(stream));
  for (Comm& one : comm) {
    one.group = -1;
    one.stream = stream;
  }
  return comm;
}

// A timeline that names no group: one communicator's calls are the stream's operations.
TEST(Joined, WithoutGroupsTheOrderOfAStreamTells) {
  const Job job = rank_zero({}, ungrouped("ABAAB"));
  const std::string log = init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef") +
                          calls(100, "0x10", "ABAABABAAB") +
                          tuned(100, "AllReduce", 4096, "Algo RING proto LL") +
                          calls(100, "0x20", "AGAGA");
  const Joined joined = join(job, log);
  EXPECT_EQ(words(joined),
            "all_reduce 1024 communicator 0xabc 3/3 ncclAllReduce - - - - - order likely\n"
            "all_reduce 4096 communicator 0xabc 2/2 ncclAllReduce RING LL - - - order likely\n");
  EXPECT_EQ(joined.calls_without_operation, 10);
  // The other one alone: three of its five operations.
  EXPECT_EQ(words(join(job, init(100, "0x20", 0, "0xdef") + calls(100, "0x20", "AGAGAAGA"))),
            "all_reduce 1024  0/3 - - - - - - - undecidable\n"
            "all_reduce 4096  0/2 - - - - - - - undecidable\n");
}

// Where the timeline knows no sizes, the tuner's choice is that of the joined call's size:
// all-reduces of 1024 and 4096 bytes, and an all-gather of 1024 a rank.
TEST(Joined, TheJoinedCallsSizeTellsTheTunersChoice) {
  std::vector<Comm> comm = ungrouped("ABAAG");
  for (Comm& one : comm) one.bytes = -1;
  const Job job = rank_zero({}, comm);
  std::string log = init(100, "0x10", 0, "0xabc");
  for (const char letter : std::string("ABAAG")) {
    log += calls(100, "0x10", {letter});
    const std::string op = letter == 'G' ? "AllGather" : "AllReduce";
    log += tuned(100, op, letter == 'B' ? 4096 : 1024,
                 std::string("Algo RING proto ") + (letter == 'G' ? "SIMPLE" : "LL") +
                     " channel{Lo..Hi}={0..1}");
  }
  EXPECT_EQ(words(join(job, log)),
            "all_reduce -1 communicator 0xabc 4/4 ncclAllReduce RING LL 2 - - order likely\n"
            "all_gather -1 communicator 0xabc 1/1 ncclAllGather RING SIMPLE 2 - - order likely\n");
}

TEST(Joined, WithoutGroupsTwoCommunicatorsAlikeAreRefused) {
  const Job job = rank_zero({}, ungrouped("ABAAB"));
  const Joined joined = join(job, init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef") +
                                      calls(100, "0x10", "ABAAB") + calls(100, "0x20", "ABAAB"));
  EXPECT_EQ(words(joined),
            "all_reduce 1024  0/3 - - - - - - - undecidable\n"
            "all_reduce 4096  0/2 - - - - - - - undecidable\n");
  EXPECT_EQ(joined.rows[0].reason,
            "nccl_log: the timeline does not name its group, and 2 communicators fit its stream's "
            "operations");
  EXPECT_EQ(joined.without_witness, 5);
  EXPECT_EQ(joined.calls_without_operation, 10);
}

// Equal operations tell nothing, but that no other communicator of a whole log calls them.
TEST(Joined, WithoutGroupsEqualOperationsNeedAWholeLog) {
  const Job job = rank_zero({}, ungrouped("AAAAA"));
  const std::string called = calls(100, "0x10", "AAAAAAA");
  EXPECT_EQ(words(join(job, init(100, "0x10", 0, "0xabc") + called)),
            "all_reduce 1024 communicator 0xabc 5/5 ncclAllReduce - - - - - order likely\n");
  const Joined cut = join(job, called);  // begins in the middle: others may have called the same
  EXPECT_EQ(words(cut), "all_reduce 1024  0/5 - - - - - - - undecidable\n");
  EXPECT_EQ(cut.rows[0].reason,
            "nccl_log: the timeline does not name its group, and its stream's operations are too "
            "much alike to tell the communicator");
  std::vector<Measured> files;
  files.push_back(measured("0xabc", 5, "RING"));
  EXPECT_EQ(words(join_witnesses(job, {}, files)),
            "all_reduce 1024  0/5 - - - - - - - undecidable\n");
  // Too few.
  EXPECT_EQ(words(join(rank_zero({}, ungrouped("ABA")),
                       init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABA"))),
            "all_reduce 1024  0/2 - - - - - - - undecidable\n"
            "all_reduce 4096  0/1 - - - - - - - undecidable\n");
}

// One stream with the operations of two communicators: what only one of them calls is its own.
TEST(Joined, WithoutGroupsAStreamOfTwoCommunicatorsIsTakenApart) {
  const Job job = rank_zero({}, ungrouped("ABGABGABGABG"));
  const std::string start = init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef");
  const auto join_calls = [&](const std::string& first, const std::string& second) {
    return join(job, start + calls(100, "0x10", first, true) + calls(100, "0x20", second, true));
  };
  // In a row; the recording holds a part of the calls.
  const std::string apart =
      "all_reduce 1024 communicator 0xabc 4/4 ncclAllReduce - - - - - order likely\n"
      "all_reduce 4096 communicator 0xabc 4/4 ncclAllReduce - - - - - order likely\n"
      "all_gather 2048 communicator 0xdef 4/4 ncclAllGather - - - - - order likely\n";
  EXPECT_EQ(words(join_calls("BABABABABA", "GGGGGG")), apart);
  const std::string shared =
      "nccl_log: the timeline does not name its group, and its stream holds operations of several "
      "communicators";
  struct Case {
    std::string first;
    std::string second;
    std::string reason;
  };
  for (const Case& each :
       {// Either can have called the first kind, once in the whole job.
        Case{"ABABABAB", "GGGGA", shared + ", 4 of which are called by more than one"},
        // Others between those of the stream.
        Case{"ABABBABAB", "GGGG", shared + ", whose calls are others between these"},
        // A line was lost, of which nobody knows whose kind it is.
        Case{"ABABABAB", "GG.GG", shared + ", and calls of these may be missing"}}) {
    const Joined joined = join_calls(each.first, each.second);
    EXPECT_EQ(joined.without_witness, 12) << each.reason;
    for (const JoinedRow& row : joined.rows) {
      EXPECT_EQ(row.confidence, Confidence::undecidable);
      EXPECT_EQ(row.reason, each.reason);
    }
  }
  // A log that begins in the middle.
  const Joined cut = join(job, calls(100, "0x10", "ABABABAB") + calls(100, "0x20", "GGGG"));
  EXPECT_EQ(cut.rows[0].reason, shared + ", and calls of these may be missing");
  // Three communicators, one of which calls nothing that the stream holds.
  EXPECT_EQ(words(join(job, start + init(100, "0x30", 0, "0xfff") + calls(100, "0x10", "ABABABAB") +
                                calls(100, "0x20", "GGGG") + call(100, "0x30", "Reduce", 256))),
            apart);
  // Too few of one of them: these are nobody's, the others stay.
  const Joined few = join(rank_zero({}, ungrouped("ABGABGABG")),
                          start + calls(100, "0x10", "ABABABAB") + calls(100, "0x20", "GGG"));
  EXPECT_EQ(few.without_witness, 3);
}

// Without sizes any call of the operation fits: then none may be missing.
TEST(Joined, WithoutGroupsAndSizesNoCallMayBeMissing) {
  std::vector<Comm> comm = ungrouped("AGAAGAGG");
  for (Comm& one : comm) one.bytes = -1;
  const Job job = rank_zero({}, comm);
  const std::string start = init(100, "0x10", 0, "0xabc");
  EXPECT_EQ(words(join(job, start + calls(100, "0x10", "AGAAGAGG"))),
            "all_reduce -1 communicator 0xabc 4/4 ncclAllReduce - - - - - order likely\n"
            "all_gather -1 communicator 0xabc 4/4 ncclAllGather - - - - - order likely\n");
  const Joined lost = join(job, start + calls(100, "0x10", "AGAGAGG"));
  for (const JoinedRow& row : lost.rows) EXPECT_EQ(row.confidence, Confidence::undecidable);
}

// Two streams take one communicator: neither has it. A group that takes it keeps it.
TEST(Joined, WithoutGroupsACommunicatorIsOneStreams) {
  std::vector<Comm> comm = ungrouped("ABAAB", 0);
  for (const Comm& one : ungrouped("ABAAB", 1)) comm.push_back(one);
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABAAB");
  const Joined two = join(rank_zero({}, comm), log);
  EXPECT_EQ(two.rows[0].confidence, Confidence::undecidable);
  EXPECT_EQ(two.without_witness, 10);
  std::vector<Comm> mixed = operations("ABAAB", 0);
  for (const Comm& one : ungrouped("ABAAB", 1)) mixed.push_back(one);
  EXPECT_EQ(words(join(rank_zero({pair_of("1", "dp")}, mixed), log)),
            "all_reduce 1024  0/3 - - - - - - - undecidable\n"
            "all_reduce 4096  0/2 - - - - - - - undecidable\n"
            "all_reduce 1024 dp[0,1] 3/3 ncclAllReduce - - - - - order likely\n"
            "all_reduce 4096 dp[0,1] 2/2 ncclAllReduce - - - - - order likely\n");
}

// Streams of two ranks end together, but each fits a communicator with another identifier; then
// more streams end together than the communicator has ranks.
TEST(Joined, WithoutGroupsWhatEndsTogetherIsOneCommunicator) {
  Job job = rank_zero({}, ungrouped("ABAAB"));
  Job other = rank_zero({}, ungrouped("ABAAB"));
  other.ranks[0].rank = 1;
  other.ranks[0].recording.process = 101;
  job.ranks.push_back(std::move(other.ranks[0]));
  const auto log = [](const std::string& id) {
    return init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "ABAAB") + init(101, "0x20", 1, id) +
           calls(101, "0x20", "ABAAB");
  };
  job.matching.groups.push_back(
      {.label = "inferred[0,1]", .description = {}, .ranks = {0, 1}, .inferred = true});
  job.matching.parts = {{0, 0, 1}, {1, 0, 1}};
  job.matching.ops.push_back({.group = 0, .first = 0, .count = 2});
  EXPECT_EQ(words(join(job, log("0xabc"))),
            "all_reduce 1024 communicator 0xabc 6/6 ncclAllReduce - - - - - order likely\n"
            "all_reduce 4096 communicator 0xabc 4/4 ncclAllReduce - - - - - order likely\n");
  const Joined apart = join(job, log("0xdef"));
  EXPECT_EQ(apart.without_witness, 10);
  EXPECT_EQ(apart.rows[0].reason, "nccl_log: its ranks fit different communicators");
  job.matching.groups[0].ranks = {0, 1, 2};
  const Joined large = join(job, log("0xabc"));
  EXPECT_EQ(large.without_witness, 10);
  EXPECT_EQ(large.rows[0].reason,
            "nccl_log: more ranks leave its operations together than the communicator has");
}

// A dump of rank 0 whose n-th all-reduce was called at `made` and every millisecond from then on.
Witness dump(const std::string& group, std::int64_t first, int count, Ns made) {
  Witness witness;
  witness.path = "dump_0";
  witness.format = "flight_recorder";
  witness.rank = 0;
  witness.groups.push_back({.name = group, .description = "dp", .members = {0, 1}, .size = 2});
  for (int i = 0; i < count; ++i) {
    WitnessCall call;
    call.op = Op::all_reduce;
    call.rank = 0;
    call.number = first + i;
    call.in_elements = call.out_elements = 256;
    call.in_dtype = witness.strings.intern("Float");
    call.op_text = witness.strings.intern("nccl:all_reduce");
    call.code = witness.strings.intern("train.py:42 step");
    call.created_ns = made + i * 1'000'000;
    witness.calls.push_back(call);
  }
  return witness;
}

TEST(Joined, DumpsAreJoinedByGroupAndNumber) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("AAAA", 0, true));
  const auto join_dump = [&job](Witness witness) {
    std::vector<Witness> witnesses;
    witnesses.push_back(std::move(witness));
    return join_witnesses(job, witnesses, {});
  };
  // The dump's ring holds numbers 3 to 7: two of the four operations.
  const Joined joined = join_dump(dump("1", 3, 5, kNow + 1'900'000));
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 2/4 nccl:all_reduce (train.py:42 step) - - - - - sequence "
            "certain\n");
  EXPECT_EQ(joined.calls_without_operation, 3);
  // Another group; another time: the job was run again.
  EXPECT_EQ(join_dump(dump("2", 3, 5, kNow)).rows[0].confidence, Confidence::undecidable);
  const Joined again = join_dump(dump("1", 1, 4, kNow - 86'400'000'000'000));
  EXPECT_EQ(again.rows[0].confidence, Confidence::undecidable);
  EXPECT_EQ(again.rows[0].reason,
            "flight_recorder: its numbers are there, but were given at another time: it is of "
            "another run");
}

// A second group of the same ranks: numbers are certain where the dump says of which group they
// are.
TEST(Joined, NumbersOfGroupsWithoutANameAreLikely) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("AAAA", 0, true));
  const auto confidence = [&job](const std::string& name, const std::string& second) {
    std::vector<Witness> witnesses;
    witnesses.push_back(dump(name, 1, 4, kNow));
    if (!second.empty()) {
      WitnessCall call = witnesses[0].calls.front();
      call.op = Op::broadcast;
      call.group = 1;
      witnesses[0].calls.push_back(call);
      const std::string other = second == "-" ? "" : second;
      witnesses[0].groups.push_back(
          {.name = other, .description = {}, .members = {0, 1}, .size = 2});
    }
    const Joined joined = join_witnesses(job, witnesses, {});
    EXPECT_EQ(joined.rows[0].by, JoinedBy::sequence);
    return joined.rows[0].confidence;
  };
  EXPECT_EQ(confidence("1", "2"), Confidence::certain);
  EXPECT_EQ(confidence("1", "-"), Confidence::certain);
  EXPECT_EQ(confidence("", ""), Confidence::certain);
  EXPECT_EQ(confidence("", "2"), Confidence::certain);
  EXPECT_EQ(confidence("", "-"), Confidence::likely);
}

TEST(Joined, WhatAPluginMeasuredIsJoinedByOrder) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("AAA"));
  std::vector<Measured> files;
  files.push_back(measured("0xabc", 5, "RING"));
  const Joined joined = join_witnesses(job, {}, files);
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 3/3 ncclAllReduce RING LL 2 - - order likely\n");
  EXPECT_EQ(joined.calls_without_operation, 2);
  // Written within the hour, the day before.
  files[0].written = {.first = kNow + 60'000'000'000, .last = kNow + 70'000'000'000};
  EXPECT_EQ(join_witnesses(job, {}, files).inputs[0].reason, "");
  files[0].written = {.first = kNow - 86'400'000'000'000, .last = kNow - 86'399'000'000'000};
  EXPECT_EQ(join_witnesses(job, {}, files).inputs[0].reason,
            "its calls were written 23 hours before the recording: they are of another run, or of "
            "another part of this one");
  files[0].written = {};
  files[0].process = 200;
  EXPECT_EQ(join_witnesses(job, {}, files).inputs[0].reason,
            "there is no timeline of its process or rank");
}

// An all-reduce of 256 floats, as the example plugin writes it.
std::string plugin_call(int pid, int number) {
  const std::string head = R"({"name": "AllReduce", "cat": "COLL", "ph": )";
  const std::string tail = R"("id": )" + std::to_string(number) + R"(, "pid": )" +
                           std::to_string(pid) + R"(, "tid": 1, "ts": 201607.5)";
  return head + R"("b", )" + tail + R"(, "args": {"SeqNum": )" + std::to_string(number) +
         R"(, "CommHash": 2748, "Rank": 0, "Count": 256, "Datatype": "ncclFloat32", )" +
         R"("Algorithm": "RING", "Protocol": "LL", "nChannels": 2}},)" + "\n" + head + R"("e", )" +
         tail + "},\n";
}

Measured read_plugin(const std::string& events) {
  Measured file;
  const MeasuredFormat* format = find_measured_format("plugin_trace");
  file.path = "plugin.json";
  file.format = format->name;
  const std::string text = "[\n" + events + "{}]\n";
  Source source = Source::memory("plugin.json", text);
  format->read(source, "", file);
  return file;
}

TEST(Joined, ThePluginsFileIsOfTheProcessInItsLines) {
  const Job job = rank_zero({pair_of("1", "dp")}, operations("AAA"));
  const auto join_file = [&job](const std::string& events) {
    std::vector<Measured> files;
    files.push_back(read_plugin(events));
    return join_witnesses(job, {}, files);
  };
  const std::string three = plugin_call(100, 0) + plugin_call(100, 1) + plugin_call(100, 2);
  EXPECT_EQ(words(join_file(three)),
            "all_reduce 1024 dp[0,1] 3/3 ncclAllReduce RING LL 2 - - order likely\n");
  // Another process's; files of two that were put together.
  EXPECT_NE(join_file(plugin_call(200, 0)).inputs[0].reason, "");
  EXPECT_NE(join_file(three + plugin_call(200, 0)).inputs[0].reason, "");
}

// Two groups alike: the log tells neither from the other, and so does the plugin. Where the log's
// calls tell the groups apart, the plugin's communicators follow from its identifiers.
TEST(Joined, TheLogTellsThePluginsCommunicators) {
  std::vector<Comm> comm = operations("AAAA", 0);
  for (const Comm& one : operations("ABAB", 1)) comm.push_back(one);
  const Job job = rank_zero({pair_of("1", "dp"), pair_of("2", "ep")}, comm);
  std::vector<Witness> logs;
  logs.push_back(read_log_text(init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef") +
                               calls(100, "0x10", "AAAA") + calls(100, "0x20", "ABAB")));
  std::vector<Measured> files;
  files.push_back(measured("0xabc", 4, "RING"));
  const Joined joined = join_witnesses(job, logs, files);
  EXPECT_EQ(words(joined),
            "all_reduce 1024 dp[0,1] 4/4 ncclAllReduce RING LL 2 - - order likely\n"
            "all_reduce 1024 ep[0,1] 2/2 ncclAllReduce - - - - - order likely\n"
            "all_reduce 4096 ep[0,1] 2/2 ncclAllReduce - - - - - order likely\n");
  EXPECT_EQ(joined.rows[0].witnesses, (std::vector<std::string>{"nccl_log", "plugin_trace"}));
  EXPECT_EQ(joined.rows[1].reason, "plugin_trace: no communicator has its identifier 0xdef");
}

TEST(Joined, ExchangesMadeOfSendsHaveNoCall) {
  std::vector<Comm> comm = operations("AAA");
  comm[1].op = Op::all_to_all;
  const Job job = rank_zero({pair_of("1", "ep")}, comm);
  const std::string log = init(100, "0x10", 0, "0xabc") + calls(100, "0x10", "A") +
                          call(100, "0x10", "Send", 256) + call(100, "0x10", "Recv", 256) +
                          calls(100, "0x10", "A");
  EXPECT_EQ(words(join(job, log)),
            "all_reduce 1024 ep[0,1] 2/2 ncclAllReduce - - - - - order likely\n"
            "all_to_all 1024 ep[0,1] 0/1 - - - - - - order likely\n");
}

// A send or receive of 4-byte elements.
std::string pair_call(const std::string& comm, const std::string& op, int count, int peer) {
  return line(100, op + ": opCount 0 sendbuff (nil) recvbuff 0x7f1 count " + std::to_string(count) +
                       " datatype 7 op 0 root " + std::to_string(peer) + " comm " + comm +
                       " [nranks=2] stream 0x55");
}

// One exchange of two ranks: 512 bytes to and from each, 1024 in all.
std::string exchange(const std::string& comm, int count = 128) {
  return pair_call(comm, "Send", count, 0) + pair_call(comm, "Recv", count, 0) +
         pair_call(comm, "Send", count, 1) + pair_call(comm, "Recv", count, 1);
}

// "S" sends 1024 bytes to rank 1, "R" receives 2048 from it, "P" does both in one kernel, "E" is an
// exchange of 1024 bytes.
std::vector<Comm> pair_operations(const std::string& letters, std::int32_t group = 0) {
  std::vector<Comm> comm = operations(letters, group);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const Peer to{.rank = 1, .sends = true, .bytes = 1024};
    const Peer from{.rank = 1, .sends = false, .bytes = 2048};
    if (letters[i] == 'E') comm[i].op = Op::all_to_all;
    if (letters[i] == 'S') comm[i].op = Op::send, comm[i].peers = {to};
    if (letters[i] == 'R') comm[i].op = Op::recv, comm[i].peers = {from}, comm[i].bytes = 2048;
    if (letters[i] == 'P') comm[i].op = Op::send_recv, comm[i].peers = {to, from};
  }
  return comm;
}

std::string pair_calls(const std::string& comm, const std::string& letters) {
  std::string text;
  for (const char letter : letters) {
    if (letter == 'S' || letter == 'P') text += pair_call(comm, "Send", 256, 1);
    if (letter == 'R' || letter == 'P') text += pair_call(comm, "Recv", 512, 1);
    if (letter == 'E') text += exchange(comm);
    if (letter == 'A') text += call(100, comm, "AllReduce", 256);
  }
  return text;
}

TEST(JoinedPairs, SendsAndReceivesAreToldByTheirLines) {
  const Job job = rank_zero({pair_of("1", "pp")}, pair_operations("PSRP"));
  const std::string log = init(100, "0x10", 0, "0xabc",
                               line(100, "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct")) +
                          line(100, "Channel 00/1 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA") +
                          pair_calls("0x10", "SPSRPR");
  const Joined joined = join(job, log);
  EXPECT_EQ(
      words(joined),
      "send 1024 pp[0,1] 1/1 ncclSend - - - NET/IB/GDRDMA IB/0 order likely\n"
      "recv 2048 pp[0,1] 1/1 ncclRecv - - - NET/IB/GDRDMA IB/0 order likely\n"
      "send_recv 1024 pp[0,1] 2/2 ncclRecv, ncclSend - - - NET/IB/GDRDMA IB/0 order likely\n");
  EXPECT_EQ(joined.without_witness, 0);
  EXPECT_EQ(joined.calls, 8);
  EXPECT_EQ(joined.calls_without_operation, 2);  // the first and the last
}

TEST(JoinedPairs, OtherPeersOrSizesAreOtherCalls) {
  const Job job = rank_zero({pair_of("1", "pp")}, pair_operations("SSSS"));
  const std::string start = init(100, "0x10", 0, "0xabc");
  const std::string reason =
      "nccl_log: its sends and receives are not among those of any communicator of its size";
  for (const auto& [count, peer] : {std::pair{128, 1}, {256, 0}}) {
    std::string log = start;
    for (int i = 0; i < 4; ++i) log += pair_call("0x10", "Send", count, peer);
    const Joined joined = join(job, log);
    EXPECT_EQ(words(joined), "send 1024 pp[0,1] 0/4 - - - - - - - undecidable\n");
    EXPECT_EQ(joined.rows[0].reason, reason);
    EXPECT_EQ(joined.calls_without_operation, 4);
  }
  const Joined none = join(job, start + calls(100, "0x10", "AAAA"));
  EXPECT_EQ(none.rows[0].reason,
            "nccl_log: no communicator or group of its size and members sends or receives there");
  // The timeline says nothing of whom.
  std::vector<Comm> comm = pair_operations("SSSS");
  for (Comm& one : comm) one.peers.clear();
  const Joined whom =
      join(rank_zero({pair_of("1", "pp")}, comm), start + pair_calls("0x10", "SSSS"));
  EXPECT_EQ(words(whom), "send 1024 pp[0,1] 0/4 - - - - - - - undecidable\n");
  EXPECT_EQ(whom.rows[0].reason,
            "nccl_log: the timeline does not tell the peers of its sends and receives");
}

TEST(JoinedPairs, TwoCommunicatorsAlikeAreRefused) {
  const Job job = rank_zero({pair_of("1", "pp")}, pair_operations("SRSR"));
  const std::string both = init(100, "0x10", 0, "0xabc") + init(100, "0x20", 0, "0xdef") +
                           pair_calls("0x10", "SRSR") + pair_calls("0x20", "SRSRSR");
  EXPECT_EQ(join(job, both).rows[0].reason,
            "nccl_log: 2 communicators have its size and fit its sends and receives equally well");
  // The collectives tell which it is.
  std::vector<Comm> comm = pair_operations("ASRSRA");
  const Job told = rank_zero({pair_of("1", "pp")}, comm);
  EXPECT_EQ(words(join(told, both + calls(100, "0x20", "AA"))),
            "all_reduce 1024 pp[0,1] 2/2 ncclAllReduce - - - - - order likely\n"
            "send 1024 pp[0,1] 2/2 ncclSend - - - - - order likely\n"
            "recv 2048 pp[0,1] 2/2 ncclRecv - - - - - order likely\n");
  // So does the identifier.
  GroupIdentity named = pair_of("0xdef", "");
  EXPECT_EQ(words(join(rank_zero({named}, pair_operations("SRSR")), both)),
            "send 1024 group 0xdef[0,1] 2/2 ncclSend - - - - - communicator likely\n"
            "recv 2048 group 0xdef[0,1] 2/2 ncclRecv - - - - - communicator likely\n");
  // Two groups, one communicator.
  std::vector<Comm> two = pair_operations("SRSR", 0);
  for (const Comm& one : pair_operations("SRSR", 1)) two.push_back(one);
  const Joined shared = join(rank_zero({pair_of("1", "pp"), pair_of("2", "ep")}, two),
                             init(100, "0x10", 0, "0xabc") + pair_calls("0x10", "SRSRSR"));
  EXPECT_EQ(shared.without_witness, 8);
  EXPECT_EQ(shared.rows[0].reason,
            "nccl_log: 2 groups of the rank fit the same communicator equally well");
}

TEST(JoinedPairs, ExchangesAreWholeRunsOfSendsAndReceives) {
  const std::string start = init(100, "0x10", 0, "0xabc");
  const Job job = rank_zero({pair_of("1", "ep")}, pair_operations("EEEE"));
  const Joined joined = join(job, start + pair_calls("0x10", "EEEEE"));
  EXPECT_EQ(words(joined),
            "all_to_all 1024 ep[0,1] 4/4 ncclRecv, ncclSend - - - - - order likely\n");
  EXPECT_EQ(joined.calls, 20);
  EXPECT_EQ(joined.calls_without_operation, 4);
  // Of other sizes; of unequal parts with the same sum; with one line lost in each.
  std::string other = start;
  std::string unequal = start;
  std::string lost = start;
  for (int i = 0; i < 4; ++i) {
    other += exchange("0x10", 256);
    unequal += pair_call("0x10", "Recv", 100, 1) + pair_call("0x10", "Recv", 28, 0) +
               pair_call("0x10", "Send", 56, 1) + pair_call("0x10", "Send", 200, 0);
    lost += pair_call("0x10", "Send", 128, 0) + pair_call("0x10", "Recv", 128, 0) +
            pair_call("0x10", "Send", 128, 1);
  }
  EXPECT_EQ(join(job, other).rows[0].witnessed, 0);
  EXPECT_EQ(join(job, unequal).rows[0].witnessed, 4);  // 256 floats sent, 128 received
  EXPECT_EQ(join(job, lost).rows[0].witnessed, 0);
  // A rank that gets nothing of another: which calls there are is not known.
  Job zero = job;
  for (CommOp& op : zero.ranks[0].devices[0].comm) op.zero_split = true;
  EXPECT_EQ(join(zero, start + pair_calls("0x10", "EEEE")).rows[0].witnessed, 0);
  // Between collectives of the group, whose communicator is theirs.
  EXPECT_EQ(words(join(rank_zero({pair_of("1", "ep")}, pair_operations("AEAAE")),
                       start + pair_calls("0x10", "AEAAE"))),
            "all_reduce 1024 ep[0,1] 3/3 ncclAllReduce - - - - - order likely\n"
            "all_to_all 1024 ep[0,1] 2/2 ncclRecv, ncclSend - - - - - order likely\n");
}

// Since NCCL 2.28 the log has a line for an exchange: its sends and receives are other calls.
TEST(JoinedPairs, ExchangesThatHaveALineAreCollectives) {
  const Job job = rank_zero({pair_of("1", "ep")}, pair_operations("EEEE"));
  std::string log = init(100, "0x10", 0, "0xabc");
  for (int i = 0; i < 4; ++i) log += call(100, "0x10", "AlltoAll", 128);
  EXPECT_EQ(words(join(job, log + pair_calls("0x10", "EEEE"))),
            "all_to_all 1024 ep[0,1] 4/4 ncclAlltoAll - - - - - order likely\n");
}

TEST(JoinedPairs, PluginsTellChannels) {
  Measured file = measured("0xabc", 0, "");
  for (const auto& [op, bytes] :
       {std::pair{Op::send, 1024}, {Op::recv, 2048}, {Op::send, 1024}, {Op::recv, 2048}}) {
    MeasuredCall one;
    one.op = op;
    one.rank = 0;
    one.peer = 1;
    one.bytes = bytes;
    one.channels = 4;
    file.calls.push_back(one);
  }
  std::vector<Measured> files;
  files.push_back(std::move(file));
  const Job job = rank_zero({pair_of("1", "pp")}, pair_operations("PP"));
  EXPECT_EQ(words(join_witnesses(job, {}, files)),
            "send_recv 1024 pp[0,1] 2/2 ncclRecv, ncclSend - - 4 - - order likely\n");
  files[0].calls[1].peer = 0;
  files[0].calls[3].peer = 0;
  EXPECT_EQ(words(join_witnesses(job, {}, files)),
            "send_recv 1024 pp[0,1] 0/2 - - - - - - - undecidable\n");
}

// A dump numbers sends and receives as the timeline does, where both are single calls.
TEST(JoinedPairs, DumpsAreJoinedByNumberOrOrder) {
  const auto dump_of = [](std::int64_t first, Ns made) {
    Witness witness = dump("1", 0, 0, 0);
    for (int i = 0; i < 4; ++i) {
      WitnessCall call;
      call.op = Op::send;
      call.p2p = true;
      call.rank = 0;
      call.peer = 1;
      call.number = first + i;
      call.in_elements = 256;
      call.in_dtype = witness.strings.intern("Float");
      call.op_text = witness.strings.intern("nccl:send 0->1");
      call.created_ns = made + i * 1'000'000;
      witness.calls.push_back(call);
    }
    return witness;
  };
  const auto join_dump = [](const Job& job, Witness witness) {
    std::vector<Witness> witnesses;
    witnesses.push_back(std::move(witness));
    return join_witnesses(job, witnesses, {});
  };
  std::vector<Comm> comm = pair_operations("SSSS");
  const GroupIdentity group = pair_of("1", "pp");
  EXPECT_EQ(words(join_dump(rank_zero({group}, comm), dump_of(7, kNow))),
            "send 1024 pp[0,1] 4/4 nccl:send - - - - - order likely\n");
  for (std::size_t i = 0; i < comm.size(); ++i) comm[i].seq = 7 + static_cast<std::int64_t>(i);
  const Job numbered = rank_zero({group}, comm);
  EXPECT_EQ(words(join_dump(numbered, dump_of(7, kNow))),
            "send 1024 pp[0,1] 4/4 nccl:send - - - - - sequence certain\n");
  // Three of the four numbers are in both.
  EXPECT_EQ(words(join_dump(numbered, dump_of(8, kNow))),
            "send 1024 pp[0,1] 3/4 nccl:send - - - - - sequence certain\n");
  // As long as it is the only one: without a name it can be another group of the same ranks.
  Witness unnamed = dump_of(7, kNow);
  unnamed.groups[0].name.clear();
  Witness two = dump_of(7, kNow);
  two.groups[0].name.clear();
  two.groups.push_back(two.groups[0]);
  two.calls.push_back(two.calls.front());
  two.calls.back().group = 1;
  two.calls.back().number = 20;
  EXPECT_EQ(words(join_dump(numbered, std::move(unnamed))),
            "send 1024 pp[0,1] 4/4 nccl:send - - - - - sequence certain\n");
  EXPECT_EQ(words(join_dump(numbered, std::move(two))),
            "send 1024 pp[0,1] 4/4 nccl:send - - - - - sequence likely\n");
  const std::string none =
      "flight_recorder: no number of its sends and receives is in both, with the same call";
  EXPECT_EQ(join_dump(numbered, dump_of(20, kNow)).rows[0].reason, none);
  Witness other = dump_of(7, kNow);
  for (WitnessCall& call : other.calls) call.in_elements = 255;
  EXPECT_EQ(join_dump(numbered, std::move(other)).rows[0].reason, none);
  EXPECT_EQ(join_dump(numbered, dump_of(7, kNow - 86'400'000'000'000)).rows[0].reason,
            "flight_recorder: its sends and receives are there, but were called at another time");
}

// The ranks of a group fit communicators with different identifiers.
TEST(JoinedPairs, WhatContradictsIsRefused) {
  Job job = rank_zero({pair_of("1", "pp")}, pair_operations("SRSR"));
  Job other = rank_zero({pair_of("1", "pp")}, pair_operations("SRSR"));
  other.ranks[0].rank = 1;
  other.ranks[0].recording.process = 101;
  for (Peer& peer : other.ranks[0].peers) peer.rank = 0;
  job.ranks.push_back(std::move(other.ranks[0]));
  const auto log = [](const std::string& id) {
    std::string text = init(100, "0x10", 0, "0xabc") + pair_calls("0x10", "SRSR");
    text += init(101, "0x20", 1, id);
    for (int i = 0; i < 2; ++i) {
      for (const auto& [op, count] : {std::pair{"Send", 256}, {"Recv", 512}})
        text += line(101, std::string(op) + ": opCount 0 sendbuff (nil) recvbuff 0x7f1 count " +
                              std::to_string(count) +
                              " datatype 7 op 0 root 0 comm 0x20 [nranks=2] stream 0x55");
    }
    return text;
  };
  EXPECT_EQ(join(job, log("0xabc")).without_witness, 0);
  const Joined apart = join(job, log("0xdef"));
  EXPECT_EQ(apart.without_witness, 8);
  EXPECT_EQ(apart.rows[0].reason, "nccl_log: its ranks fit different communicators");
}

// Streams of two or three communicators, with calls by chance, some of kinds that several call.
TEST(JoinedByChance, StreamsAreTakenApartRightly) {
  std::mt19937 random(23);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  int joined = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> kinds = below(3) == 0 ? std::vector<std::string>{"AB", "GA", "B"}
                                                         : std::vector<std::string>{"A", "B", "G"};
    const auto comms = static_cast<std::size_t>(2 + below(2));
    std::vector<std::string> called(comms);
    std::string stream;
    for (int i = 0; i < 40; ++i) {
      const auto comm = static_cast<std::size_t>(below(static_cast<int>(comms)));
      const std::string& own = kinds[comm];
      const char letter = own[static_cast<std::size_t>(below(static_cast<int>(own.size())))];
      called[comm] += letter;
      stream += letter;
    }
    const auto from = static_cast<std::size_t>(below(20));
    std::string log;
    for (std::size_t c = 0; c < comms; ++c) {
      const std::string comm = "0x" + std::to_string(10 + c);
      log += init(100, comm, 0, "0xabc" + std::to_string(c)) + calls(100, comm, called[c], true);
    }
    const Joined found = join(rank_zero({}, ungrouped(stream.substr(from, 18))), log);
    for (const JoinedRow& row : found.rows) {
      if (row.witnessed == 0) continue;
      ++joined;
      // Only where no other communicator calls the kind can it be told, and then it must be right.
      const char letter = row.op == Op::all_gather ? 'G' : row.bytes == 4096 ? 'B' : 'A';
      std::string owners;
      for (std::size_t c = 0; c < comms; ++c) {
        if (called[c].find(letter) != std::string::npos)
          owners += "communicator 0xabc" + std::to_string(c);
      }
      EXPECT_EQ(row.group, owners) << round;
    }
  }
  EXPECT_GT(joined, 200);
}

// Jobs and logs by chance: some communicators call the same as the one that the timeline is of, and
// lines are lost anywhere. What is told above undecidable is of the true one.
struct ByChance {
  int cases = 0;
  int joined = 0;
  int wrong = 0;
  int wrong_for_certain = 0;
};

ByChance chance(int how, double most_lost, bool counted = false) {
  ByChance found;
  std::mt19937 random(17);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 250; ++round) {
    const bool pairs = how == 3;
    const std::string mixed = below(2) == 0 ? "AB" : "ABG";
    const std::string letters = pairs ? "SR" : mixed;
    const int length = 12 + below(30);
    const auto sequence = [&] {
      std::string made;
      for (int i = 0; i < length; ++i)
        made += letters[static_cast<std::size_t>(below(static_cast<int>(letters.size())))];
      return made;
    };
    const std::string truth = sequence();
    const auto from = static_cast<std::size_t>(below(length / 2));
    const std::string window = truth.substr(from, 5 + static_cast<std::size_t>(below(length)));
    const double lost = most_lost * below(100) / 100;
    const bool whole = below(4) > 0;
    std::string log;
    const int comms = 2 + below(2);
    for (int c = 0; c < comms; ++c) {
      const std::string comm = "0x" + std::to_string(10 + c);
      const std::string way = c == 0 ? "P2P/CUMEM/read" : "SHM/direct/direct";
      std::string start = init(100, comm, 0, "0xabc" + std::to_string(c),
                               line(100, std::string("Channel 00/") + (pairs ? "1" : "0") +
                                             " : 0[0] -> 1[1] via " + way));
      if (!whole) start = start.substr(0, start.rfind("node-a"));
      log += start;
      std::string called;
      for (const char letter : c == 0 || below(2) == 0 ? truth : sequence()) {
        called += below(1000) >= lost * 1000 ? letter : '.';
      }
      log += pairs ? pair_calls(comm, called) : calls(100, comm, called, counted);
    }
    std::vector<Comm> comm = how == 2 ? ungrouped(window) : operations(window);
    if (pairs) comm = pair_operations(window);
    for (std::size_t i = 0; i < comm.size() && how == 1; ++i)
      comm[i].seq = static_cast<std::int64_t>(from + i) + 1;
    std::vector<GroupIdentity> groups;
    if (how != 2) groups.push_back(pair_of("1", "dp"));
    const Joined joined = join(rank_zero(std::move(groups), comm), log);
    ++found.cases;
    bool any = false;
    bool wrong = false;
    for (const JoinedRow& row : joined.rows) {
      if (!row.confidence || *row.confidence == Confidence::undecidable) continue;
      any = any || row.witnessed > 0;
      wrong = wrong || (!row.transport.empty() && row.transport != "P2P/CUMEM");
      if (wrong && *row.confidence == Confidence::certain) ++found.wrong_for_certain;
    }
    found.joined += any ? 1 : 0;
    found.wrong += wrong ? 1 : 0;
  }
  return found;
}

// By order, by numbers, by the order of a stream without a group; sends and receives. Where one
// line in five is lost, two communicators alike can no longer be told apart for sure.
TEST(JoinedByChance, LostLinesMakeNoOtherCommunicatorItsOwn) {
  for (const int how : {0, 1, 2, 3}) {
    for (const double most_lost : {0.0, 0.05}) {
      const ByChance found = chance(how, most_lost);
      EXPECT_EQ(found.wrong, 0) << how << " " << most_lost;
      EXPECT_GE(found.joined, found.cases / 12) << how << " " << most_lost;
    }
    EXPECT_LE(chance(how, 0.2).wrong, 1) << how;
  }
  // Where each call has a number, lines that are lost leave gaps.
  for (const int how : {0, 1, 2}) {
    for (const double most_lost : {0.2, 0.5}) {
      const ByChance found = chance(how, most_lost, true);
      EXPECT_EQ(found.wrong, 0) << how << " " << most_lost;
      if (most_lost < 0.5) {
        EXPECT_GE(found.joined, found.cases / 12) << how;
      }
    }
  }
}

}  // namespace
}  // namespace commlens
