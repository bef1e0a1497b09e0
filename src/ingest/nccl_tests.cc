// The bandwidths of a table are not read: two decimals say nothing about a small message, its time
// does. Of out-of-place and in-place, and of sizes that were measured again, the fastest counts.
#include "ingest/nccl_tests.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/source.h"
#include "base/utf8.h"
#include "ingest/nccl_tests_file.h"
#include "ingest/nccl_tests_lines.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestText = std::size_t{32} << 20U;

class TableReader {
 public:
  TableReader(const std::string& file, std::optional<Op> op) : file_(file), given_(op) {}

  void line(std::string_view text);
  void file(const NcclTestsFile& file);
  std::vector<CalibrationTable> finish();

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::usage,
                printable(file_) + ", line " + std::to_string(number_) + ": " + what);
  }
  void row(const NcclTestsRow& row);
  void end_table();

  const std::string& file_;
  std::optional<Op> given_;  // the user's
  std::int64_t number_ = 0;  // of the line
  NcclTestsLines lines_;
  CalibrationTable table_;      // but its rows
  std::optional<Op> table_op_;  // as the text names it
  std::vector<CalibrationTable::Row> rows_;
  std::vector<CalibrationTable> tables_;
};

void TableReader::line(std::string_view text) {
  ++number_;
  switch (lines_.line(text)) {
    case NcclTestsLines::Kind::begins: return end_table();
    case NcclTestsLines::Kind::odd: fail(lines_.fault());
    case NcclTestsLines::Kind::row: return row(lines_.row());
    case NcclTestsLines::Kind::json: {
      const NcclTestsJson json = read_nccl_tests_json(lines_.json());
      if (json.odd_sizes > 0) fail("a row of its results has no size");
      for (const NcclTestsRow& json_row : json.rows) row(json_row);
      return;
    }
    default: return;
  }
}

void TableReader::file(const NcclTestsFile& file) {
  ++number_;
  if (file.odd_rows > 0) fail("a row of its results has no size");
  for (const NcclTestsRow& file_row : file.rows) row(file_row);
  table_.ranks = file.ranks;
  table_.hosts = file.hosts;
  table_op_ = file.op;
}

void TableReader::row(const NcclTestsRow& row) {
  if (row.cpu_time)
    fail("its times are those of the host's calls alone; run it without -C (--report_cputime)");
  if (!row.odd_figures.empty())
    fail("\"" + printable(row.odd_figures.front()) + "\" stands where a figure should");
  if (!row.odd_wrong.empty())
    fail("\"" + printable(row.odd_wrong) + "\" stands where the number of wrong results should");
  double fastest = 0;
  for (const double time : row.times) {
    if (time > 0 && (fastest == 0 || time < fastest)) fastest = time;
  }
  if (row.bytes <= 0 || fastest <= 0) return;
  if (rows_.empty()) {
    table_ = {.file = file_, .ranks = lines_.ranks(), .hosts = lines_.hosts(), .rows = {}};
    table_op_ = lines_.op();
  }
  rows_.push_back({row.bytes, fastest * 1000});
}

void TableReader::end_table() {
  if (rows_.empty()) return;
  const auto op = table_op_ ? table_op_ : given_;
  if (!op) {
    throw Error(ErrorKind::usage, printable(file_) +
                                      ": does not say which operation it is of; write all_reduce=" +
                                      printable(file_) + ", or whatever it is");
  }
  std::sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.ns < b.ns;
  });
  const auto same = [](const auto& a, const auto& b) { return a.bytes == b.bytes; };
  rows_.erase(std::unique(rows_.begin(), rows_.end(), same), rows_.end());
  table_.op = *op;
  table_.rows = std::move(rows_);
  tables_.push_back(std::move(table_));
  rows_.clear();
}

std::vector<CalibrationTable> TableReader::finish() {
  end_table();
  if (tables_.empty()) {
    throw Error(ErrorKind::usage,
                printable(file_) +
                    ": holds no table of nccl-tests; --calibrate takes what all_reduce_perf and "
                    "its like print");
  }
  return std::move(tables_);
}

std::string read_text(const std::string& file) {
  try {
    Source source = Source::open(file);
    std::string text;
    std::vector<char> window(std::size_t{1} << 16U);
    while (const std::size_t got = source.read(window)) {
      text.append(window.data(), got);
      if (text.size() > kLongestText)
        throw Error(ErrorKind::usage, printable(file) + ": is too large for a table of nccl-tests");
    }
    return text;
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, "--calibrate: " + std::string(error.what()));
  }
}

}  // namespace

std::vector<CalibrationTable> parse_nccl_tests(std::string_view text, const std::string& file,
                                               std::optional<Op> op) {
  TableReader reader(file, op);
  if (is_nccl_tests_file(text)) {
    try {
      reader.file(read_nccl_tests_file(text, file));
    } catch (const Error& error) {
      throw Error(ErrorKind::usage, "--calibrate: " + std::string(error.what()));
    }
    return reader.finish();
  }
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

std::vector<CalibrationTable> read_nccl_tests(const std::string& word) {
  const std::size_t equals = word.find('=');
  const auto op = equals == std::string::npos
                      ? std::nullopt
                      : op_of_nccl_test(std::string_view(word).substr(0, equals));
  const std::string file = op ? word.substr(equals + 1) : word;
  if (file.empty() || file == "-")
    throw Error(ErrorKind::usage, "--calibrate: \"" + printable(word) + "\" names no file");
  return parse_nccl_tests(read_text(file), file, op);
}

}  // namespace commlens
