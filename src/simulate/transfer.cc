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

// The busiest rank's bytes to or from others: what bounds an all-to-all.
std::int64_t all_to_all_bytes(const Collective& collective, std::int64_t row_bytes) {
  std::int64_t most = 0;
  for (std::size_t own = 0; own < collective.members.size(); ++own) {
    const Member& member = collective.members[own];
    const auto others = [own](const std::vector<std::int64_t>& rows) {
      return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) - rows[own];
    };
    most = std::max({most, others(member.in_rows), others(member.out_rows)});
  }
  return most * row_bytes;
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
    case Op::all_to_all: return all_to_all_bytes(collective, spec.hidden * kElementBytes);
    default: return bytes;
  }
}

bool crosses_hosts(const Layout& layout, const Collective& collective) {
  if (!collective.point_to_point)
    return layout.groups[static_cast<std::size_t>(collective.group)].crosses_hosts;
  const auto host = [&](std::size_t member) {
    return layout.places[static_cast<std::size_t>(collective.members[member].rank)].host;
  };
  return host(0) != host(1);
}

}  // namespace

std::int64_t message_bytes_of(const Member& member) {
  return std::max(member.in_elements, member.out_elements) * kElementBytes;
}

Ns ideal_transfer(const JobSpec& spec, const Layout& layout, const Collective& collective) {
  const Link& link = crosses_hosts(layout, collective) ? spec.inter : spec.intra;
  return link.alpha_ns + bytes_time(wire_bytes(spec, collective), link.gbs);
}

}  // namespace commlens::simulate
