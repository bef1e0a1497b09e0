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

// Whether the calls may be the operations, one for each, where `lost_before` each of them so many
// lines were lost. One in ten of those that were not may differ.
bool may_have_lost(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls,
                   const std::vector<std::int64_t>& lost_before);

// How many calls in a row, at most, are operations in their order: what is left of the operations'
// calls where it is not known how many lines were lost.
std::size_t longest_remains(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls);

// Lays a rank's operations of one group beside the calls of one communicator, both in order, where
// most of them agree (`fits`). Of several such places the first: calls repeat with every step, and
// equal places say the same.
CallOrder lay_beside(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls);

}  // namespace commlens
