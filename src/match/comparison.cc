#include "match/comparison.h"

#include <algorithm>

namespace commlens {
namespace {

// Ends of an operation that both left "together" lie no further apart.
constexpr Ns kTogether = 50'000;
// A rank that had this much more to exchange than its peer is unequal, not slow.
constexpr double kMoreBytes = 1.1;

Ns more(Ns late, Ns waiter) { return std::max<Ns>(0, late - waiter); }

}  // namespace

Comparison::Comparison(const Job& job, const Waits& waits)
    : job_(job), waits_(waits), common_(job) {
  for (const RankTimeline& rank : job.ranks) {
    stretches_.emplace_back(rank.devices.size());
    exchanges_.emplace_back();
    for (const DeviceTimeline& device : rank.devices)
      exchanges_.back().push_back(
          std::any_of(device.comm.begin(), device.comm.end(),
                      [](const CommOp& op) { return op.op == Op::all_to_all; }));
  }
}

const StretchIndex& Comparison::stretches(const Part& part) {
  auto& index = stretches_[part.rank][part.device];
  if (!index)
    index =
        std::make_unique<StretchIndex>(device_of(job_, part), waits_.of[part.rank][part.device]);
  return *index;
}

const Stretch& Comparison::stretch_of_late(const Part& late, std::uint32_t since) {
  if (!stretch_ || late_ != late || since_ != since) {
    stretch_ = stretches(late).between(since, late.op);
    late_ = late;
    since_ = since;
  }
  return *stretch_;
}

std::int64_t Comparison::exchanged_bytes(std::uint32_t since, const Part& part) {
  const DeviceTimeline& device = device_of(job_, part);
  std::int64_t bytes = 0;
  const auto add = [&](std::uint32_t op) {
    if (device.comm[op].op == Op::all_to_all) bytes += device.comm[op].bytes.value_or(0);
  };
  for (const StretchPart& between : parts(since, part)) add(between.op);
  add(since);
  add(part.op);
  return bytes;
}

bool Comparison::had_more_bytes(const CommonOps::Found& since, const Part& late,
                                const Part& waiter) {
  if (exchanges_[late.rank][late.device] == 0) return false;
  const auto its = static_cast<double>(exchanged_bytes(since.a.op, late));
  const auto usual = static_cast<double>(exchanged_bytes(since.b.op, waiter));
  return usual > 0 && its > kMoreBytes * usual;
}

std::optional<Excess> Comparison::compare(const Part& late, const Part& waiter) {
  const auto since = common_.before(late, waiter, kTogether);
  if (!since) return std::nullopt;
  const Stretch its = stretch_of_late(late, since->a.op);
  const Stretch theirs = stretches(waiter).between(since->b.op, waiter.op);
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
