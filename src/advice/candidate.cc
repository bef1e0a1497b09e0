#include "advice/candidate.h"

#include <algorithm>

namespace commlens {
namespace {

// Of the rank that has most; where no steps were chosen, all.
std::int64_t steps_with_figures(const Job& job, std::int64_t all) {
  std::size_t most = 0;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices)
      most = std::max(most, device.step_figures.size());
  }
  return most > 0 ? std::min(all, static_cast<std::int64_t>(most)) : all;
}

}  // namespace

Scene::Scene(const Graph& graph)
    : graph_(graph),
      steps_(step_count(graph.job())),
      chosen_steps_(steps_with_figures(graph.job(), steps_)),
      step_(graph.job().path.window.length() / steps_),
      hosts_(graph.job()) {
  for (const MatchGroup& group : graph.job().matching.groups)
    hosts_of_group_.push_back(hosts_.count(group.ranks));
}

const GroupIdentity* Scene::group_of(std::uint32_t row, const CommOp& op) const {
  return op.group < 0 ? nullptr : &job().ranks[row].groups[static_cast<std::size_t>(op.group)];
}

std::string Scene::groups_words(std::uint32_t row, const CommOp& op) const {
  const GroupIdentity* group = group_of(row, op);
  if (group == nullptr) return "groups that are not recorded";
  const std::string role(group_role_name(group->role));
  const bool described = !group->description.empty() && group->description != "undefined";
  if (described) return (role.empty() ? "" : role + " ") + "groups (" + group->description + ")";
  if (!role.empty()) return role + " groups";
  return group->size > 0 ? "groups of " + std::to_string(group->size) + " ranks" : "groups";
}

TransferKind Scene::kind_of(const MatchedOp& op) const {
  if (op.group < 0) return {op.op, op.count, 0};
  const auto row = static_cast<std::size_t>(op.group);
  const auto members = static_cast<std::int64_t>(job().matching.groups[row].ranks.size());
  return {op.op, members, hosts_of_group_[row]};
}

const TransferFit* Scene::fit_of(const MatchedOp& op) const {
  const auto found = job().transfer_fits.find(kind_of(op));
  return found == job().transfer_fits.end() || !found->second.tells_alpha() ? nullptr
                                                                            : &found->second;
}

}  // namespace commlens
