#include "base/decimal.h"

#include <charconv>
#include <limits>

namespace commlens {
namespace {

using decimal::is_digit;

struct Scaled {
  unsigned __int128 magnitude = 0;  // the number times 10^shift, rounded half up
  bool negative = false;
  bool exact = true;  // nothing was rounded away
};

// A text as sign, digits, point position and exponent; then the digits weighted so that the number
// is times 10^shift.
std::optional<Scaled> parse_scaled(std::string_view text, int shift) {
  Scaled result;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    result.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const std::size_t exponent_at = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, exponent_at);
  std::int64_t exponent = shift;
  if (exponent_at != std::string_view::npos) {
    std::string_view digits = text.substr(exponent_at + 1);
    if (digits.size() > 1 && digits[0] == '+' && is_digit(digits[1])) digits.remove_prefix(1);
    int value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
      return std::nullopt;
    exponent += value;
  }
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  if (mantissa.size() - (point < mantissa.size() ? 1 : 0) == 0) return std::nullopt;

  // Digits left of `keep` count fully; the one at `keep` decides the rounding.
  constexpr unsigned __int128 kLimit = static_cast<unsigned __int128>(1) << 100U;
  std::int64_t position = -static_cast<std::int64_t>(
      point);  // of the digit relative to the point, 0 is the first after it
  bool round_up = false;
  for (std::size_t i = 0; i < mantissa.size(); ++i) {
    if (i == point) continue;
    if (!is_digit(mantissa[i])) return std::nullopt;
    const auto digit = static_cast<unsigned>(mantissa[i] - '0');
    if (position < exponent) {
      if (result.magnitude > kLimit) return std::nullopt;
      result.magnitude = result.magnitude * 10 + digit;
    } else {
      if (position == exponent) round_up = digit >= 5;
      result.exact = result.exact && digit == 0;
    }
    ++position;
  }
  for (; position < exponent && result.magnitude != 0; ++position) {
    if (result.magnitude > kLimit) return std::nullopt;
    result.magnitude *= 10;
  }
  if (round_up) ++result.magnitude;
  return result;
}

std::optional<std::int64_t> signed_value(const Scaled& scaled) {
  if (scaled.magnitude > static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  const auto value = static_cast<std::int64_t>(scaled.magnitude);
  return scaled.negative ? -value : value;
}

}  // namespace

bool decimal::usual_microseconds(std::string_view text, Ns& ns) {
  // Microseconds since the epoch have 16 digits before the point.
  constexpr std::uint64_t kLargest = std::numeric_limits<Ns>::max() / 1000 - 1;
  std::uint64_t whole = 0;
  std::size_t at = 0;
  while (at < text.size() && at < 17 && is_digit(text[at]))
    whole = whole * 10 + static_cast<std::uint64_t>(text[at++] - '0');
  if (at == 0 || at == 17 || whole > kLargest) return false;
  int fraction = 0;
  if (at < text.size()) {
    if (text.size() != at + 4 || text[at] != '.' || !is_digit(text[at + 1]) ||
        !is_digit(text[at + 2]) || !is_digit(text[at + 3]))
      return false;
    fraction = (text[at + 1] - '0') * 100 + (text[at + 2] - '0') * 10 + (text[at + 3] - '0');
  }
  ns = static_cast<Ns>(whole * 1000 + static_cast<std::uint64_t>(fraction));
  return true;
}

std::optional<Ns> decimal::any_microseconds(std::string_view text) {
  const auto scaled = parse_scaled(text, 3);
  return scaled ? signed_value(*scaled) : std::nullopt;
}

std::optional<std::int64_t> decimal::any_int(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && !text.empty())
    return value;
  const auto scaled = parse_scaled(text, 0);
  return scaled && scaled->exact ? signed_value(*scaled) : std::nullopt;
}

std::optional<std::uint64_t> decimal::any_uint(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && !text.empty())
    return value;
  const auto scaled = parse_scaled(text, 0);
  if (!scaled || !scaled->exact || scaled->negative) return std::nullopt;
  if (scaled->magnitude > static_cast<unsigned __int128>(std::numeric_limits<std::uint64_t>::max()))
    return std::nullopt;
  return static_cast<std::uint64_t>(scaled->magnitude);
}

}  // namespace commlens
