// What a communication costs once everybody is there: alpha + bytes over the slowest link, in the
// ring's steps.
#include <algorithm>
#include <numeric>

#include "simulate/plan.h"

namespace commlens::simulate {
namespace {

// Kilobytes a second as an integer keep the division exact and equal everywhere.
Ns bytes_time(std::int64_t bytes, double gbs) {
  const auto kilobytes_per_second = static_cast<std::int64_t>(gbs * 1e6 + 0.5);
  const std::int64_t whole = bytes / kilobytes_per_second;
  const std::int64_t rest = bytes % kilobytes_per_second;
  return whole * 1'000'000 + (rest * 1'000'000 + kilobytes_per_second - 1) / kilobytes_per_second;
}

// The busiest rank's bytes to or from others: what bounds an all-to-all. Both directions of the
// exchange are alike.
std::int64_t all_to_all_bytes(const std::vector<std::int64_t>& expert_rows,
                              std::int64_t row_bytes) {
  const std::int64_t routed =
      std::accumulate(expert_rows.begin(), expert_rows.end(), std::int64_t{0});
  const auto others = static_cast<std::int64_t>(expert_rows.size()) - 1;
  std::int64_t most = 0;
  for (const std::int64_t rows : expert_rows) most = std::max({most, routed - rows, rows * others});
  return most * row_bytes;
}

// What a member has for or from each, seen from its own experts or from its own tokens.
std::vector<std::int64_t> rows_of(const Collective& collective, std::size_t member,
                                  bool as_expert) {
  const std::vector<std::int64_t>& rows = collective.expert_rows;
  if (rows.empty() || !as_expert) return rows;
  return std::vector<std::int64_t>(rows.size(), rows[member]);
}

// The bytes that pass through the busiest link.
std::int64_t wire_bytes(const JobSpec& spec, const Collective& collective) {
  const auto ranks = static_cast<std::int64_t>(collective.members.size());
  const std::int64_t bytes = message_bytes_of(collective.members[0]);
  const std::int64_t chunk = (bytes + ranks - 1) / ranks;
  switch (collective.op) {
    case Op::all_reduce: return 2 * (ranks - 1) * chunk;
    case Op::all_gather:
    case Op::reduce_scatter: return (ranks - 1) * chunk;
    case Op::all_to_all:
      return all_to_all_bytes(collective.expert_rows, spec.hidden * kElementBytes);
    default: return bytes;
  }
}

}  // namespace

bool crosses_hosts(const Layout& layout, const Collective& collective) {
  if (!collective.point_to_point)
    return layout.groups[static_cast<std::size_t>(collective.group)].crosses_hosts;
  const auto host = [&](std::size_t member) {
    return layout.places[static_cast<std::size_t>(collective.members[member].rank)].host;
  };
  return host(0) != host(1);
}

std::vector<std::int64_t> rows_sent(const Collective& collective, std::size_t member) {
  return rows_of(collective, member, !collective.to_experts);
}

std::vector<std::int64_t> rows_received(const Collective& collective, std::size_t member) {
  return rows_of(collective, member, collective.to_experts);
}

std::int64_t message_bytes_of(const Member& member) {
  return std::max(member.in_elements, member.out_elements) * kElementBytes;
}

Ns ideal_transfer(const JobSpec& spec, const Layout& layout, const Collective& collective) {
  const Link& link = crosses_hosts(layout, collective) ? spec.inter : spec.intra;
  return link.alpha_ns + bytes_time(wire_bytes(spec, collective), link.gbs);
}

}  // namespace commlens::simulate
