// What NCCL's own model says that a ring inside one host can do, by the kind of GPU.
//
// The weakest source of an achievable rate: it knows the links that a GPU is built with, not those
// that a host has. Between hosts it says nothing: what adapters there are is not in a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/id.h"
#include "model/operation.h"

namespace commlens {

struct ModelledTransfer {
  double ns = 0;
  double algbw_gbs = 0;  // that large messages approach
};

// `ranks` GPUs of this name on one host; `bytes` is the nccl-tests size. Nothing for a GPU that is
// not in the table, one without NVLink, or an operation that the model does not know.
std::optional<ModelledTransfer> modelled_transfer(std::string_view gpu_name, Op op,
                                                  std::int64_t ranks, std::int64_t bytes);

}  // namespace commlens
