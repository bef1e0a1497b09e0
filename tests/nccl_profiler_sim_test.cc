#include "commlens/nccl_profiler_sim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

#include "nccl_profiler_sim_replay.h"

namespace commlens {
namespace {

TEST(NcclProfilerSim, DoesTheTutorial) {
  NcclProfilerSim profiler;
  profiler.add_compute("forward", 0.0, 2.0);
  profiler.add_comm("all_reduce", 1.0, 2.5, 128 * 1024);
  profiler.add_comm("broadcast", 2.6, 3.0, 64 * 1024);
  profiler.add_compute("backward", 3.0, 5.0);
  profiler.add_comm("reduce_scatter", 3.5, 4.3, 96 * 1024);

  const auto timeline = profiler.timeline();
  ASSERT_EQ(timeline.size(), 3u);
  EXPECT_EQ(timeline[0].op, "all_reduce");
  EXPECT_TRUE(timeline[0].overlap);
  EXPECT_FALSE(timeline[1].overlap);
  EXPECT_EQ(timeline[2].duration, 4.3 - 3.5);

  const auto summary = profiler.summarize();
  EXPECT_EQ(summary.num_comm_events, 3);
  EXPECT_EQ(summary.total_comm_time, 1.5 + (3.0 - 2.6) + (4.3 - 3.5));
  EXPECT_EQ(summary.overlap_time, 1.5 + (4.3 - 3.5));
  EXPECT_EQ(summary.overlap_ratio, summary.overlap_time / summary.total_comm_time);
  EXPECT_EQ(summary.by_op.at("all_reduce").count, 1);
  EXPECT_EQ(summary.by_op.at("all_reduce").bytes, 128 * 1024);
  EXPECT_EQ(summary.by_op.at("all_reduce").time, 1.5);
  EXPECT_TRUE(summary.by_op.contains("broadcast"));
  EXPECT_FALSE(summary.by_op.contains("barrier"));
  EXPECT_THROW(summary.by_op.at("barrier"), std::out_of_range);
  EXPECT_EQ(summary.by_op.begin()->first, "all_reduce");
  EXPECT_EQ(profiler.events.size(), 3u);
  EXPECT_EQ(profiler.compute_events[1].name, "backward");
}

TEST(NcclProfilerSim, OverlapIsFixedWhenTheEventIsAdded) {
  NcclProfilerSim profiler;
  profiler.add_comm("all_reduce", 0.0, 1.0, 1);
  profiler.add_compute("late", 0.0, 1.0);
  EXPECT_FALSE(profiler.events[0].overlap_with_compute);
  EXPECT_EQ(profiler.summarize().overlap_time, 0.0);
}

TEST(NcclProfilerSim, NothingAddedIsAllZero) {
  const auto summary = NcclProfilerSim().summarize();
  EXPECT_EQ(summary.num_comm_events, 0);
  EXPECT_EQ(summary.total_comm_time, 0.0);
  EXPECT_EQ(summary.overlap_ratio, 0.0);
  EXPECT_TRUE(summary.by_op.empty());
  EXPECT_TRUE(NcclProfilerSim().timeline().empty());
}

TEST(NcclProfilerSim, BytesThatDoNotFitAreRefusedNotWrapped) {
  NcclProfilerSim profiler;
  profiler.add_comm("all_reduce", 0.0, 1.0, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(profiler.summarize().by_op.at("all_reduce").bytes,
            std::numeric_limits<std::int64_t>::max());
  profiler.add_comm("all_reduce", 1.0, 2.0, 1);
  EXPECT_THROW(profiler.summarize(), std::overflow_error);
}

// The definition, for the index that stands in for it.
bool overlaps_any(const EventList<NcclProfilerSim::ComputeEvent>& compute, double start,
                  double end) {
  for (const auto& c : compute) {
    if (!(end <= c.start || start >= c.end)) return true;
  }
  return false;
}

TEST(NcclProfilerSim, TheIndexAnswersAsTheScanForAllOrdersOfOddTimes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double times[] = {-kInfinity, -1.0, -0.0, 0.0, 1.0, 2.0, kInfinity, std::nan("")};
  std::uint32_t random = 1;
  const auto pick = [&] {
    random = random * 1664525u + 1013904223u;
    return times[(random >> 16) % std::size(times)];
  };
  for (int round = 0; round < 500; ++round) {
    NcclProfilerSim profiler;
    for (int added = 0; added < round % 7; ++added) profiler.add_compute("c", pick(), pick());
    for (double start : times) {
      for (double end : times) {
        profiler.add_comm("x", start, end, 0);
        ASSERT_EQ(profiler.events.back().overlap_with_compute,
                  overlaps_any(profiler.compute_events, start, end))
            << "round " << round << ": " << start << " to " << end;
      }
    }
  }
}

TEST(NcclProfilerSim, ManyComputeEventsAreNoManyScans) {
  NcclProfilerSim profiler;
  for (int at = 0; at < 200000; ++at) profiler.add_compute("c", 2.0 * at, 2.0 * at + 1.0);
  for (int at = 0; at < 200000; ++at) profiler.add_comm("x", 2.0 * at + 1.0, 2.0 * at + 2.0, 1);
  EXPECT_EQ(profiler.summarize().overlap_time, 0.0);
}

// What the Python class printed for 200 cases, written by nccl_profiler_sim_check.py --write.
TEST(NcclProfilerSim, PrintsWhatPythonPrinted) {
  std::ifstream file(COMMLENS_TEST_DATA "/nccl_profiler_sim_cases.txt");
  ASSERT_TRUE(file.good());
  std::stringstream cases;
  std::string expected;
  for (std::string line; std::getline(file, line);) {
    cases << line << '\n';
    if (line.starts_with("case ") || line.starts_with("= ")) expected += line + '\n';
  }
  std::ostringstream printed;
  replay::run(cases, printed);
  EXPECT_GT(expected.size(), 10000u);
  EXPECT_EQ(printed.str(), expected);
}

}  // namespace
}  // namespace commlens
