// What DeepSpeed's communication logger prints into a log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/measured.h"

namespace commlens {

// Whether a line is one of the logger's, or begins its table.
bool is_deepspeed_line(std::string_view line);

// Of all logger's lines of a log.
class DeepspeedReader {
 public:
  explicit DeepspeedReader(Measured& measured) : measured_(measured) {}
  // True where the line was the logger's.
  bool line(std::string_view text, std::int64_t number);
  // Gives the calls to `measured`; each once, however often it was printed.
  void finish();

 private:
  // What tells one kind of call from another: the size as it is printed.
  struct Kind {
    std::string name;
    std::string caller;
    std::int64_t message = -1;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  struct Row {
    std::int64_t count = 0;
    Ns time = -1;
    Ns straggle = -1;
    std::int64_t where = 0;
    bool of_block = false;    // first seen in a straggler block
    bool block_told = false;  // `straggle` is a block's
  };
  static void add_to(Row& row, const Row& more, bool block);
  using Table = std::map<Kind, Row>;

  bool header(std::string_view text);
  bool op_line(std::string_view text);
  bool row(std::string_view text, std::int64_t number);
  void verbose(std::string_view text, std::int64_t number);
  void end_table();
  void add(const Kind& kind, std::int64_t count, Ns time, Ns straggle, std::int64_t where);

  Measured& measured_;
  std::vector<std::string_view> columns_;  // behind the operation, of the table that goes on
  bool straggler_block_ = false;           // the table that goes on is that of the table before
  std::string name_;                       // the operation that rows belong to
  std::string caller_;
  Table table_;
  std::vector<Table> tables_;
  std::map<Kind, std::vector<std::pair<Ns, std::int64_t>>> verbose_;  // time and line of each call
};

// A call of this name, with its sizes in all counts.
MeasuredCall deepspeed_call(std::string_view name, std::int64_t message, Measured& measured);

}  // namespace commlens
