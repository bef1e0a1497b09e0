#include "ingest/kineto_values.h"

#include <algorithm>
#include <string_view>

#include "model/rank_list.h"

namespace commlens {

std::int64_t lane_number(const Token& token) {
  std::string_view text = token.text;
  if (std::uint64_t value = 0; decimal::few_digits(text, value))
    return static_cast<std::int64_t>(value);
  if (text.starts_with("stream ")) text = text.substr(7, text.find(' ', 7) - 7);
  if (const auto value = parse_int(text)) return *value;
  if (text.starts_with("0x"))
    return static_cast<std::int64_t>(id_number({TokenKind::string, text}));
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a: only has to tell one word from another
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return -static_cast<std::int64_t>(hash >> 2U) - 2;
}

std::int32_t rank_or_none(const Token& token) {
  const auto value = number(token);
  return value && *value >= 0 && *value < kMostRanks ? static_cast<std::int32_t>(*value) : -1;
}

bool may_hold_zero(const Token& token) {
  if (token.kind != TokenKind::string && token.kind != TokenKind::array) return false;
  if (token.text.find("...") != std::string_view::npos) return true;
  bool zero = false;
  bool other = false;
  for (std::size_t i = 0; i < token.text.size();) {
    const std::size_t from = token.text.find_first_of("0123456789", i);
    if (from == std::string_view::npos) break;
    i = std::min(token.text.find_first_not_of("0123456789", from), token.text.size());
    const bool is_zero =
        token.text.substr(from, i - from).find_first_not_of('0') == std::string_view::npos;
    zero = zero || is_zero;
    other = other || !is_zero;
  }
  return zero && other;
}

}  // namespace commlens
