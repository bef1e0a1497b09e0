// Timelines as witnesses of a hang: Kineto text written here, and what must be said of it.
#include <gtest/gtest.h>

#include "diagnose/remarks.h"
#include "ingest/format.h"
#include "log_job.h"
#include "match/classify.h"
#include "match/trace_witness.h"
#include "model/witness_trace.h"

namespace commlens {
namespace {

// Microseconds.
constexpr std::int64_t kBase = 1'700'000'000'000'000;
constexpr std::int64_t kSecond = 1'000'000;

struct Group {
  std::string name = "0";
  std::string ranks = "[0, 1, 2, 3]";
  int size = 4;
};

// One rank's trace: calls of all-reduces on the host with their kernels, all times in seconds.
class Trace {
 public:
  explicit Trace(int rank) : rank_(rank) {}

  // Called at `at`; its kernel ends half a second later, unless it never does.
  Trace& call(int seq, double at, bool ends = true, const Group& group = {}) {
    const std::string args =
        R"("Collective name": "allreduce", "In msg nelems": 256, "Out msg nelems": 256, "dtype": "Float", "Group size": )" +
        std::to_string(group.size) + R"(, "Process Group Name": ")" + group.name +
        R"(", "Process Group Description": "pg)" + group.name + R"(", "Process Group Ranks": ")" +
        group.ranks + R"(", "Seq": )" + std::to_string(seq);
    const int id = ++ids_;
    event("cpu_op", "record_param_comms", at, 0.001,
          R"("External id": )" + std::to_string(id) + ", " + args);
    event("cuda_runtime", "cudaLaunchKernel", at + 0.0005, 0.0001,
          R"("correlation": )" + std::to_string(id) + R"(, "External id": )" + std::to_string(id));
    if (ends)
      event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 0.01, 0.49,
            R"("device": 0, "stream": 7, "correlation": )" + std::to_string(id) +
                R"(, "External id": )" + std::to_string(id) + ", " + args);
    return *this;
  }
  // Something else until `at`.
  Trace& until(double at) {
    event("kernel", "gemm", at - 0.5, 0.5, R"("device": 0, "stream": 9)");
    return *this;
  }

  std::string text() const {
    return R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": )" +
           std::to_string(rank_) +
           R"(, "world_size": 4}, "baseTimeNanoseconds": 0, "traceEvents": [)" + events_ + "\n]}";
  }

 private:
  void event(const std::string& category, const std::string& name, double at, double seconds,
             const std::string& args) {
    const auto micros = [](double value) {
      return std::to_string(static_cast<std::int64_t>(value * kSecond));
    };
    const bool gpu = category == "kernel";
    events_ += std::string(events_.empty() ? "" : ",") + R"(
{"ph": "X", "cat": ")" +
               category + R"(", "name": ")" + name + R"(", "pid": )" + (gpu ? "0" : "77") +
               R"(, "tid": )" + (gpu ? "7" : "77") + R"(, "ts": )" +
               std::to_string(kBase + static_cast<std::int64_t>(at * kSecond)) + R"(, "dur": )" +
               micros(seconds) + R"(, "args": {)" + args + "}}";
  }

  int rank_;
  int ids_ = 0;
  std::string events_;
};

Witness witness_of(const std::string& text, const std::string& path) {
  Source source = Source::memory(path, text);
  const Format* format = find_format("kineto");
  TraceBuilder builder(path, format->name);
  format->read(source, {}, {}, builder);
  RankTimeline rank;
  rank.recording = builder.finish();
  classify(rank, {});
  return witness_of_timeline(rank);
}

std::vector<Witness> witnesses_of(const std::vector<std::string>& texts) {
  std::vector<Witness> witnesses;
  for (std::size_t i = 0; i < texts.size(); ++i)
    witnesses.push_back(witness_of(texts[i], "rank-" + std::to_string(i) + ".json"));
  return witnesses;
}

std::string verdict_of_texts(const std::vector<std::string>& texts) {
  return verdict_words(judge(witnesses_of(texts)));
}

std::string remarks_of(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& remark : find_remarks(witnesses_of(texts), false)) all += remark + "\n";
  return all;
}

// Everyone makes call 1; those who come make call 2, in which they stay.
std::string waits(int rank) { return Trace(rank).call(1, 1).call(2, 5, false).until(40).text(); }
std::string sleeps(int rank) { return Trace(rank).call(1, 1).until(40).text(); }

TEST(TraceWaits, HowFarARankGotIsReadFromCallsAndKernels) {
  const Witness witness = witness_of(waits(0), "rank-0.json");
  ASSERT_NE(witness.trace, nullptr);
  const TraceFacts& facts = *witness.trace;
  EXPECT_EQ(facts.rank, 0);
  EXPECT_FALSE(facts.cut);
  EXPECT_TRUE(facts.calls_known);
  EXPECT_TRUE(facts.clock_known);
  ASSERT_EQ(facts.groups.size(), 1U);
  EXPECT_EQ(facts.groups[0].called, 2);
  EXPECT_EQ(facts.groups[0].ended, 1);
  EXPECT_EQ(facts.groups[0].called_at, (kBase + 5 * kSecond) * 1000);
  EXPECT_EQ(facts.last, (kBase + 40 * kSecond) * 1000);
}

TEST(TraceWaits, WhoDidNotCallWhatOthersStandInIsMissing) {
  const std::vector<std::string> texts = {waits(0), waits(1), waits(2), sleeps(3)};
  const auto findings = judge(witnesses_of(texts));
  EXPECT_EQ(verdict_words(findings), "missing_rank missing=3 likely");
  EXPECT_EQ(findings[0].seq, 2);
  EXPECT_EQ(findings[0].group, "0");
  EXPECT_EQ(findings[0].group_description, "pg0");
  EXPECT_EQ(findings[0].consequences, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(TraceWaits, WhoIsAloneInACallIsAhead) {
  EXPECT_EQ(verdict_of_texts({waits(0), sleeps(1), sleeps(2), sleeps(3)}),
            "rank_ahead odd=0 likely");
}

TEST(TraceWaits, ACutTraceAccusesNobody) {
  std::string cut = sleeps(3);
  cut.resize(cut.rfind("gemm"));
  EXPECT_EQ(verdict_of_texts({waits(0), waits(1), waits(2), cut}), "none");
  const std::string remarks = remarks_of({waits(0), waits(1), waits(2), cut});
  EXPECT_NE(remarks.find("the trace of rank 3 ends early"), std::string::npos) << remarks;
  EXPECT_NE(remarks.find("ranks 0-2 called all_reduce 2 of group 0 (pg0)"), std::string::npos);
  EXPECT_NE(remarks.find("whether rank 3 called it is not known"), std::string::npos) << remarks;
}

TEST(TraceWaits, AnAbsentTraceAccusesNobody) {
  EXPECT_EQ(verdict_of_texts({waits(0), waits(1), waits(2)}), "none");
}

// The recording of rank 3 ends before the others call: what it did then is not known.
TEST(TraceWaits, AnEarlierEndAccusesNobody) {
  EXPECT_EQ(verdict_of_texts({waits(0), waits(1), waits(2), Trace(3).call(1, 1).until(4).text()}),
            "none");
}

// The last kernels of every recording are missing.
TEST(TraceWaits, WhatWasCalledJustBeforeTheEndIsNoHang) {
  const auto ends_soon = [](int rank) {
    return Trace(rank).call(1, 1).call(2, 35, false).until(40).text();
  };
  EXPECT_EQ(verdict_of_texts({ends_soon(0), ends_soon(1), ends_soon(2), sleeps(3)}), "none");
}

TEST(TraceWaits, AHealthyJobHasNoFinding) {
  const auto healthy = [](int rank) { return Trace(rank).call(1, 1).call(2, 5).until(40).text(); };
  EXPECT_EQ(verdict_of_texts({healthy(0), healthy(1), healthy(2), healthy(3)}), "none");
  EXPECT_EQ(remarks_of({healthy(0), healthy(1), healthy(2), healthy(3)}), "");
}

// Rank 3 sleeps, rank 2 waits for it in [2,3]; ranks 0 and 1 wait for rank 2 in [0,1,2]. Only rank
// 3 is the cause.
TEST(TraceWaits, WhoIsHeldElsewhereIsNotNamed) {
  const Group pair{.name = "1", .ranks = "[2, 3]", .size = 2};
  const Group three{.name = "2", .ranks = "[0, 1, 2]", .size = 3};
  const auto in_three = [&three](int rank) {
    return Trace(rank).call(1, 1, true, three).call(2, 6, false, three).until(40).text();
  };
  const std::string two = Trace(2)
                              .call(1, 1, true, three)
                              .call(1, 2, true, pair)
                              .call(2, 5, false, pair)
                              .until(40)
                              .text();
  const std::string sleeper = Trace(3).call(1, 2, true, pair).until(40).text();
  EXPECT_EQ(verdict_of_texts({in_three(0), in_three(1), two, sleeper}),
            "missing_rank missing=3 likely");
}

}  // namespace
}  // namespace commlens
