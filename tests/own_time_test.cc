// A rank's own time before each communication: worked cases, and against looking at each
// nanosecond.
#include "match/own_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "match/classify.h"
#include "match/exposure.h"
#include "match/kernel_times.h"
#include "match/merge.h"
#include "match/windows.h"
#include "notation.h"

namespace commlens {
namespace {

using notation::situation;
using notation::Situation;

struct Found {
  RankTimeline rank;
  std::vector<IntervalSet> host_idle;
};

Found found(const Situation& s) {
  Found result;
  result.rank.recording = notation::recording(s);
  classify(result.rank, {});
  find_step_windows(result.rank);
  result.host_idle = find_own_times(result.rank);
  return result;
}

Found found(std::string_view text) { return found(situation(text)); }

std::string text_of(const OwnTime& own) {
  return "compute " + std::to_string(own.compute) + " memory " + std::to_string(own.memory) +
         " host " + std::to_string(own.host) + " gaps " + std::to_string(own.gaps);
}

std::string at_start(const Found& f, std::size_t row = 0) {
  return text_of(f.rank.devices.at(0).own_at_start.at(row));
}
std::string at_end(const Found& f, std::size_t row = 0) {
  return text_of(f.rank.devices.at(0).own_at_end.at(row));
}

// ---------------------------------------------------------------------------------------------
// Worked cases

TEST(OwnTime, TheDrawingOfTheSource) {
  // Launches at 0, 1, 2, 60; kernels [10,20), [20,30), [45,55) and the communication [80,90).
  // Until 45 the third kernel waits: a gap of 15. From 55 on nothing is queued until 60; then the
  // communication is, until 80.
  const Found f = found(
      "launch@1 [0] corr=1; launch@1 [1] corr=2; launch@1 [2] corr=3; launch@1 [60] corr=4;"
      "compute@7 [10,20) corr=1; compute@7 [20,30) corr=2; compute@7 [45,55) corr=3;"
      "all_reduce@20 [80,90) corr=4");
  EXPECT_TRUE(f.rank.devices[0].launches_known);
  EXPECT_EQ(at_start(f), "compute 30 memory 0 host 5 gaps 35");
  EXPECT_EQ(at_end(f), at_start(f));
  EXPECT_EQ(f.host_idle[0].length(), 5);
}

TEST(OwnTime, CommunicationIsNoTimeOfOnesOwnButComputeUnderItIs) {
  const Found f = found(
      "launch@1 [0] corr=1; launch@1 [0] corr=2; launch@1 [0] corr=3; launch@1 [0] corr=4;"
      "compute@7 [10,30) corr=1; all_reduce@20 [20,60) corr=2; memcpy@9 [25,70) corr=3;"
      "all_gather@20 [80,90) corr=4");
  // Compute runs [10,30), ten of it under the first; the copy counts where neither is: [60,70).
  EXPECT_EQ(at_start(f, 0), "compute 10 memory 0 host 0 gaps 0");
  EXPECT_EQ(at_end(f, 0), "compute 20 memory 0 host 0 gaps 0");
  EXPECT_EQ(at_start(f, 1), "compute 20 memory 10 host 0 gaps 10");
  const auto under = f.rank.devices[0].compute_under_comm.parts();
  ASSERT_EQ(under.size(), 1U);
  EXPECT_EQ(under[0].length(), 10);
}

TEST(OwnTime, AKernelWithoutLengthStillWaitsItsTurn) {
  // Idle [10,40). The kernel without length, launched at 15, starts at 25: queued [15,25). The
  // communication was launched at 35.
  const Found f = found(
      "launch@1 [0] corr=1; launch@1 [15] corr=2; launch@1 [35] corr=3;"
      "compute@7 [0,10) corr=1; compute@7 [25,25) corr=2; all_reduce@20 [40,50) corr=3");
  EXPECT_EQ(at_start(f), "compute 10 memory 0 host 15 gaps 15");
}

TEST(OwnTime, ALaunchAfterItsKernelIsALaunchAtOnce) {
  // Two clocks: the kernel's start is stamped before its launch.
  const Found f = found(
      "launch@1 [0] corr=1; launch@1 [33] corr=3; compute@7 [0,10) corr=1;"
      "all_reduce@20 [30,50) corr=3");
  EXPECT_EQ(at_start(f), "compute 10 memory 0 host 20 gaps 0");
}

// Ten kernels and a communication; `launched` of the eleven have a launch, at their start.
Found with_launches(int launched) {
  Situation s;
  for (int i = 0; i < 11; ++i) {
    const std::string at = std::to_string(20 * i);
    const std::string corr = std::to_string(i + 1);
    std::string text = i == 10 ? "all_reduce@20 " : "compute@7 ";
    text += "[" + at + "," + std::to_string(20 * i + 10) + ") corr=" + corr;
    if (i < launched) text += "; launch@1 [" + at + "] corr=" + corr;
    const Situation one = situation(text);
    s.activities.insert(s.activities.end(), one.activities.begin(), one.activities.end());
    s.launches.insert(s.launches.end(), one.launches.begin(), one.launches.end());
  }
  return found(s);
}

TEST(OwnTime, NineInTenMustHaveLaunches) {
  // All stretches are the host's where launches are known; the last kernel's is not recorded.
  const Found known = with_launches(10);
  EXPECT_TRUE(known.rank.devices[0].launches_known);
  EXPECT_EQ(at_start(known), "compute 100 memory 0 host 100 gaps 0");
  const Found unknown = with_launches(9);
  EXPECT_FALSE(unknown.rank.devices[0].launches_known);
  EXPECT_EQ(at_start(unknown), "compute 100 memory 0 host 0 gaps 100");
  EXPECT_TRUE(unknown.host_idle[0].empty());
}

TEST(OwnTime, WithoutLaunchesNothingIsKnownOfTheHost) {
  const Found f = found("compute@7 [0,10); all_reduce@20 [30,50)");
  EXPECT_FALSE(f.rank.devices[0].launches_known);
  EXPECT_EQ(at_start(f), "compute 10 memory 0 host 0 gaps 20");
}

TEST(OwnTime, EachDeviceHasItsOwn) {
  const Found f = found(
      "launch@1 [0] corr=1; launch@1 [20] corr=2; launch@1 [0] corr=3; launch@1 [0] corr=4;"
      "compute@0/7 [0,10) corr=1; all_reduce@0/20 [30,50) corr=2;"
      "compute@1/7 [0,25) corr=3; all_reduce@1/20 [30,50) corr=4");
  ASSERT_EQ(f.rank.devices.size(), 2U);
  EXPECT_EQ(text_of(f.rank.devices[0].own_at_start[0]), "compute 10 memory 0 host 10 gaps 10");
  EXPECT_EQ(text_of(f.rank.devices[1].own_at_start[0]), "compute 25 memory 0 host 0 gaps 5");
}

// ---------------------------------------------------------------------------------------------
// Each nanosecond

constexpr Ns kLast = 300;

Situation generated(std::mt19937& random) {
  Situation s;
  const auto below = [&random](Ns end) {
    return static_cast<Ns>(random() % static_cast<std::uint64_t>(end));
  };
  static const Situation kKinds = situation(
      "compute [0,1); compute [0,1); all_reduce [0,1) bytes=8 n=4 group=a; all_gather [0,1); "
      "memcpy [0,1); memset [0,1)");
  const bool two_devices = random() % 4 == 0;
  const std::size_t lost = random() % 3 == 0 ? 3 : 30;  // one launch in so many
  const auto count = static_cast<std::size_t>(1 + random() % 24);
  for (std::size_t i = 0; i < count; ++i) {
    notation::Activity a = kKinds.activities[random() % kKinds.activities.size()];
    a.stream = {two_devices ? below(2) : 0, 1, 7 + below(3)};
    a.correlation = i + 1;
    a.time.start = below(kLast - 40);
    a.time.end = a.time.start + (random() % 6 == 0 ? 0 : below(30));
    s.activities.push_back(a);
    if (random() % lost != 0)
      s.launches.push_back({a.correlation, a.time.start + 5 - below(60), 5});
  }
  return s;
}

// One device's classes at each nanosecond from 0 to kLast.
struct Slow {
  std::vector<OwnTime> before{OwnTime{}};  // by nanosecond
  std::vector<bool> compute_under_comm;
  std::vector<bool> host;
  bool launches_known = false;
};

Slow looked_at(const Situation& s, std::int64_t device, Interval extent) {
  Slow slow;
  std::vector<std::pair<notation::Activity, std::optional<Ns>>> mine;
  std::size_t launched = 0;
  for (const notation::Activity& a : s.activities) {
    if (a.stream.device != device) continue;
    std::optional<Ns> launch;
    for (const notation::Launch& l : s.launches)
      if (l.correlation == a.correlation) launch = l.at;
    launched += launch ? 1 : 0;
    mine.emplace_back(a, launch);
  }
  slow.launches_known = launched > 0 && launched * 10 >= mine.size() * 9;
  for (Ns at = 0; at < kLast; ++at) {
    const auto runs = [&](ActivityClass kind) {
      return std::any_of(mine.begin(), mine.end(), [&](const auto& row) {
        const Interval time = row.first.time;
        return row.first.kind_of_work == kind && time.start <= at && at < time.end;
      });
    };
    const bool queued = std::any_of(mine.begin(), mine.end(), [&](const auto& row) {
      return row.second && *row.second <= at && at < row.first.time.start;
    });
    const bool compute = runs(ActivityClass::compute);
    const bool comm = runs(ActivityClass::communication);
    const bool memory = runs(ActivityClass::memory);
    const bool inside = extent.start <= at && at < extent.end;
    const bool idle = inside && !compute && !comm && !memory;
    OwnTime own = slow.before.back();
    slow.host.push_back(idle && slow.launches_known && !queued);
    own.compute += compute ? 1 : 0;
    own.memory += memory && !compute && !comm ? 1 : 0;
    own.host += slow.host.back() ? 1 : 0;
    own.gaps += idle && !slow.host.back() ? 1 : 0;
    slow.before.push_back(own);
    slow.compute_under_comm.push_back(compute && comm);
  }
  return slow;
}

std::vector<bool> as_bits(const IntervalSet& set, Ns origin) {
  std::vector<bool> bits(static_cast<std::size_t>(kLast));
  for (const Interval part : set.parts())
    for (Ns at = part.start; at < part.end; ++at)
      bits[static_cast<std::size_t>(at - origin)] = true;
  return bits;
}

TEST(OwnTime, IsThatOfEachNanosecond) {
  std::mt19937 random(41);
  int known = 0;
  int with_host = 0;
  for (int i = 0; i < 1'500; ++i) {
    const Situation s = generated(random);
    const Found f = found(s);
    for (std::size_t d = 0; d < f.rank.devices.size(); ++d) {
      const DeviceTimeline& device = f.rank.devices[d];
      const Interval extent{device.extent.start - s.origin, device.extent.end - s.origin};
      const Slow slow = looked_at(s, *device.device, extent);
      ASSERT_EQ(device.launches_known, slow.launches_known) << i;
      ASSERT_EQ(as_bits(f.host_idle[d], s.origin), slow.host) << i;
      ASSERT_EQ(as_bits(device.compute_under_comm, s.origin), slow.compute_under_comm) << i;
      for (std::size_t row = 0; row < device.comm.size(); ++row) {
        const Interval time = device.comm[row].time;
        const auto at = [&](Ns instant) {
          return text_of(slow.before[static_cast<std::size_t>(instant - s.origin)]);
        };
        ASSERT_EQ(text_of(device.own_at_start[row]), at(time.start)) << i;
        ASSERT_EQ(text_of(device.own_at_end[row]), at(time.end)) << i;
      }
      // Nothing queued is a part of idle, in every window.
      const Ns from = device.extent.start + static_cast<Ns>(random() % 100);
      for (const Interval window : {device.extent, Interval{from, from + 70}}) {
        ASSERT_LE(f.host_idle[d].overlap(window), window_figures(device, window).breakdown.idle);
      }
      known += slow.launches_known ? 1 : 0;
      with_host += f.host_idle[d].empty() ? 0 : 1;
    }
  }
  EXPECT_GT(known, 700);
  EXPECT_GT(with_host, 500);
}

TEST(OwnTime, OutlivesTheColumns) {
  std::mt19937 random(42);
  for (int i = 0; i < 20; ++i) {
    Found f = found(generated(random));
    const Found same = f;
    let_go_of_columns(f.rank);
    for (std::size_t d = 0; d < f.rank.devices.size(); ++d) {
      const DeviceTimeline& a = f.rank.devices[d];
      const DeviceTimeline& b = same.rank.devices[d];
      ASSERT_EQ(a.compute_under_comm.length(), b.compute_under_comm.length());
      ASSERT_EQ(a.own_at_end.size(), a.comm.size());
      for (std::size_t row = 0; row < a.comm.size(); ++row)
        ASSERT_EQ(text_of(a.own_at_end[row]), text_of(b.own_at_end[row]));
    }
    ASSERT_EQ(f.rank.kernel_times.size(), same.rank.kernel_times.size());
    // Their memory is given back, too.
    ASSERT_EQ(f.rank.devices[0].starts.capacity(), 0U);
    ASSERT_EQ(f.rank.recording.host_ranges.size(), 0U);
    ASSERT_EQ(f.rank.classes.capacity(), 0U);
  }
}

// ---------------------------------------------------------------------------------------------
// Kernels by name

TEST(KernelTimes, CountsAndTotalsOfComputeTheLongestFirst) {
  const Found f = found(
      "compute@7 [0,100) [100,300) name=a; compute@7 [300,800) name=b; compute@7 [900,903) name=c;"
      "all_reduce@20 [0,900); memcpy@7 [800,900)");
  const std::vector<KernelTime>& times = f.rank.kernel_times;
  ASSERT_EQ(times.size(), 2U);  // c takes 3 of 803, less than 0.5 %
  EXPECT_EQ(times[0].name, "b");
  EXPECT_EQ(times[0].count, 1);
  EXPECT_EQ(times[0].total, 500);
  EXPECT_EQ(times[1].name, "a");
  EXPECT_EQ(times[1].count, 2);
  EXPECT_EQ(times[1].total, 300);
}

TEST(KernelTimes, NoMoreThan64) {
  StringPool names;
  for (int i = 0; i < 100; ++i) names.intern("kernel " + std::to_string(i));
  KernelTimes times(names.size());
  for (std::size_t i = 0; i < 100; ++i) times.add(StringId::from(i), 1'000 + static_cast<Ns>(i));
  const std::vector<KernelTime> most = times.most(names);
  ASSERT_EQ(most.size(), 64U);
  EXPECT_EQ(most.front().name, "kernel 99");
  EXPECT_EQ(most.back().name, "kernel 36");
}

}  // namespace
}  // namespace commlens
