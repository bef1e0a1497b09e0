// Text of a Kineto trace for measuring: shaped like a training step's, of any size, the same each
// time.
#pragma once

#include <cstddef>
#include <string>

namespace commlens {

enum class TraceMix {
  stack,  // Python frames and tensor shapes: most of the bytes are of no use
  lean,   // neither: most of the bytes are runtime calls and kernels
};

// A whole file of about `bytes`.
std::string trace_text(TraceMix mix, std::size_t bytes);

// Names of kernels as traces hold them.
std::size_t kernel_name_count();
const char* kernel_name(std::size_t i);

}  // namespace commlens
