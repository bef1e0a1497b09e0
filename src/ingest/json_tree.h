// Small JSON texts as trees.
#pragma once

#include <string>
#include <string_view>

#include "ingest/tree.h"

namespace commlens {

// Throws Error(input) with the byte for text that is no JSON or nests too deep. A text that ends
// early gives what was complete. Bare NaN and infinities count as null.
ReadTree read_json_tree(std::string_view text, const std::string& name);

}  // namespace commlens
