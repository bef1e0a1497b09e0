// Text witnesses, line by line.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/source.h"

namespace commlens {

// Calls `line` with each line, without its end, and its number from 1. Bytes of a line beyond some
// KiB are left out: no line that means something is so long.
void for_each_line(Source& source, std::string_view head,
                   const std::function<void(std::string_view line, std::int64_t number)>& line);

}  // namespace commlens
