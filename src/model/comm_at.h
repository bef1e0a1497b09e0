// From a node of a rank's work to its communication.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/job.h"

namespace commlens {

// The communication that a node is; null for other work.
inline const CommOp* comm_at(const RankTimeline& rank, std::uint32_t node) {
  const std::vector<CommNode>& comm = rank.work.comm;
  const auto found =
      std::lower_bound(comm.begin(), comm.end(), node,
                       [](const CommNode& row, std::uint32_t wanted) { return row.node < wanted; });
  if (found == comm.end() || found->node != node) return nullptr;
  return &rank.devices[found->device].comm[found->op];
}

}  // namespace commlens
