// Whether calls that somebody wrote down, without times, are the operations of a timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "match/comm_sequence.h"

namespace commlens {

struct CallOrder {
  std::vector<std::int32_t> call_of;  // by operation: row of the calls; -1: none
  std::size_t paired = 0;             // operations with a call

  // From the first call with an operation to the last one.
  std::size_t calls_between() const;
};

// Whether a communicator's calls may be the operations as well as those of the best one, which has
// `best` pairs: it has about as many; or half as many and hardly a call between them that is none
// of the operations, as it would be if lines of it were lost.
bool is_rival(const CallOrder& order, std::size_t best);

// Lays a rank's operations of one group beside the calls of one communicator, both in order, where
// most of them agree (`fits`). Of several such places the first: calls repeat with every step, and
// equal places say the same.
CallOrder lay_beside(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls);

}  // namespace commlens
