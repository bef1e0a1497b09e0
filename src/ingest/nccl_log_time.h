// Times of day in logs.
#pragma once

#include <string_view>

#include "base/id.h"

namespace commlens {

struct LogTime {
  Ns in_year = -1;      // since the year began; -1: there is none with a date
  Ns since_epoch = -1;  // as if the zone were Greenwich's; -1: the year is not said
  bool leads = false;   // it stands first or behind a bracket: no date that the text speaks of
};

// The first time in `text`. "2025-02-18 12:54[:31[.5]]", "2025-02-18T12:54:31",
// "1129 11:56:57.642513817" (c10: month and day, the leading zero may be lost; no year).
LogTime find_log_time(std::string_view text);

}  // namespace commlens
