// The trail behind one wait: for whom, and why that rank was late, hop by hop to where it ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "model/operation.h"

namespace commlens {

struct TrailHop {
  std::int64_t waiter = 0;  // global ranks
  std::int64_t culprit = 0;
  Op op = Op::unknown;     // in which the one waited for the other
  std::string group;       // its label; empty where not known
  std::int64_t step = -1;  // of the waiter; -1: outside steps
  Ns waited = 0;
  Ns exposed = 0;
  std::string_view
      because;  // "compute", "host", "waiting" (the next hop says for whom), "transfer",
                // "imbalance", "unknown": what the culprit had most more of
  Ns more = 0;  // how much more of it than the waiter, since they last left an operation
  std::string_view confidence;  // of this wait: "certain", "likely", "undecidable"
};

using Trail = std::vector<TrailHop>;

}  // namespace commlens
