// The transfers of a job by kind of operation, and a line through each kind's.
#pragma once

#include <cstdint>
#include <vector>

#include "match/comm_numbers.h"
#include "model/transfer_fit.h"

namespace commlens {

// Which kind each matched operation is of.
struct TransferKinds {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kSeveral = kNone - 1;

  // By number of a communication: its row of Matching::ops; kSeveral: one kernel with several.
  std::vector<std::uint32_t> op_of;
  std::vector<TransferKind> kinds;  // by row of Matching::ops
  std::vector<std::int64_t> bytes;  // by the same: the largest of its parts; -1: not known
};

TransferKinds find_transfer_kinds(const Job& job, const CommNumbers& numbers);

// A line through the transfers of each kind: of operations with all members, on clocks that are at
// least estimated. One sample for each, from the last to enter: it waited for nobody, so that its
// whole time is transfer, whatever the clocks.
TransferFits find_transfer_fits(const Job& job);

}  // namespace commlens
