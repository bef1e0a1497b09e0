#include "ingest/json_scan.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace commlens {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

// 64 bytes, asked which of them are equal to a given one: bit i answers for byte i.
#ifdef __SSE2__
class Block {
 public:
  explicit Block(const char* at) {
    for (std::size_t i = 0; i < 4; ++i) {
      part_[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
    }
  }
  std::uint64_t equal(char c) const { return gather(_mm_set1_epi8(c), _mm_setzero_si128()); }
  // Brackets and braces differ in one bit: 0x5B '[' and 0x7B '{', 0x5D ']' and 0x7D '}'.
  std::uint64_t equal_with_bit5(char c) const {
    return gather(_mm_set1_epi8(c), _mm_set1_epi8(0x20));
  }

 private:
  std::uint64_t gather(__m128i wanted, __m128i set_bits) const {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const auto bits = static_cast<std::uint32_t>(
          _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_or_si128(part_[i], set_bits), wanted)));
      mask |= std::uint64_t{bits} << (16U * i);
    }
    return mask;
  }
  __m128i part_[4];
};
#else
class Block {
 public:
  explicit Block(const char* at) { std::memcpy(byte_, at, kBlock); }
  std::uint64_t equal(char c) const { return gather(static_cast<unsigned char>(c), 0); }
  std::uint64_t equal_with_bit5(char c) const {
    return gather(static_cast<unsigned char>(c), 0x20);
  }

 private:
  std::uint64_t gather(unsigned char wanted, unsigned char set_bits) const {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      mask |= std::uint64_t{(byte_[i] | set_bits) == wanted} << i;
    }
    return mask;
  }
  unsigned char byte_[kBlock];
};
#endif

// Bit i of the result is the parity of bits 0..i: the bits from an opening quote up to before the
// closing one.
constexpr std::uint64_t prefix_xor(std::uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

constexpr std::uint64_t bits_below(unsigned count) {
  return count >= 64 ? kAll : (std::uint64_t{1} << count) - 1;
}

// The bytes that a backslash before them escapes. `carry` says whether the block's first byte is
// escaped, and on return whether the byte behind the `length` bytes is.
std::uint64_t escaped_bytes(std::uint64_t backslashes, bool& carry, unsigned length) {
  std::uint64_t escaped = carry ? 1 : 0;
  carry = false;
  std::uint64_t open = backslashes & ~escaped;
  while (open != 0) {
    const auto i = static_cast<unsigned>(std::countr_zero(open));
    if (i + 1 >= length) {
      carry = true;
      break;
    }
    escaped |= std::uint64_t{2} << i;
    open &= ~(std::uint64_t{3} << i);
  }
  return escaped;
}

// NaN, Infinity, -inf, nan(ind) ...: what printf makes of a number that is none.
bool is_odd_number(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.starts_with("NaN") || text.starts_with("nan") || text.starts_with("inf") ||
         text.starts_with("Inf");
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6U);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U);
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18U);
    put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

// The four hex digits behind "\u" at `at`; -1 when they are none.
std::int32_t hex4(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  if (at + 4 > text.size()) return -1;
  const auto parsed = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + at + 4
             ? static_cast<std::int32_t>(value)
             : -1;
}

constexpr char simple_escape(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b': return '\b';
    case 'f': return '\f';
    case '"':
    case '\\':
    case '/': return c;
    default: return '\0';
  }
}

}  // namespace

Scan ContainerSkipper::feed(const char*& at, const char* end) {
  while (at < end) {
    const Block block(at);
    const auto length = static_cast<unsigned>(std::min<std::ptrdiff_t>(end - at, kBlock));
    const std::uint64_t valid = bits_below(length);
    std::uint64_t quotes = block.equal('"') & valid;
    const std::uint64_t backslashes = block.equal('\\') & valid;
    if ((backslashes | static_cast<std::uint64_t>(escape_)) != 0)
      quotes &= ~escaped_bytes(backslashes, escape_, length);
    const std::uint64_t in_string = prefix_xor(quotes) ^ in_string_;
    const std::uint64_t broken = block.equal('\n') & in_string & valid;
    // Nothing behind a line break inside a string can be trusted.
    const std::uint64_t trusted = broken == 0 ? valid : (broken & (0 - broken)) - 1;
    const std::uint64_t opening = block.equal_with_bit5('{') & ~in_string & trusted;
    std::uint64_t closing = block.equal_with_bit5('}') & ~in_string & trusted;
    if (std::popcount(closing) >= depth_) {
      for (std::int64_t closed = 0; closing != 0; closing &= closing - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(closing));
        ++closed;
        if (depth_ + std::popcount(opening & bits_below(i)) - closed == 0) {
          at += i + 1;
          return Scan::ok;
        }
      }
      closing = block.equal_with_bit5('}') & ~in_string & trusted;
    }
    if (broken != 0) {
      at += std::countr_zero(broken);
      return Scan::bad;
    }
    depth_ += std::popcount(opening) - std::popcount(closing);
    deepest_ = std::max(deepest_, depth_);
    in_string_ = (in_string >> (length - 1) & 1) != 0 ? kAll : 0;
    at += length;
  }
  return Scan::need_more;
}

const char* find_string_end(const char* at, const char* end, Scan& state, bool& escaped) {
  while (at < end) {
#ifdef __SSE2__
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                      _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
                                         _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
    const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(special));
    if (mask == 0) {
      at += 16;
      continue;
    }
    at += std::countr_zero(mask);
    if (at >= end) break;
#endif
    if (*at == '"') return at;
    if (*at == '\n') {
      state = Scan::bad;
      return nullptr;
    }
    const bool backslash = *at == '\\';
    escaped = escaped || backslash;
    // A line break is none the better for a backslash before it.
    at += backslash && at + 1 < end && at[1] != '\n' ? 2 : 1;
  }
  state = Scan::need_more;
  return nullptr;
}

bool Walker::skip_more_blanks() {
  while (at_ < end_) {
#ifdef __SSE2__
    // Line breaks come with an indentation: sixteen bytes at a time.
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
    const __m128i blank = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
    const auto solid = static_cast<std::uint32_t>(~_mm_movemask_epi8(blank)) & 0xFFFFU;
    if (solid == 0) {
      at_ += 16;
      continue;
    }
    at_ += std::countr_zero(solid);
    if (at_ < end_) return true;
#else
    if (!is_blank(*at_)) return true;
    ++at_;
#endif
  }
  at_ = end_;
  state_ = Scan::need_more;
  return false;
}

// Separators in general: none behind an opening bracket, several commas, the closing bracket.
bool Walker::skip_odd_separator(char closing) {
  int commas = 0;
  for (;;) {
    if (!skip_blanks()) return false;
    if (*at_ != ',') break;
    ++at_;
    ++commas;
  }
  if (*at_ == closing) {
    surplus_commas_ += commas;
    ++at_;
    first_ = false;  // what the container stood in goes on with a separator
    return false;
  }
  if (!first_ && commas == 0) {
    state_ = Scan::bad;
    return false;
  }
  surplus_commas_ += commas - (first_ ? 0 : 1);
  first_ = false;
  return true;
}

void Walker::resolve_key(const Token& token, std::string_view& key) {
  key_ = std::make_unique<std::string>(unescaped(token.text));
  key = *key_;
}

// A scalar that is no plain number: a sign, a word, NaN; or no scalar at all, or one without an
// end.
Token Walker::odd_scalar(const char* start) {
  if (at_ >= end_) return fail(Scan::need_more);
  if (kScalarBytes[static_cast<unsigned char>(*at_)] == ScalarByte::breaks || at_ == start)
    return fail(Scan::bad);
  const std::string_view text{start, static_cast<std::size_t>(at_ - start)};
  if (is_odd_number(text)) {
    ++odd_numbers_;
    return {TokenKind::literal, text};
  }
  const bool number =
      text[0] == '-' || text[0] == '+' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
  return {number ? TokenKind::number : TokenKind::literal, text};
}

Token Walker::container_token(TokenKind kind) {
  const char* start = at_;
  ContainerSkipper skipper;
  ++at_;
  state_ = skipper.feed(at_, end_);
  deep_ = deep_ || skipper.deep();
  if (state_ != Scan::ok) return {};
  return {kind, {start, static_cast<std::size_t>(at_ - start)}};
}

bool Walker::enter_object() {
  if (*at_ != '{') {
    skip_value();
    return false;
  }
  ++at_;
  first_ = true;
  return true;
}

void Walker::leave() {
  ContainerSkipper skipper;
  state_ = skipper.feed(at_, end_);
  deep_ = deep_ || skipper.deep();
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    if (const char simple = simple_escape(text[i + 1]); simple != '\0') {
      out.push_back(simple);
      ++i;
      continue;
    }
    std::int32_t code = text[i + 1] == 'u' ? hex4(text, i + 2) : -1;
    if (code < 0) {
      out.push_back(text[i]);
      continue;
    }
    i += 5;
    const bool high = code >= 0xD800 && code < 0xDC00;
    if (high && text.substr(i + 1, 2) == "\\u") {
      const std::int32_t low = hex4(text, i + 3);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
    }
    const bool lone_surrogate = code >= 0xD800 && code < 0xE000;
    append_utf8(out, lone_surrogate ? 0xFFFD : static_cast<std::uint32_t>(code));
  }
  return out;
}

}  // namespace commlens
