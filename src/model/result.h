// What an analysis returns: sentences and tables with units. Writers render any of them without
// knowing the analysis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace commlens {

enum class Unit : std::uint8_t {
  none,
  nanoseconds,
  bytes,
  count,
  ratio,                 // 0 to 1; printed as a percentage
  gigabytes_per_second,  // of 1e9 bytes
};

struct Table;
// One value; `std::monostate` is "not known" (null, a dash). A nested table holds exactly one
// Table.
using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                          std::vector<std::int64_t>, std::vector<std::string>, std::vector<Table>>;

struct Column {
  std::string_view name;  // the JSON's name, with its unit ("busy_ns")
  Unit unit = Unit::none;
  std::string heading;  // over the column in text; empty: not shown there
};

struct Table {
  // The JSON's name; empty: its only row is not an array of its own but fields of the section. A
  // section that the inputs cannot support is one unknown table at the top level, with its name.
  std::string name;
  std::string_view section;  // JSON object that the table is a member of; empty: the top level
  std::string title;         // over the table in text; empty: not shown there
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  // False where the inputs cannot support the table: null, which is not the same as none found.
  bool known = true;
  std::string_view footnote = {};  // under the tables in text; one is enough for all that share it
  bool text_only = false;          // the same figures stand in another table's rows for programs
  bool one_scale = false;          // text shows all columns in the unit of the largest figure
  std::size_t text_rows = 12;      // how many rows text shows; it says how many more there are
};

struct Result {
  // For people, most important first. Leading blanks indent a line, and what wraps.
  std::vector<std::string> lines;
  std::vector<Table> tables;
  bool first = false;  // text shows it before what is not: the answers that fit on one screen
};

}  // namespace commlens
