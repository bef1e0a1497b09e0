#include "match/comparison.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/saturated.h"

namespace commlens {
namespace {

// Ends of an operation that both left "together" lie no further apart.
constexpr Ns kTogether = 50'000;
// A rank that had this much more to exchange than its peer is unequal, not slow.
constexpr double kMoreBytes = 1.1;

Ns more(Ns late, Ns waiter) { return std::max<Ns>(0, late - waiter); }

}  // namespace

ComparisonTables::ComparisonTables(const Job& job, const Waits& waits, unsigned threads)
    : job_(job), common_(job), stretches_(job.ranks.size()), exchanges_(job.ranks.size()) {
  for_each_parallel(job.ranks.size(), threads, [&](std::size_t rank) {
    const std::vector<DeviceTimeline>& devices = job.ranks[rank].devices;
    stretches_[rank].resize(devices.size());
    for (std::size_t device = 0; device < devices.size(); ++device) {
      const std::vector<CommOp>& comm = devices[device].comm;
      stretches_[rank][device].emplace(devices[device], waits.of[rank][device]);
      exchanges_[rank].push_back(std::any_of(
          comm.begin(), comm.end(), [](const CommOp& op) { return op.op == Op::all_to_all; }));
    }
  });
}

const Stretch& Comparison::stretch_of_late(const Part& late, std::uint32_t since) {
  if (!stretch_ || late_ != late || since_ != since) {
    stretch_ = tables_.stretches(late).between(since, late.op);
    late_ = late;
    since_ = since;
  }
  return *stretch_;
}

std::int64_t Comparison::exchanged_bytes(std::uint32_t since, const Part& part) {
  const DeviceTimeline& device = device_of(job_, part);
  std::int64_t bytes = 0;
  const auto add = [&](std::uint32_t op) {
    if (device.comm[op].op == Op::all_to_all)
      bytes = saturated_sum(bytes, device.comm[op].bytes.value_or(0));
  };
  for (const StretchPart& between : parts(since, part)) add(between.op);
  add(since);
  add(part.op);
  return bytes;
}

bool Comparison::had_more_bytes(const CommonOps::Found& since, const Part& late,
                                const Part& waiter) {
  if (!tables_.exchanges(late)) return false;
  const auto its = static_cast<double>(exchanged_bytes(since.a.op, late));
  const auto usual = static_cast<double>(exchanged_bytes(since.b.op, waiter));
  return usual > 0 && its > kMoreBytes * usual;
}

std::optional<Excess> Comparison::compare(const Part& late, const Part& waiter) {
  const auto since = tables_.common().before(late, waiter, kTogether, common_groups_);
  if (!since) return std::nullopt;
  const Stretch its = stretch_of_late(late, since->a.op);
  const Stretch theirs = tables_.stretches(waiter).between(since->b.op, waiter.op);
  Excess excess;
  excess.compute = more(its.compute, theirs.compute);
  excess.host = more(its.memory, theirs.memory);
  excess.waiting = more(its.waiting, theirs.waiting);
  excess.transfer = more(its.transfer, theirs.transfer);
  excess.unknown = more(its.unknown, theirs.unknown);
  excess.since = since->a.op;
  if (device_of(job_, late).launches_known && device_of(job_, waiter).launches_known) {
    excess.host += more(its.host, theirs.host);
    excess.unknown += more(its.gaps, theirs.gaps);
  } else {
    excess.unknown += more(its.host + its.gaps, theirs.host + theirs.gaps);
  }
  excess.unequal = excess.compute > 0 && had_more_bytes(*since, late, waiter);
  return excess;
}

}  // namespace commlens
