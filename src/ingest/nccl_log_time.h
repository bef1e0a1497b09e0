// Times of day in logs.
#pragma once

#include <string_view>

#include "base/id.h"

namespace commlens {

// The first time in `text`, as nanoseconds since the year began; -1 where there is none with a
// date. "2025-02-18 12:54[:31[.5]]", "2025-02-18T12:54:31", "1129 11:56:57.642513817" (c10: month
// and day, the leading zero may be lost). The year is left out, since c10 does not say it.
Ns find_log_time(std::string_view text);

}  // namespace commlens
