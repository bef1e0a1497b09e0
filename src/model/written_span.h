// When the lines of a file were written, as far as they say it themselves.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/id.h"

namespace commlens {

struct WrittenSpan {
  Ns first = -1;  // since the epoch; -1: no line says its date
  Ns last = -1;
  std::int64_t first_line = 0;  // that say it
  std::int64_t last_line = 0;

  bool known() const { return first >= 0; }
  void add(Ns when, std::int64_t line) {
    first = known() ? std::min(first, when) : when;
    last = std::max(last, when);
    if (first_line == 0) first_line = line;
    last_line = line;
  }
};

}  // namespace commlens
