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

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace commlens {

// Bytes that must be readable behind the end of any text given to these functions.
inline constexpr std::size_t kScanPadding = 64;

enum class Scan : std::uint8_t {
  ok,
  need_more,  // the text ends before the value does
  bad,        // this is not JSON
};

// Passes over what is left of a container, across as many pieces of text as it takes.
class ContainerSkipper {
 public:
  // `depth` brackets are open.
  explicit ContainerSkipper(std::int64_t depth = 1) : depth_(depth) {}
  // Goes on at `at`; leaves it behind the bracket that closes the last open one (ok), at `end`
  // (need_more) or at the line break inside a string (bad).
  Scan feed(const char*& at, const char* end);
  // More levels than a writer of traces has use for were open at once.
  bool deep() const { return deepest_ > kDeep; }

 private:
  static constexpr std::int64_t kDeep = 256;
  std::int64_t deepest_ = 0;  // levels open at the end of any block
  std::int64_t depth_;
  std::uint64_t in_string_ = 0;  // all ones inside a string
  bool escape_ = false;          // the piece before ended in a backslash that escapes
};

enum class TokenKind : std::uint8_t { none, string, number, literal, object, array };

// One JSON value as it stands in the text.
struct Token {
  TokenKind kind = TokenKind::none;
  // string: without its quotes, escapes not resolved; containers: with their brackets
  std::string_view text;
  bool escaped = false;  // string: `unescaped` would change it
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
  bool skip_exactly(std::string_view text) {
    if (end_ - at_ <= static_cast<std::ptrdiff_t>(text.size()) || state_ != Scan::ok ||
        std::memcmp(at_, text.data(), text.size()) != 0) {
      return false;
    }
    at_ += text.size();
    first_ = false;
    return !is_blank(*at_) || skip_blanks();
  }
  // True when another element of an array follows; false at `]` and on failure.
  bool next_element() { return state_ == Scan::ok && skip_separator(']'); }
  // The value here, passed over.
  Token value();
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
  Token string_token();
  Token scalar_token();
  Token odd_scalar(const char* start);
  Token container_token(TokenKind kind);
  Token fail(Scan state) {
    state_ = state;
    return {};
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

inline Token Walker::string_token() {
  const char* start = at_ + 1;
  bool escaped = false;
  const char* close = find_string_end(start, end_, state_, escaped);
  if (close == nullptr) return {};
  at_ = close + 1;
  return {TokenKind::string, {start, static_cast<std::size_t>(close - start)}, escaped};
}

inline bool Walker::next_key(std::string_view& key) {
  if (state_ != Scan::ok || !skip_separator('}')) return false;
  if (*at_ != '"') {
    state_ = Scan::bad;
    return false;
  }
  const Token token = string_token();
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

inline Token Walker::scalar_token() {
  const char* start = at_;
  // The padding behind the text is zeros: the walk ends there at the latest.
  while (kScalarBytes[static_cast<unsigned char>(*at_)] == ScalarByte::goes_on) ++at_;
  const bool number = *start >= '0' && *start <= '9';
  const bool ended =
      at_ < end_ && kScalarBytes[static_cast<unsigned char>(*at_)] == ScalarByte::ends;
  if (!number || !ended) return odd_scalar(start);
  return {TokenKind::number, {start, static_cast<std::size_t>(at_ - start)}};
}

inline Token Walker::value() {
  switch (*at_) {
    case '"': return string_token();
    case '{': return container_token(TokenKind::object);
    case '[': return container_token(TokenKind::array);
    default: return scalar_token();
  }
}

// A string token's text with its escapes resolved; wrong escapes stay as they are.
std::string unescaped(std::string_view text);

}  // namespace commlens
