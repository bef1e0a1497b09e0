// Which ranks a rank can be compared with: those that do the same work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job.h"

namespace commlens {

class Peers {
 public:
  explicit Peers(const Job& job);

  // Rows of the ranks that share a collective's group with this one and communicate about as much;
  // without it. Empty where there are none (a pipeline of single ranks).
  const std::vector<std::uint32_t>& of(std::uint32_t rank) const { return peers_[rank]; }
  // What to call them: the group that most of them come from ("mesh_tp[0-3]"); empty for none.
  const std::string& group_of(std::uint32_t rank) const { return groups_[rank]; }

 private:
  std::vector<std::vector<std::uint32_t>> peers_;
  std::vector<std::string> groups_;
};

}  // namespace commlens
