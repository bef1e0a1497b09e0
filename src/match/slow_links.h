// Whose transfers take longer than those of their like.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/job.h"

namespace commlens {

// The ranks between which a group moves data. Of two ranks it is a link; of more, nobody can say
// which of its links is the slow one.
struct LinkGroup {
  std::vector<std::int64_t> ranks;   // global, sorted
  std::vector<std::int32_t> groups;  // rows of Matching::groups
  double pace = 1;                   // median over its operations: times as long as is usual
  bool comparable = false;           // there are other groups of the same kind to compare with
};

// By their ranks: both directions of a pair, and all groups over the same ranks, are one.
std::vector<LinkGroup> link_groups(const Job& job);

// Transfers beyond this are slow: links of one kind differ by less.
inline constexpr double kSlowPace = 1.15;

// The rank that all slow groups have in common while every group without it is at its usual pace,
// where at least two slow groups say so.
std::optional<std::int64_t> slow_rank(const std::vector<LinkGroup>& links);

}  // namespace commlens
