// Sizes and bandwidths as nccl-tests defines them (docs/numbers.md): pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "base/id.h"
#include "model/operation.h"

namespace commlens {

// The nccl-tests size in bytes of one message: what `algbw` divides.
//   in_elements, out_elements: elements of this rank's input and output tensors, as PyTorch records
//     them; negative is unknown (32-bit overflow in old writers).
//   element_size: bytes.
// Nothing where the size cannot be known, and for a barrier, which carries no message.
std::optional<std::int64_t> message_bytes(Op op, std::int64_t in_elements,
                                          std::int64_t out_elements, std::int64_t element_size);

// busbw = algbw * factor(op, ranks). Nothing for a barrier, where the op is not known, and where
// the number of ranks counts but is not known (0): a broadcast has factor 1 for any.
std::optional<double> bus_factor(Op op, int ranks);

// GB/s of 1e9 bytes. Nothing for no time.
std::optional<double> gigabytes_per_second(std::int64_t bytes, Ns time);

}  // namespace commlens
