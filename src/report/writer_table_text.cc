#include "report/writer_table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/utf8.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::size_t kWidest = 34;  // of one cell

// One scale for a whole column, so that its figures can be compared at a glance: that of its
// largest.
struct Scale {
  double divisor = 1;
  std::string_view unit;
  int decimals = 0;
};

Scale scale_for(std::int64_t largest, Unit unit) {
  const auto size = static_cast<double>(largest);
  if (unit == Unit::nanoseconds) {
    if (size < 1e3) return {1, " ns", 0};
    if (size < 1e6) return {1e3, " us", 2};
    return size < 1e10 ? Scale{1e6, " ms", 3} : Scale{1e9, " s", 3};
  }
  if (unit == Unit::bytes) {
    if (size < 1e4) return {1, " B", 0};
    if (size < 1e7) return {1e3, " kB", 1};
    return size < 1e10 ? Scale{1e6, " MB", 1} : Scale{1e9, " GB", 2};
  }
  return {};
}

std::string cell_text(const Cell& cell, Unit unit, const Scale& scale) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) {
    if (scale.divisor == 1) return fmt::format("{}", *number);
    const double value = static_cast<double>(*number) / scale.divisor;
    const double least = std::pow(10.0, -scale.decimals);
    // Something that rounds to nothing is not nothing.
    if (*number > 0 && value < least / 2) return fmt::format("<{:.{}f}", least, scale.decimals);
    return fmt::format("{:.{}f}", value, scale.decimals);
  }
  if (const auto* text = std::get_if<std::string>(&cell)) return printable(*text);
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&cell)) return format_ranks(*list);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&cell)) {
    std::string joined;
    for (const std::string& text : *texts) joined += (joined.empty() ? "" : ", ") + printable(text);
    return joined.empty() ? "-" : joined;
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return unit == Unit::ratio ? fmt::format("{:.1f} %", *number * 100)
                               : fmt::format("{:.2f}", *number);
  }
  return "-";
}

// The scale of the first `rows` cells of a column.
Scale column_scale(const Table& table, std::size_t column, std::size_t rows) {
  std::int64_t largest = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    if (const auto* number = std::get_if<std::int64_t>(&table.rows[r][column]))
      largest = std::max(largest, std::abs(*number));
  }
  return scale_for(largest, table.columns[column].unit);
}

// That of all columns that are shown.
Scale table_scale(const Table& table, std::size_t rows) {
  Scale largest;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const Scale scale = column_scale(table, column, rows);
    if (scale.divisor >= largest.divisor && !scale.unit.empty()) largest = scale;
  }
  return largest;
}

std::string shortened(std::string text, std::size_t widest) {
  if (width_of(text) <= widest) return text;
  std::size_t end = widest - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

bool is_number(Unit unit) { return unit != Unit::none; }

void append_padded(std::string& line, std::string_view text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  line += right ? blanks + std::string(text) : std::string(text) + blanks;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

void write_text_table(const Table& table, const Style& style, Sink& sink) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (!table.columns[c].heading.empty()) shown.push_back(c);
  }
  if (table.title.empty() || table.rows.empty() || shown.empty()) return;
  const std::size_t rows = std::min(table.rows.size(), table.text_rows);
  std::vector<std::vector<std::string>> cells(rows);
  std::vector<std::string> headings;
  std::vector<std::size_t> widths;
  std::size_t used = 2;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    // Words in the last column may fill the line.
    const bool last = i + 1 == shown.size() && !is_number(table.columns[shown[i]].unit);
    const std::size_t widest = last && used + kWidest < kScreen ? kScreen - used : kWidest;
    const bool shared = table.one_scale && is_number(table.columns[shown[i]].unit);
    const Scale scale = shared ? table_scale(table, rows) : column_scale(table, shown[i], rows);
    headings.push_back(std::string(table.columns[shown[i]].heading) + std::string(scale.unit));
    widths.push_back(width_of(headings.back()));
    for (std::size_t r = 0; r < rows; ++r) {
      cells[r].push_back(shortened(
          cell_text(table.rows[r][shown[i]], table.columns[shown[i]].unit, scale), widest));
      widths[i] = std::max(widths[i], width_of(cells[r].back()));
    }
    used += widths[i] + 2;
  }
  sink.append(fmt::format("\n{}{}{}\n", style.bold, table.title, style.off));
  const auto write_line = [&](const auto& text_of, std::string_view before,
                              std::string_view after) {
    std::string line = "  ";
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (i > 0) line += "  ";
      append_padded(line, text_of(i), widths[i], is_number(table.columns[shown[i]].unit));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    sink.append(fmt::format("{}{}{}\n", before, line, after));
  };
  write_line([&](std::size_t i) { return headings[i]; }, style.dim, style.off);
  for (const auto& row : cells) write_line([&](std::size_t i) { return row[i]; }, "", "");
  if (table.rows.size() > rows) {
    sink.append(fmt::format("  {}... {} more rows in --format json{}\n", style.dim,
                            table.rows.size() - rows, style.off));
  }
}

}  // namespace commlens
