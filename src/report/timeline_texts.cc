#include "report/timeline_texts.h"

#include "base/utf8.h"

namespace commlens {

TextId TimelineTexts::id(std::string_view text) {
  const StringId id = is_utf8(text) ? pool_.intern(text) : pool_.intern(well_formed(text));
  return static_cast<TextId>(id.index());
}

std::string cut_text(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t end = bytes;
  // Not inside a character: at most three bytes back, and no further in bytes that are no UTF-8.
  while (end + 3 > bytes && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace commlens
