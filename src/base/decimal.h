// Numbers as text to integers, digit by digit: a double near 1.7e15 holds steps of 0.25 and would
// lose nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/id.h"

namespace commlens {

// A decimal number of microseconds ("1740461679479712.123", "12", "1.5e3", "-3.25") as nanoseconds.
// Digits beyond the third are rounded half away from zero. Nothing for text that is no number (NaN,
// inf) or beyond 64 bits.
std::optional<Ns> microseconds_to_ns(std::string_view text);

// A whole number, as JSON may write it ("12", "12.0", "1e3"); nothing for fractions, other text and
// overflow.
std::optional<std::int64_t> parse_int(std::string_view text);
// The same for identifiers that use all 64 bits.
std::optional<std::uint64_t> parse_uint(std::string_view text);

}  // namespace commlens
