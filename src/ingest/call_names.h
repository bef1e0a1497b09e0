// What the names of CUDA's and HIP's calls say.
#pragma once

#include <optional>
#include <string_view>

#include "model/sync_kind.h"

namespace commlens {

// Calls that start GPU work. The others (event queries, attribute look-ups) are most of the
// runtime's rows.
inline bool is_launch(std::string_view name) {
  return name.find("Launch") != std::string_view::npos ||
         name.find("Memcpy") != std::string_view::npos ||
         name.find("Memset") != std::string_view::npos;
}

// Calls that return only when the GPU has done something. A copy without "Async" waits for itself.
std::optional<SyncKind> blocking_kind(std::string_view name);

}  // namespace commlens
