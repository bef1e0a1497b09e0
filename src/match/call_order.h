// Whether calls that somebody wrote down, without times, are the operations of a timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "match/comm_sequence.h"

namespace commlens {

struct CallOrder {
  std::vector<std::int32_t> call_of;  // by operation: row of the calls; -1: none
  std::size_t paired = 0;             // operations with a call
};

// Lays a rank's operations of one group beside the calls of one communicator, both in order, where
// most of them agree (`fits`). Of several such places the first: calls repeat with every step, and
// equal places say the same.
CallOrder lay_beside(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls);

}  // namespace commlens
