// Stretches between communications: the running sums against looking at each one; and what is kept
// of comparisons in few bytes.
#include "match/stretch.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "match/excess_list.h"
#include "model/shares.h"

namespace commlens {
namespace {

struct Made {
  DeviceTimeline device;
  std::vector<Wait> waits;
};

// Communications that follow, touch, hold and overlap each other, some of no length; waits known
// and not, and senders that may have been held.
Made made(std::mt19937& random) {
  const auto any = [&random](Ns below) {
    return static_cast<Ns>(random() % static_cast<unsigned>(below));
  };
  Made job;
  Ns start = 0;
  const Ns count = 1 + any(12);
  for (Ns i = 0; i < count; ++i) {
    start += any(3) * any(20);
    CommOp op;
    op.time = {start, start + any(2) * any(any(4) == 0 ? 200 : 30)};
    job.device.comm.push_back(op);
    Wait wait;
    wait.known = any(4) != 0;
    wait.wait = any(op.time.length() + 1);
    if (any(4) == 0) wait.doubtful = any(op.time.length() + 1);
    job.waits.push_back(wait);
  }
  std::vector<Interval> compute;
  for (Ns i = any(10); i > 0; --i) {
    const Ns at = any(200);
    compute.push_back({at, at + any(25)});
  }
  job.device.compute_under_comm = IntervalSet(std::move(compute));
  // The whole stretch is communication: what is shared out is all of it.
  job.device.own_at_start.resize(job.device.comm.size());
  job.device.own_at_end.resize(job.device.comm.size());
  return job;
}

TEST(Stretch, RunningSumsAreTheSumsOfItsParts) {
  std::int64_t shared = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const Made job = made(random);
    const StretchIndex index(job.device, job.waits);
    const auto count = static_cast<std::uint32_t>(job.device.comm.size());
    for (std::uint32_t from = 0; from < count; ++from) {
      for (std::uint32_t to = 0; to < count; ++to) {
        // A stretch begins where the one communication has been left before the other was entered.
        if (from == to || job.device.comm[to].time.start < job.device.comm[from].time.end) continue;
        std::array<Ns, 3> weights{};
        for (const StretchPart& part : index.parts(from, to)) {
          weights[0] += part.waiting;
          weights[1] += part.transfer;
          weights[2] += part.unknown;
        }
        const Stretch stretch = index.between(from, to);
        std::array<Ns, 3> wanted{};
        split_by_weight(stretch.length, weights, wanted);
        ASSERT_EQ(stretch.waiting, wanted[0]) << seed << ": " << from << " to " << to;
        ASSERT_EQ(stretch.transfer, wanted[1]) << seed << ": " << from << " to " << to;
        ASSERT_EQ(stretch.unknown, wanted[2]) << seed << ": " << from << " to " << to;
        shared += stretch.waiting > 0 && stretch.transfer > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(shared, 1000);
}

TEST(ExcessList, KeepsWhatItWasGiven) {
  const Ns most = Ns{1} << 32U;
  ExcessList list(5);
  const std::vector<Excess> given{
      {.compute = 1, .host = 2, .waiting = 3, .transfer = 4, .unknown = 5, .since = 6},
      {.compute = most - 1, .unequal = true, .since = (1U << 30U) - 1},
      {.unknown = most, .unequal = true, .since = 7},  // more than 32 bits
      {.host = 9, .since = ~0U},                       // more than 30
  };
  for (std::size_t row = 0; row < given.size(); ++row) list.set(row, given[row]);
  for (std::size_t row = 0; row < given.size(); ++row) {
    EXPECT_EQ(list[row].weights(), given[row].weights()) << row;
    EXPECT_EQ(list[row].unequal, given[row].unequal) << row;
    EXPECT_EQ(list[row].since, given[row].since) << row;
  }
  EXPECT_EQ(list[4].sum(), 0);  // never set
}

}  // namespace
}  // namespace commlens
