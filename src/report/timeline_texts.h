// The texts of a timeline by number: what slices repeat a million times is made well-formed,
// escaped or defined once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace commlens {

// A text of one TimelineTexts; TextId() is the empty one.
enum class TextId : std::uint32_t {};

class TimelineTexts {
 public:
  TimelineTexts() { id({}); }
  // Bytes that are no UTF-8 become U+FFFD.
  TextId id(std::string_view text);
  std::string_view get(TextId id) const { return pool_.get(StringId::from(index(id))); }
  std::size_t size() const { return pool_.size(); }
  // 0, 1, ... in order of first sight.
  static std::size_t index(TextId id) { return static_cast<std::size_t>(id); }

 private:
  StringPool pool_;
};

// The text itself, or its first `bytes` bytes (less where that would cut a character) and "...".
std::string cut_text(std::string_view text, std::size_t bytes);

}  // namespace commlens
