#include "simulate/hidden.h"

#include <algorithm>
#include <set>

namespace commlens::simulate {
namespace {

bool is_missing(const SimulatedJob& job, int rank) {
  return job.ranks[static_cast<std::size_t>(rank)].missing;
}

// Without group data, groups can only be guessed from kernels that end together on one clock.
bool clocks_and_groups_unknown(const Scenario& scenario, const SimulatedJob& job) {
  if (scenario.record.metadata) return false;
  return !scenario.record.hosts || job.layout.places.back().host > 0;
}

// Whoever came last in an operation of many is known only when all of them are.
bool never_whole(const SimulatedJob& job, int rank) {
  return std::ranges::none_of(job.collectives, [&](const Collective& collective) {
    const auto& members = collective.members;
    return std::ranges::find(members, rank, &Member::rank) != members.end() &&
           std::ranges::none_of(
               members, [&job](const Member& member) { return is_missing(job, member.rank); });
  });
}

using Pair = std::pair<int, int>;

// The pairs of ranks that have operations of their own: point-to-point, or groups of just the two.
// What passes between more than two takes as long for all of them.
std::set<Pair> lone_pairs(const SimulatedJob& job) {
  std::set<Pair> pairs;
  for (const Collective& collective : job.collectives) {
    if (collective.members.size() != 2) continue;
    const auto [a, b] = std::minmax(collective.members[0].rank, collective.members[1].rank);
    if (!is_missing(job, a) && !is_missing(job, b)) pairs.emplace(a, b);
  }
  return pairs;
}

// Whether there is another pair whose transfers this one's can be compared with: on the same kind
// of link.
bool has_peer(const SimulatedJob& job, const std::set<Pair>& pairs, Pair link) {
  const auto crosses = [&job](Pair pair) {
    return job.layout.places[static_cast<std::size_t>(pair.first)].host !=
           job.layout.places[static_cast<std::size_t>(pair.second)].host;
  };
  return std::ranges::any_of(
      pairs, [&](Pair pair) { return pair != link && crosses(pair) == crosses(link); });
}

std::string link_hidden_by(const Scenario& scenario, const SimulatedJob& job, const Fault& fault) {
  if (!scenario.record.hosts)
    return "links between hosts are slower than those inside, and the hosts are not known";
  const Pair link = std::minmax({fault.rank, fault.peer});
  const std::set<Pair> pairs = lone_pairs(job);
  if (!pairs.contains(link)) return "the link is only used inside groups of more than two";
  if (!has_peer(job, pairs, link)) return "there is no other pair to compare the link with";
  return "";
}

}  // namespace

std::string hidden_by(const Scenario& scenario, const SimulatedJob& job, const Fault& fault) {
  if (is_missing(job, fault.rank) || (fault.peer >= 0 && is_missing(job, fault.peer)))
    return "the culprit has no trace";
  if (std::ranges::count(job.ranks, false, &RankTrace::missing) < 2)
    return "only one rank has a trace";
  if (never_whole(job, fault.rank))
    return "a member of each of its operations has no trace, and may have come later still";
  if (clocks_and_groups_unknown(scenario, job))
    return "without group data, operations of ranks on different clocks cannot be matched";
  return fault.kind == FaultKind::slow_link ? link_hidden_by(scenario, job, fault) : "";
}

}  // namespace commlens::simulate
