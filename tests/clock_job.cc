#include "clock_job.h"

#include <algorithm>
#include <cmath>

namespace commlens::notation {

ClockJob::ClockJob(const std::vector<std::string>& hosts) : clocks_(hosts.size()) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    RankTimeline& rank = job_.ranks.emplace_back();
    rank.rank = static_cast<std::int64_t>(i);
    rank.host = hosts[i];
    rank.recording.clock = ClockBase::epoch;
    rank.devices.emplace_back();
  }
  job_.matching.known = true;
}

void ClockJob::set_clock(std::size_t rank, Ns ahead, double ppm) { clocks_[rank] = {ahead, ppm}; }

Ns ClockJob::own(std::size_t rank, Ns true_time) const {
  const double drifted = clocks_[rank].ppm * 1e-6 * static_cast<double>(true_time);
  return true_time + clocks_[rank].ahead + std::llround(drifted);
}

Ns ClockJob::true_time(std::size_t rank, Ns own) const {
  return std::llround(static_cast<double>(own - clocks_[rank].ahead) /
                      (1 + clocks_[rank].ppm * 1e-6));
}

std::int32_t ClockJob::group_of(const std::vector<std::uint32_t>& ranks, bool pair) {
  const std::pair group{ranks, pair};
  const auto found = std::find(groups_.begin(), groups_.end(), group);
  const auto row = static_cast<std::int32_t>(found - groups_.begin());
  if (found == groups_.end()) {
    groups_.push_back(group);
    MatchGroup& named = job_.matching.groups.emplace_back();
    named.pair = pair;
    named.ranks.assign(ranks.begin(), ranks.end());
  }
  return row;
}

MatchedOp& ClockJob::add(Op op, const std::vector<std::uint32_t>& ranks,
                         const std::vector<Interval>& times, bool pair) {
  MatchedOp matched;
  matched.op = op;
  matched.group = group_of(ranks, pair);
  matched.first = static_cast<std::uint32_t>(job_.matching.parts.size());
  matched.count = static_cast<std::uint32_t>(ranks.size());
  matched.by = MatchedBy::sequence;
  matched.pair = pair;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    DeviceTimeline& device = job_.ranks[ranks[i]].devices[0];
    job_.matching.parts.push_back({ranks[i], 0, static_cast<std::uint32_t>(device.comm.size())});
    CommOp comm;
    comm.op = op;
    comm.time = {own(ranks[i], times[i].start), own(ranks[i], times[i].end)};
    device.comm.push_back(comm);
  }
  job_.matching.ops.push_back(matched);
  return job_.matching.ops.back();
}

MatchedOp& ClockJob::together(Op op, const std::vector<std::uint32_t>& ranks,
                              const std::vector<Interval>& times, std::int32_t root) {
  MatchedOp& matched = add(op, ranks, times, false);
  matched.root = root;
  return matched;
}

MatchedOp& ClockJob::pair(std::uint32_t source, std::uint32_t destination, Interval sends,
                          Interval receives) {
  return add(Op::send_recv, {source, destination}, {sends, receives}, true);
}

Job ClockJob::done() const {
  Job job = job_;
  std::stable_sort(job.matching.ops.begin(), job.matching.ops.end(),
                   [](const MatchedOp& a, const MatchedOp& b) { return a.group < b.group; });
  return job;
}

}  // namespace commlens::notation
