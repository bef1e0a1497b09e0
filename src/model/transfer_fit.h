// What moving data costs: time = alpha + bytes / rate, fitted to transfers without their waiting.
//
// One fit for each kind of operation: what it does, among how many ranks, on how many hosts.
// match/transfer_fits collects the samples.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/id.h"
#include "model/operation.h"

namespace commlens {

struct TransferKind {
  Op op = Op::unknown;     // Op::send_recv for a send with its receive
  std::int64_t ranks = 0;  // of the group; 0: not known
  std::int64_t hosts = 0;  // that the group spans; 0: not known
  friend auto operator<=>(const TransferKind&, const TransferKind&) = default;
};

struct TransferSample {
  std::int64_t bytes = 0;  // nccl-tests size
  Ns time = 0;
};

struct TransferFit {
  Ns alpha_ns = 0;           // of a message of no bytes; 0 where it cannot be told from nothing
  Ns alpha_error_ns = 0;     // its standard error: large where sizes are close to each other
  double ns_per_byte = 0;    // of the nccl-tests size, not of what passes a link
  double spread = 0;         // half of the samples lie within this part of the line: 0.02 is 2 %
  std::int64_t samples = 0;  // operations
  std::int64_t sizes = 0;    // distinct ones among them

  Ns at(std::int64_t bytes) const;
  // Whether alpha is told apart from nothing, and within a factor of two.
  bool tells_alpha() const { return sizes > 1 && 2 * alpha_error_ns <= alpha_ns; }
  // The size at which half of the time is alpha, and so half of the rate is reached; nothing where
  // alpha cannot be told or size costs nothing.
  std::optional<std::int64_t> half_bandwidth_bytes() const;
};

using TransferFits = std::map<TransferKind, TransferFit>;

// Nothing without a sample of a positive time. Sizes are >= 0.
std::optional<TransferFit> fit_transfers(std::vector<TransferSample> samples);

}  // namespace commlens
