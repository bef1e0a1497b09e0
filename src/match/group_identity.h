// Which process groups of different ranks are one group.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"

namespace commlens {

// Where a rank's group went.
struct GroupPlace {
  std::int32_t group = -1;  // row of GroupIdentities::groups; -1: see `reason`
  std::string reason;       // why its operations cannot be matched: one sentence's end
};

struct GroupIdentities {
  std::vector<MatchGroup> groups;  // by members, then label
  // By row of Job::ranks, by row of its groups. Empty for rows that take no part.
  std::vector<std::vector<GroupPlace>> places;
};

// Over these rows of Job::ranks, one a rank.
GroupIdentities join_groups(const Job& job, const std::vector<std::size_t>& rows);

}  // namespace commlens
