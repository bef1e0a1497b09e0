// What the values of events mean as numbers.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/decimal.h"
#include "ingest/json_scan.h"
#include "model/trace.h"

namespace commlens {

inline std::optional<std::int64_t> number(const Token& token) {
  if (token.kind != TokenKind::number && token.kind != TokenKind::string) return std::nullopt;
  return parse_int(token.text);
}

// An id of up to 64 bits; 0 where there is none. Old writers of ROCm print hexadecimal.
inline std::uint64_t id_number(const Token& token) {
  if (token.kind != TokenKind::number && token.kind != TokenKind::string) return 0;
  std::uint64_t value = 0;
  if (decimal::few_digits(token.text, value)) return value;
  if (token.text.starts_with("0x")) {
    value = 0;
    std::from_chars(token.text.data() + 2, token.text.data() + token.text.size(), value, 16);
    return value;
  }
  return parse_uint(token.text).value_or(0);
}

// A pid, tid or stream as a number: "7", "stream 7", "stream 7 user", "0x2a"; a word becomes a
// number of its own.
std::int64_t lane_number(const Token& token);

inline std::int64_t count_or_unknown(const Token& token) {
  const auto value = number(token);
  return value && *value >= 0 ? *value : kUnknown;
}

// A rank, in a group or of the job; -1 where it is none.
std::int32_t rank_or_none(const Token& token);

// Whether a list of split sizes ("[4096, 0]") may hold a zero beside other sizes. Of a list that
// Kineto cut ("[1, 2, ...]") that is not known.
bool may_hold_zero(const Token& token);

}  // namespace commlens
