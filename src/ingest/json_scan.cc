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

struct Parity {
  // Bit i of the result is the parity of bits 0..i.
  static std::uint64_t prefix_xor(std::uint64_t bits) {
    for (unsigned shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
    return bits;
  }
};

// 64 bytes, asked which of them are equal to a given one: bit i answers for byte i.
#ifdef __SSE2__
class Block : public Parity {
 public:
  explicit Block(const char* at) {
    for (std::size_t i = 0; i < 4; ++i) {
      part_[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
    }
  }
  std::uint64_t equal(char c) const { return gather(_mm_set1_epi8(c), _mm_setzero_si128()); }
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
class Block : public Parity {
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

// The bytes up to and with the bracket that closes a container of numbers ("[4096, 1, 1]"), where
// these are 16 at most; else 0.
int short_flat_length(const char* at) {
#ifdef __SSE2__
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));  // brackets to braces
  const auto mask = [](__m128i equal) {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(equal));
  };
  const std::uint32_t closing = mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')));
  const std::uint32_t other = mask(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                _mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))));
  const int first = std::countr_zero(closing);
  return closing != 0 && first < std::countr_zero(other) ? first + 1 : 0;
#else
  return 0;
#endif
}

}  // namespace

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

std::vector<SkipContainer> usable_skip_containers() {
  std::vector<SkipContainer> usable{skip_container<Block>};
#ifdef COMMLENS_WIDE_VECTORS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul"))
    usable.insert(usable.begin(), skip_container_avx2);
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("pclmul"))
    usable.insert(usable.begin(), skip_container_avx512);
#endif
  return usable;
}

Scan ContainerSkipper::feed(const char*& at, const char* end) {
  static const SkipContainer widest = usable_skip_containers().front();
  return widest(skip_, at, end);
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
void Walker::odd_scalar(const char* start, Token& token) {
  if (at_ >= end_) return fail(Scan::need_more, token);
  if (kScalarBytes[static_cast<unsigned char>(*at_)] == ScalarByte::breaks || at_ == start)
    return fail(Scan::bad, token);
  token.set(TokenKind::literal, start, at_);
  if (is_odd_number(token.text)) {
    ++odd_numbers_;
    return;
  }
  const bool number =
      *start == '-' || *start == '+' || *start == '.' || (*start >= '0' && *start <= '9');
  if (number) token.kind = TokenKind::number;
}

void Walker::container_token(TokenKind kind, Token& token) {
  const char* start = at_;
  ++at_;
  if (const int length = short_flat_length(at_); length > 0 && end_ - at_ >= length) {
    at_ += length;
    return token.set(kind, start, at_);
  }
  ContainerSkipper skipper;
  state_ = skipper.feed(at_, end_);
  deep_ = deep_ || skipper.deep();
  token = {};
  if (state_ == Scan::ok) token.set(kind, start, at_);
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
