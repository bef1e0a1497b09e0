// Python pickles that hold nothing but data.
#pragma once

#include <string>
#include <string_view>

#include "ingest/tree.h"

namespace commlens {

// Builds the tree of a pickle of any protocol that begins with PROTO. Executes nothing: what would
// have to be executed is refused, and so is every opcode that only such pickles need. Throws
// Error(input), naming `name`, the opcode and its byte, for those, for lengths beyond the text, for
// containers that hold themselves or nest too deep. A text that ends early gives what was complete.
ReadTree read_pickle(std::string_view text, const std::string& name);

}  // namespace commlens
