#include "model/bandwidth.h"

#include <algorithm>

namespace commlens {
namespace {

// Elements of the nccl-tests size. PyTorch's two numbers say it as their larger one: the total of
// an all-gather is its output, that of a reduce-scatter its input, and an all-reduce has it twice.
// Negative is unknown; then the other is enough only where it is never the smaller one.
std::int64_t message_elements(Op op, std::int64_t in, std::int64_t out) {
  if (in >= 0 && out >= 0) return std::max(in, out);
  switch (op) {
    case Op::all_gather:
    case Op::gather: return out;
    case Op::reduce_scatter:
    case Op::scatter: return in;
    case Op::all_reduce:
    case Op::broadcast:
    case Op::reduce:
    case Op::send:
    case Op::recv: return std::max(in, out);
    default: return -1;
  }
}

}  // namespace

std::optional<std::int64_t> message_bytes(Op op, std::int64_t in_elements,
                                          std::int64_t out_elements, std::int64_t element_size) {
  // A barrier carries no message; a size of 0 would only drag down the bandwidth of what it is
  // summed with.
  if (op == Op::barrier) return std::nullopt;
  const std::int64_t elements = message_elements(op, in_elements, out_elements);
  std::int64_t bytes = 0;
  if (elements < 0 || element_size <= 0) return std::nullopt;
  if (__builtin_mul_overflow(elements, element_size, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<double> bus_factor(Op op, int ranks) {
  const bool counted = ranks > 0;
  const double others = ranks - 1.0;
  switch (op) {
    case Op::all_reduce:
      if (!counted) return std::nullopt;
      return 2.0 * others / ranks;
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::gather:
    case Op::scatter:
    case Op::moe_dispatch:
    case Op::moe_combine:
      if (!counted) return std::nullopt;
      return others / ranks;
    case Op::broadcast:
    case Op::reduce:
    case Op::send:
    case Op::recv:
    case Op::send_recv:
    case Op::put_get:
    case Op::copy: return 1.0;
    case Op::barrier:
    case Op::unknown: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> gigabytes_per_second(std::int64_t bytes, Ns time) {
  if (time <= 0 || bytes < 0) return std::nullopt;
  // Bytes per nanosecond are GB of 1e9 bytes per second.
  return static_cast<double>(bytes) / static_cast<double>(time);
}

}  // namespace commlens
