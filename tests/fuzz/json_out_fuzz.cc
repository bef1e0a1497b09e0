// Any bytes as a JSON string: what comes out is valid UTF-8 without control characters, between
// quotes, and ends where it should; `printable` likewise. The judge of UTF-8 here is written apart
// from base/utf8: it decodes code points.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

#include "base/json_out.h"
#include "base/utf8.h"

namespace {

// Says which claim failed: abort() alone leaves that to a debugger.
void require(bool holds, std::source_location here = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s: line %u does not hold\n", here.file_name(), here.line());
  std::abort();
}

// The code point at the start of `text`, which is taken off; aborts where there is none.
std::uint32_t take_code_point(std::string_view& text) {
  static constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  require(length == 1 || (first >= 0xC0 && first < 0xF8));
  require(length <= text.size());
  std::uint32_t point = length == 1 ? first : first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    require((byte & 0xC0U) == 0x80U);
    point = (point << 6U) | (byte & 0x3FU);
  }
  require(point >= kSmallest[length] && point <= 0x10FFFF);
  require(point < 0xD800 || point > 0xDFFF);
  text.remove_prefix(length);
  return point;
}

void check_json_string(std::string_view text) {
  require(text.size() >= 2 && text.front() == '"' && text.back() == '"');
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::uint32_t point = take_code_point(text);
    require(point >= 0x20 && point != 0x7F && point != '"');
    if (point != '\\') continue;
    require(!text.empty());
    const char escaped = text[0];
    require(std::string_view("\"\\nrtu").find(escaped) != std::string_view::npos);
    require(escaped != 'u' || text.size() >= 5);
    text.remove_prefix(1);
  }
}

void check_printable(std::string_view text) {
  while (!text.empty()) {
    const std::uint32_t point = take_code_point(text);
    require(point >= 0x20 && point != 0x7F);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  commlens::Sink sink;
  commlens::append_json_string(sink, input);
  check_json_string(sink.text());
  check_printable(commlens::printable(input));
  return 0;
}
