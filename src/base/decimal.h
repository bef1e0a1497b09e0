// Numbers as text to integers, digit by digit: a double near 1.7e15 holds steps of 0.25 and would
// lose nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/id.h"

namespace commlens {

// Numbers as they nearly always are; and what is left. The former are read without a call where
// they are wanted, since a trace holds ten for each event that counts.
namespace decimal {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits only, too few to leave 64 bits.
inline bool few_digits(std::string_view text, std::uint64_t& value) {
  if (text.empty() || text.size() > 18) return false;
  value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}
// "digits" or "digits.ddd".
bool usual_microseconds(std::string_view text, Ns& ns);

std::optional<Ns> any_microseconds(std::string_view text);
std::optional<std::int64_t> any_int(std::string_view text);
std::optional<std::uint64_t> any_uint(std::string_view text);

}  // namespace decimal

// A decimal number of microseconds ("1740461679479712.123", "12", "1.5e3", "-3.25") as nanoseconds.
// Digits beyond the third are rounded half away from zero. Nothing for text that is no number (NaN,
// inf) or beyond 64 bits.
inline std::optional<Ns> microseconds_to_ns(std::string_view text) {
  if (Ns ns = 0; decimal::usual_microseconds(text, ns)) return ns;
  return decimal::any_microseconds(text);
}

// A whole number, as JSON may write it ("12", "12.0", "1e3"); nothing for fractions, other text and
// overflow.
inline std::optional<std::int64_t> parse_int(std::string_view text) {
  if (std::uint64_t few = 0; decimal::few_digits(text, few)) return static_cast<std::int64_t>(few);
  return decimal::any_int(text);
}
// The same for identifiers that use all 64 bits.
inline std::optional<std::uint64_t> parse_uint(std::string_view text) {
  if (std::uint64_t few = 0; decimal::few_digits(text, few)) return few;
  return decimal::any_uint(text);
}

}  // namespace commlens
