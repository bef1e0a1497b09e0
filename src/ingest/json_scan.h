// Finding one's way through JSON text without building anything from it.
//
// Problem: most of a trace's bytes belong to events that no analysis reads. They must be passed
// over at the speed of memory, and text that is not quite JSON (a quote that was not escaped, a
// bare NaN) must not derail what follows. Method: 64 bytes at a time become bit masks (quotes,
// brackets, line breaks); the bits between two quotes are a string; brackets outside strings are
// counted. A raw line break cannot stand inside a JSON string, so meeting one there proves at once
// that a quote was not escaped, and the caller can look for the next event instead of swallowing
// it. Cost: about 10 bytes a nanosecond where nothing is wanted. When it is wrong: a one-line file
// with a stray quote shows the damage only where a key or a comma is missing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "ingest/json_skip.h"

namespace commlens {

// Bytes that must be readable behind the end of any text given to these functions.
inline constexpr std::size_t kScanPadding = 64;

// Passes over what is left of a container, across as many pieces of text as it takes.
class ContainerSkipper {
 public:
  // `depth` brackets are open.
  explicit ContainerSkipper(std::int64_t depth = 1) : skip_{.depth = depth} {}
  // Goes on at `at`; leaves it behind the bracket that closes the last open one (ok), at `end`
  // (need_more) or at the line break inside a string (bad).
  Scan feed(const char*& at, const char* end);
  // More levels than a writer of traces has use for were open at once.
  bool deep() const { return skip_.deepest > kDeep; }

 private:
  static constexpr std::int64_t kDeep = 256;
  ContainerSkip skip_;
};

// A short text that is looked for again and again.
class Lead {
 public:
  static constexpr std::size_t kLongest = 48;
  static_assert(kLongest <= kScanPadding);

  Lead() = default;
  // Of at most kLongest bytes.
  explicit Lead(std::string_view text) : length_(static_cast<std::ptrdiff_t>(text.size())) {
    std::memcpy(text_.data(), text.data(), text.size());
  }
  std::ptrdiff_t length() const { return length_; }
  // kScanPadding bytes at `at` are readable. A call of memcmp would cost more than the comparison.
  bool stands_at(const char* at) const {
#ifdef __SSE2__
    const auto same = [&](std::ptrdiff_t i) {
      const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
      const __m128i wanted = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text_.data() + i));
      return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(here, wanted)));
    };
    std::ptrdiff_t i = 0;
    for (; length_ - i > 16; i += 16) {
      if (same(i) != 0xFFFF) return false;
    }
    const std::uint32_t rest = (1U << static_cast<unsigned>(length_ - i)) - 1;
    return (same(i) & rest) == rest;
#else
    return std::memcmp(at, text_.data(), static_cast<std::size_t>(length_)) == 0;
#endif
  }

 private:
  std::ptrdiff_t length_ = 0;
  std::array<char, kLongest> text_{};
};

enum class TokenKind : std::uint8_t { none, string, number, literal, object, array };

// One JSON value as it stands in the text.
struct Token {
  TokenKind kind = TokenKind::none;
  // string: without its quotes, escapes not resolved; containers: with their brackets
  std::string_view text;
  bool escaped = false;  // string: `unescaped` would change it

  // Field by field: a token that is made elsewhere and copied costs a stall of the processor.
  void set(TokenKind of, const char* begin, const char* end, bool with_escapes = false) {
    kind = of;
    text = {begin, static_cast<std::size_t>(end - begin)};
    escaped = with_escapes;
  }
};

// The closing quote of a string whose opening quote is behind `at`; null with need_more or bad in
// `state`. Sets `escaped` when a backslash was met.
const char* find_string_end(const char* at, const char* end, Scan& state, bool& escaped);

// A pull parser over one value that lies whole in memory, or turns out not to (need_more). What is
// usual is inline here, since it runs forty times an event; what is rare is in json_scan.cc. Bytes
// below 0x20 between values count as blanks, as they do no harm there.
class Walker {
 public:
  // `at` is behind the `{` or `[` of the container to walk.
  Walker(const char* at, const char* end) : at_(at), end_(end) {}
  // `at` is behind a member of the object to walk, not behind its opening bracket.
  static Walker behind_member(const char* at, const char* end) {
    Walker walker(at, end);
    walker.first_ = false;
    return walker;
  }

  // The next member's key, standing before its value. False at the end of the object (`}` is
  // consumed, state ok) and on failure (state bad or need_more). The key is valid until the next.
  bool next_key(std::string_view& key);
  // Passes over exactly this text, which ends before a value, or over nothing.
  bool skip_exactly(const Lead& lead) {
    if (end_ - at_ <= lead.length() || state_ != Scan::ok || !lead.stands_at(at_)) return false;
    at_ += lead.length();
    first_ = false;
    return !is_blank(*at_) || skip_blanks();
  }
  // True when another element of an array follows; false at `]` and on failure.
  bool next_element() { return state_ == Scan::ok && skip_separator(']'); }
  // The value here, passed over.
  void value(Token& token);
  Token value() {
    Token token;
    value(token);
    return token;
  }
  void skip_value() { value(); }
  // Steps into an object value. False (and the value is passed over) when it is none.
  bool enter_object();
  // Passes over what is left of the innermost container.
  void leave();

  Scan state() const { return state_; }
  const char* at() const { return at_; }
  int surplus_commas() const { return surplus_commas_; }
  bool deep() const { return deep_; }               // something was nested hundreds deep
  int odd_numbers() const { return odd_numbers_; }  // NaN, inf and the like

 private:
  static bool is_blank(char c) { return static_cast<unsigned char>(c) <= ' '; }
  bool skip_blanks() {
    if (at_ < end_ && !is_blank(*at_)) return true;
    // One blank is the most frequent.
    if (end_ - at_ > 1 && !is_blank(at_[1])) {
      ++at_;
      return true;
    }
    return skip_more_blanks();
  }
  bool skip_more_blanks();
  bool skip_separator(char closing);
  bool skip_odd_separator(char closing);
  void resolve_key(const Token& token, std::string_view& key);
  void string_token(Token& token);
  void scalar_token(Token& token);
  void odd_scalar(const char* start, Token& token);
  void container_token(TokenKind kind, Token& token);
  void fail(Scan state, Token& token) {
    state_ = state;
    token = {};
  }

  const char* at_;
  const char* end_;
  Scan state_ = Scan::ok;
  bool first_ = true;  // no separator is due: just behind an opening bracket
  int surplus_commas_ = 0;
  int odd_numbers_ = 0;
  bool deep_ = false;
  std::unique_ptr<std::string> key_;  // the last key, where escapes had to be resolved
};

// To the next member or element. False at the closing bracket (consumed), or on failure.
inline bool Walker::skip_separator(char closing) {
  // One comma, blanks, no closing bracket.
  if (!first_ && at_ < end_ && *at_ == ',') {
    const char* comma = at_++;
    if (skip_blanks() && *at_ != ',' && *at_ != closing) return true;
    at_ = comma;
    if (state_ != Scan::ok) return false;
  }
  return skip_odd_separator(closing);
}

inline void Walker::string_token(Token& token) {
  const char* start = at_ + 1;
  bool escaped = false;
  const char* close = find_string_end(start, end_, state_, escaped);
  if (close == nullptr) {
    token = {};
    return;
  }
  at_ = close + 1;
  token.set(TokenKind::string, start, close, escaped);
}

inline bool Walker::next_key(std::string_view& key) {
  if (state_ != Scan::ok || !skip_separator('}')) return false;
  if (*at_ != '"') {
    state_ = Scan::bad;
    return false;
  }
  Token token;
  string_token(token);
  if (state_ != Scan::ok || !skip_blanks()) return false;
  if (*at_ != ':') {
    state_ = Scan::bad;
    return false;
  }
  ++at_;
  key = token.text;
  if (token.escaped) resolve_key(token, key);
  return skip_blanks();
}

// What each byte means to a number or a bare word: it goes on, it ends, or this is no JSON in any
// dialect (a quote, an opening bracket or a colon inside).
enum class ScalarByte : std::uint8_t { goes_on, ends, breaks };
inline constexpr std::array<ScalarByte, 256> kScalarBytes = [] {
  std::array<ScalarByte, 256> bytes{};
  for (std::size_t c = 0; c <= ' '; ++c) bytes[c] = ScalarByte::ends;
  for (const unsigned char c : {',', '}', ']'}) bytes[c] = ScalarByte::ends;
  for (const unsigned char c : {'"', '{', '[', ':'}) bytes[c] = ScalarByte::breaks;
  return bytes;
}();

// How many of the next bytes are digits and points; at most 16 are looked at.
inline int leading_digits(const char* at) {
#ifdef __SSE2__
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i above = _mm_sub_epi8(bytes, _mm_set1_epi8('.'));  // '/' stands between
  const __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8('9' - '.')), above);
  return std::countr_one(static_cast<std::uint32_t>(_mm_movemask_epi8(digits)));
#else
  return 0;
#endif
}

inline void Walker::scalar_token(Token& token) {
  const char* start = at_;
  at_ += leading_digits(at_);
  // The padding behind the text is zeros: the walk ends there at the latest.
  while (kScalarBytes[static_cast<unsigned char>(*at_)] == ScalarByte::goes_on) ++at_;
  const bool number = *start >= '0' && *start <= '9';
  const bool ended =
      at_ < end_ && kScalarBytes[static_cast<unsigned char>(*at_)] == ScalarByte::ends;
  if (!number || !ended) return odd_scalar(start, token);
  token.set(TokenKind::number, start, at_);
}

inline void Walker::value(Token& token) {
  switch (*at_) {
    case '"': return string_token(token);
    case '{': return container_token(TokenKind::object, token);
    case '[': return container_token(TokenKind::array, token);
    default: return scalar_token(token);
  }
}

// A string token's text with its escapes resolved; wrong escapes stay as they are.
std::string unescaped(std::string_view text);

}  // namespace commlens
