#include "report/writer_table_json.h"

#include <string>

namespace commlens {
namespace {

bool has_nested(const Table& table) {
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) {
      if (std::holds_alternative<std::vector<Table>>(cell)) return true;
    }
  }
  return false;
}

void write_rows(JsonOut& json, const Table& table, bool compact_rows) {
  json.begin_array();
  for (const auto& row : table.rows) {
    if (compact_rows) json.compact_next();
    json.begin_object();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      json.key(table.columns[i].name);
      write_json_cell(json, row[i]);
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_json_cell(JsonOut& json, const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) {
    json.null();
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&cell)) {
    json.compact_next();
    json.begin_array();
    for (const std::int64_t value : *list) json.value(value);
    json.end_array();
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&cell)) {
    json.compact_next();
    json.begin_array();
    for (const std::string& text : *texts) json.value(text);
    json.end_array();
  } else if (const auto* nested = std::get_if<std::vector<Table>>(&cell)) {
    write_rows(json, nested->front(), true);
  } else {
    std::visit(
        [&json](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>)
            json.value(value);
        },
        cell);
  }
}

void write_json_table(JsonOut& json, const Table& table) {
  if (table.known) {
    write_rows(json, table, !has_nested(table));
  } else {
    json.null();
  }
}

}  // namespace commlens
