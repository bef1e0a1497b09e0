#include "model/job.h"

#include <algorithm>

#include "model/rank_list.h"

namespace commlens {

std::string_view evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::metadata: return "metadata";
    case Evidence::host_operation: return "host_operation";
    case Evidence::host_nesting: return "host_nesting";
    case Evidence::kernel_name: return "kernel_name";
    case Evidence::user_rule: return "user_rule";
    case Evidence::host_interval: return "host_interval";
  }
  return "?";
}

std::string group_label(const GroupIdentity& group, std::int64_t rank) {
  const bool described = !group.description.empty() && group.description != "undefined";
  const std::string base = described ? group.description : "group " + group.name;
  if (!group.ranks.empty()) return base + "[" + format_ranks(group.ranks) + "]";
  return base + (described && !group.name.empty() ? " " + group.name : "") +
         "[members unknown, rank " + std::to_string(rank) + "]";
}

std::int64_t step_count(const Job& job) {
  std::size_t most = 1;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) most = std::max(most, device.steps.size());
  }
  return static_cast<std::int64_t>(most);
}

bool has_timelines(const Job& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(),
                     [](const RankTimeline& rank) { return !rank.devices.empty(); });
}

bool only_measured(const Job& job) { return job.ranks.empty() && !job.measured.empty(); }

bool has_several_ranks(const Job& job) {
  return has_timelines(job) &&
         std::any_of(job.ranks.begin(), job.ranks.end(), [&job](const RankTimeline& rank) {
           return rank.rank != job.ranks.front().rank;
         });
}

}  // namespace commlens
