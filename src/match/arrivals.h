// Who enters each operation last, in common time, and how surely.
#pragma once

#include <cstdint>
#include <vector>

#include "match/comm_numbers.h"

namespace commlens {

// The last of those that somebody needs.
struct Arrival {
  Ns at = 0;                        // common time
  std::vector<std::uint32_t> last;  // numbers of the communications that enter then; ties: several
  bool estimated = true;            // the clocks of all candidates are at least estimated
  bool likely = true;               // nobody else came later, within the scatter of the estimates
  bool certain = true;              // nobody else did, for any clocks that causality allows
};

// The last of `candidates` (numbers of communications; at least one).
Arrival last_arrival(const Job& job, const CommNumbers& numbers, const std::vector<Ns>& entries,
                     const std::vector<std::uint32_t>& candidates);

}  // namespace commlens
