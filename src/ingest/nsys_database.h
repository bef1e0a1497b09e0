// A Nsight Systems export as a database: opened to be read, never to be changed, and never trusted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace commlens {

// One row of a query, valid during the call that it is handed to.
class NsysRow {
 public:
  explicit NsysRow(sqlite3_stmt* statement) : statement_(statement) {}
  bool is_null(int column) const;
  bool is_integer(int column) const;
  bool is_number(int column) const;  // text in its place, as damage makes it, is none
  std::int64_t integer(int column, std::int64_t otherwise = 0) const;
  std::string_view text(int column) const;   // empty where there is none
  std::string_view bytes(int column) const;  // a blob, or text that holds one

 private:
  sqlite3_stmt* statement_;
};

class NsysDatabase {
 public:
  // Throws Error(input) where it cannot be opened as a database.
  explicit NsysDatabase(const std::string& path);

  // Whether there is such a table with any row.
  bool has(std::string_view table) const;
  // Rows of a table with these columns, NULL in place of one that it does not have; nothing where
  // there is no such table. `where` and `order` are SQL over columns that the table has. What keeps
  // a table from being read, or to its end, is kept in `troubles`.
  void each(std::string_view table, const std::vector<std::string_view>& columns,
            const std::function<void(const NsysRow&)>& visit, std::string_view where = {},
            std::string_view order = {});
  bool has_column(std::string_view table, std::string_view column) const;
  // Trouble for each of these columns that a table with rows lacks.
  void need(std::string_view table, const std::vector<std::string_view>& columns);
  // Tables whose names begin so, and the columns of one; names with a quote in them are left out.
  std::vector<std::string> tables(std::string_view begin) const;
  std::vector<std::string> columns(std::string_view table) const;

  // Of the table StringIds; empty where there is none.
  std::string_view string(std::int64_t id) const;

  // One for each table.
  const std::map<std::string, std::string>& troubles() const { return troubles_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  void read_strings();
  void trouble(std::string_view table, const std::string& words);
  std::string kind_of(std::string_view table) const;  // "table", "view"; empty: there is none
  std::vector<std::string> names(const char* sql, std::string_view parameter) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::pair<std::int64_t, std::string>> strings_;  // by id
  std::map<std::string, std::string> troubles_;                // by table
};

}  // namespace commlens
