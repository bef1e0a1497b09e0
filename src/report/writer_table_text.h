// Tables for people, in columns.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/sink.h"
#include "model/result.h"

namespace commlens {

inline constexpr std::size_t kScreen = 100;  // characters of a line

// Escape sequences for terminals, or nothing.
struct Style {
  std::string_view bold, dim, warn, off;
};
inline constexpr Style kPlain{"", "", "", ""};
inline constexpr Style kColor{"\x1B[1m", "\x1B[2m", "\x1B[33m", "\x1B[0m"};

// Characters, not bytes: what is printed is UTF-8.
std::size_t width_of(std::string_view text);

// With its title; nothing where it has no title, no rows, or no column with a heading. Columns are
// as wide as their widest cell, numbers stand to the right.
void write_text_table(const Table& table, const Style& style, Sink& sink);

}  // namespace commlens
