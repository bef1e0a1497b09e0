#include "ingest/nsys_database.h"

#include <sqlite3.h>

#include <algorithm>

#include "base/error.h"

namespace commlens {
namespace {

// A name or command line longer than this is no name.
constexpr int kLongestValue = 1 << 20;

// The path as a URI: what else has a meaning there is escaped.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' || byte == '-' ||
                       byte == '_';
    if (plain) {
      uri += c;
    } else {
      uri += '%';
      uri += kHex[byte >> 4U];
      uri += kHex[byte & 15U];
    }
  }
  // Immutable: no lock, no journal, nothing is written beside it.
  return uri + "?mode=ro&immutable=1";
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return {};
  return Statement(statement);
}

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

}  // namespace

bool NsysRow::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

bool NsysRow::is_integer(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_INTEGER;
}

bool NsysRow::is_number(int column) const {
  return is_integer(column) || sqlite3_column_type(statement_, column) == SQLITE_FLOAT;
}

std::int64_t NsysRow::integer(int column, std::int64_t otherwise) const {
  return is_number(column) ? sqlite3_column_int64(statement_, column) : otherwise;
}

std::string_view NsysRow::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view NsysRow::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void NsysDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

NsysDatabase::NsysDatabase(const std::string& path) : path_(path) {
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(uri_of(path).c_str(), &database,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK)
    throw Error(ErrorKind::input,
                path + ": cannot be opened as a database: " +
                    (database != nullptr ? sqlite3_errmsg(database) : "no memory"));
  // Views and triggers of a stranger's file do nothing.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  if (!prepare(database, "SELECT name FROM sqlite_master LIMIT 1"))
    throw Error(ErrorKind::input, path + ": is no sound database: " + sqlite3_errmsg(database) +
                                      "; export the report again with nsys export --type=sqlite");
  read_strings();
}

bool NsysDatabase::has_column(std::string_view table, std::string_view column) const {
  // A pragma takes no parameters as a statement, but does as a function.
  const Statement statement =
      prepare(database_.get(), "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
  if (!statement) return false;
  sqlite3_bind_text(statement.get(), 1, table.data(), static_cast<int>(table.size()), nullptr);
  sqlite3_bind_text(statement.get(), 2, column.data(), static_cast<int>(column.size()), nullptr);
  return sqlite3_step(statement.get()) == SQLITE_ROW;
}

std::vector<std::string> NsysDatabase::names(const char* sql, std::string_view parameter) const {
  std::vector<std::string> found;
  const Statement statement = prepare(database_.get(), sql);
  if (!statement) return found;
  sqlite3_bind_text(statement.get(), 1, parameter.data(), static_cast<int>(parameter.size()),
                    nullptr);
  while (sqlite3_step(statement.get()) == SQLITE_ROW) {
    std::string name(NsysRow(statement.get()).text(0));
    if (name.find('"') == std::string::npos) found.push_back(std::move(name));
  }
  return found;
}

std::vector<std::string> NsysDatabase::tables(std::string_view begin) const {
  return names(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, length(?1)) = ?1"
      " ORDER BY name",
      begin);
}

std::vector<std::string> NsysDatabase::columns(std::string_view table) const {
  return names("SELECT name FROM pragma_table_info(?1)", table);
}

bool NsysDatabase::has(std::string_view table) const {
  const Statement statement =
      prepare(database_.get(), "SELECT 1 FROM " + quoted(table) + " LIMIT 1");
  return statement && sqlite3_step(statement.get()) == SQLITE_ROW;
}

void NsysDatabase::each(std::string_view table, const std::vector<std::string_view>& columns,
                        const std::function<void(const NsysRow&)>& visit, std::string_view where,
                        std::string_view order) {
  std::string sql = "SELECT ";
  for (const std::string_view column : columns) {
    if (column != columns.front()) sql += ", ";
    sql += has_column(table, column) ? quoted(column) : "NULL";
  }
  sql += " FROM " + quoted(table);
  if (!where.empty()) sql += " WHERE " + std::string(where);
  if (!order.empty()) sql += " ORDER BY " + std::string(order);
  const Statement statement = prepare(database_.get(), sql);
  if (!statement) {
    const std::string words = sqlite3_errmsg(database_.get());
    const std::string kind = kind_of(table);
    if (!kind.empty())
      trouble(table, kind == "view" ? "is a view, which may show anything"
                                    : "cannot be read (" + words + ")");
    return;
  }
  for (std::int64_t rows = 0;; ++rows) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_ROW) {
      visit(NsysRow(statement.get()));
      continue;
    }
    if (code != SQLITE_DONE)
      trouble(table, "is damaged behind " + std::to_string(rows) + " rows of those asked for (" +
                         sqlite3_errmsg(database_.get()) + ")");
    return;
  }
}

void NsysDatabase::need(std::string_view table, const std::vector<std::string_view>& columns) {
  if (!has(table)) return;
  for (const std::string_view column : columns) {
    if (!has_column(table, column)) trouble(table, "has no column " + std::string(column));
  }
}

// The first counts: others follow from it.
void NsysDatabase::trouble(std::string_view table, const std::string& words) {
  troubles_.try_emplace(std::string(table), "table " + std::string(table) + " " + words);
}

// Names are told without case, as SQL tells them.
std::string NsysDatabase::kind_of(std::string_view table) const {
  const auto kinds = names("SELECT type FROM sqlite_master WHERE name = ?1 COLLATE NOCASE", table);
  return kinds.empty() ? std::string() : kinds.front();
}

void NsysDatabase::read_strings() {
  need("StringIds", {"id", "value"});
  each("StringIds", {"id", "value"}, [this](const NsysRow& row) {
    strings_.emplace_back(row.integer(0), std::string(row.text(1)));
  });
  std::sort(strings_.begin(), strings_.end());
}

std::string_view NsysDatabase::string(std::int64_t id) const {
  const auto found =
      std::lower_bound(strings_.begin(), strings_.end(), id,
                       [](const auto& row, std::int64_t wanted) { return row.first < wanted; });
  return found == strings_.end() || found->first != id ? std::string_view() : found->second;
}

}  // namespace commlens
