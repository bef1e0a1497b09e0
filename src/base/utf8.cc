#include "base/utf8.h"

namespace commlens {
namespace {

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

}  // namespace

// The table of well-formed sequences of the Unicode standard: the second byte's range depends on
// the first.
std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  if (!continues(text, 1)) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (!continues(text, 2)) return 0;
  if (first == 0xE0) return second >= 0xA0 ? 3 : 0;
  if (first == 0xED) return second <= 0x9F ? 3 : 0;
  if (first > 0xE0 && first <= 0xEF) return 3;
  if (!continues(text, 3)) return 0;
  if (first == 0xF0) return second >= 0x90 ? 4 : 0;
  if (first > 0xF0 && first <= 0xF3) return 4;
  if (first == 0xF4) return second <= 0x8F ? 4 : 0;
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string well_formed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out.append(length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

namespace {

// U+202A to U+202E and U+2066 to U+2069: what follows would be shown in another order than it has.
bool turns_text(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto middle = static_cast<unsigned char>(character[1]);
  const auto last = static_cast<unsigned char>(character[2]);
  return (middle == 0x80 && last >= 0xAA && last <= 0xAE) ||
         (middle == 0x81 && last >= 0xA6 && last <= 0xA9);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (first < 0x20 || first == 0x7F || turns_text(text.substr(0, length))) {
      out += ' ';
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace commlens
