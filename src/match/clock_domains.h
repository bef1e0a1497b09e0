// Which ranks share a clock for certain.
#pragma once

#include <string>
#include <vector>

#include "match/clock_evidence.h"

namespace commlens {

struct SharedClocks {
  ClockDomains domains;
  ClockEvidence evidence;  // for these domains, without operations that contradict them
  std::vector<bool>
      doubted;  // by row of Matching::ops: those that were left out for that; may be empty
  Ns skew = 0;  // the largest contradiction that was put down to reading clocks
  std::string contradiction;  // of ranks said to share a host, in words; empty: none
};

SharedClocks find_shared_clocks(const Job& job);

}  // namespace commlens
