#include "small_job.h"

#include <algorithm>

namespace commlens::notation {

SmallJob::SmallJob(std::size_t ranks) : compute_(ranks), entries_(ranks), clock_(ranks, 0) {
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    RankTimeline& row = job_.ranks.emplace_back();
    row.rank = static_cast<std::int64_t>(rank);
    row.ready = true;
    row.devices.emplace_back();
    row.devices[0].device = 0;
  }
  job_.matching.known = true;
  job_.clocks.known = true;
  job_.clocks.lines.resize(ranks);
  for (ClockLine& line : job_.clocks.lines) {
    line.offset = 0;
    line.method = ClockMethod::same_host;
  }
  job_.clocks.domain.assign(ranks, 0);
  job_.clocks.base.assign(ranks, 0);
}

void SmallJob::compute(std::size_t rank, Ns start, Ns end) {
  compute_[rank].push_back({start, end});
}

std::int32_t SmallJob::group_of(const std::vector<std::int64_t>& ranks, bool pair) {
  auto& groups = job_.matching.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].ranks == ranks && groups[i].pair == pair) return static_cast<std::int32_t>(i);
  }
  MatchGroup group;
  group.ranks = ranks;
  group.pair = pair;
  for (const std::int64_t rank : ranks)
    group.label += (group.label.empty() ? "" : pair ? "->" : ",") + std::to_string(rank);
  groups.push_back(group);
  return static_cast<std::int32_t>(groups.size() - 1);
}

void SmallJob::add_part(std::size_t op, std::size_t index, std::int64_t rank, Interval time,
                        Op kind) {
  Entry entry{.op = op, .index = index, .comm = {}};
  entry.comm.time = time;
  entry.comm.op = kind;
  entries_[static_cast<std::size_t>(rank)].push_back(entry);
}

MatchedOp& SmallJob::together(Op op, std::vector<std::int64_t> ranks, std::vector<Interval> times,
                              std::int32_t root) {
  MatchedOp row;
  row.op = op;
  row.group = group_of(ranks, false);
  row.count = static_cast<std::uint32_t>(ranks.size());
  row.root = root;
  row.by = MatchedBy::sequence;
  ops_.push_back(row);
  parts_.emplace_back(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    add_part(ops_.size() - 1, i, ranks[i], times[i], op);
  return ops_.back();
}

MatchedOp& SmallJob::pair(std::int64_t source, std::int64_t destination, Interval sends,
                          Interval receives) {
  MatchedOp row;
  row.op = Op::send_recv;
  row.group = group_of({source, destination}, true);
  row.count = 2;
  row.pair = true;
  ops_.push_back(row);
  parts_.emplace_back(2);
  add_part(ops_.size() - 1, 0, source, sends, Op::send);
  add_part(ops_.size() - 1, 1, destination, receives, Op::recv);
  return ops_.back();
}

void SmallJob::shift_clock(std::size_t rank, Ns by) { clock_[rank] = by; }

// Nanosecond by nanosecond: slow, and nothing to get wrong.
void SmallJob::finish_rank(std::size_t rank) {
  DeviceTimeline& device = job_.ranks[rank].devices[0];
  std::stable_sort(
      entries_[rank].begin(), entries_[rank].end(),
      [](const Entry& a, const Entry& b) { return a.comm.time.start < b.comm.time.start; });
  std::vector<OwnTime> before(kEnd + 1);
  std::vector<Interval> under;
  for (Ns at = 0; at < kEnd; ++at) {
    const auto holds = [at](Interval part) { return part.start <= at && at < part.end; };
    const bool computes = std::any_of(compute_[rank].begin(), compute_[rank].end(), holds);
    const bool communicates =
        std::any_of(entries_[rank].begin(), entries_[rank].end(),
                    [&](const Entry& entry) { return holds(entry.comm.time); });
    OwnTime next = before[static_cast<std::size_t>(at)];
    if (computes) ++next.compute;
    if (!computes && !communicates) ++next.host;
    if (computes && communicates) under.push_back({at, at + 1});
    before[static_cast<std::size_t>(at) + 1] = next;
  }
  const Ns shift = clock_[rank];
  const auto moved = [shift](Interval part) {
    return Interval{part.start + shift, part.end + shift};
  };
  for (const Entry& entry : entries_[rank]) {
    parts_[entry.op][entry.index] = {static_cast<std::uint32_t>(rank), 0,
                                     static_cast<std::uint32_t>(device.comm.size())};
    CommOp comm = entry.comm;
    comm.time = moved(comm.time);
    device.comm.push_back(comm);
    device.own_at_start.push_back(before[static_cast<std::size_t>(entry.comm.time.start)]);
    device.own_at_end.push_back(before[static_cast<std::size_t>(entry.comm.time.end)]);
  }
  for (Interval& part : under) part = moved(part);
  device.compute_under_comm = IntervalSet(std::move(under));
  device.launches_known = true;
  device.extent = moved({0, kEnd});
  device.breakdown.window = device.extent;
  device.breakdown.compute_only = before[kEnd].compute;
  device.breakdown.host_idle = before[kEnd].host;
  device.exposures.assign(device.comm.size(), {});
  for (Exposure& exposure : device.exposures) exposure.in_window = exposure.starts_inside = true;
}

Job SmallJob::done() {
  for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) finish_rank(rank);
  std::vector<std::size_t> order(ops_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [this](std::size_t a, std::size_t b) { return ops_[a].group < ops_[b].group; });
  for (const std::size_t row : order) {
    MatchedOp op = ops_[row];
    op.first = static_cast<std::uint32_t>(job_.matching.parts.size());
    job_.matching.parts.insert(job_.matching.parts.end(), parts_[row].begin(), parts_[row].end());
    job_.matching.ops.push_back(op);
  }
  return job_;
}

}  // namespace commlens::notation
