// Bytes that claim to be UTF-8, made safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commlens {

// Length of the well-formed UTF-8 sequence at the start of `text` (1 to 4), or 0 where there is
// none.
std::size_t utf8_length(std::string_view text);

// Whether the whole text is well formed.
bool is_utf8(std::string_view text);

// The text with each ill-formed byte replaced by U+FFFD.
std::string well_formed(std::string_view text);

// The text with ill-formed bytes replaced by U+FFFD and control characters by a blank, for
// terminals.
std::string printable(std::string_view text);

}  // namespace commlens
