// Sample (of eight GPUs; mpirun may put "[1,0]<stdout>:" before each line):
//
//   # Collective test starting: all_reduce_perf
//   #  Rank  0 Group  0 Pid 4242 on node-a device  0 [0000:19:00] NVIDIA H100 80GB HBM3
//   #                                            out-of-place                in-place
//   #   size     count    type redop  root    time   algbw   busbw #wrong   time   algbw   busbw
//   #wrong #    (B)  (elements)                      (us)  (GB/s)  (GB/s)          (us)  (GB/s)
//   (GB/s)
//    1048576    262144   float   sum    -1   74.78   14.02   24.54      0  76.17   13.77   24.09 0
//
// Columns are counted from the end of a row: those of operations without a reduction leave "redop"
// blank. The bandwidths are not read: two decimals say nothing about a small message, its time
// does. Of out-of-place and in-place, and of sizes that were measured again, the fastest counts.
#include "ingest/nccl_tests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/source.h"
#include "base/utf8.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestText = std::size_t{32} << 20U;
constexpr double kLongestMicroseconds = 1e12;

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  constexpr std::string_view kBlank = " \t\r\v\f";
  for (std::size_t from = line.find_first_not_of(kBlank); from < line.size();) {
    const std::size_t to = std::min(line.find_first_of(kBlank, from), line.size());
    words.push_back(line.substr(from, to - from));
    from = line.find_first_not_of(kBlank, to);
  }
  return words;
}

// The names of its programs, without "_perf"; hypercube is no operation of NCCL's.
std::optional<Op> op_of_program(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kOther[] = {
      {"alltoall", Op::all_to_all}, {"alltoallv", Op::all_to_all}, {"sendrecv", Op::send_recv}};
  for (const auto& [program, op] : kOther) {
    if (name == program) return op;
  }
  return op_from_name(name);
}

// "build/all_reduce_perf" anywhere in a line.
std::optional<Op> program_in(const Words& words) {
  constexpr std::string_view kEnd = "_perf";
  for (std::string_view word : words) {
    word.remove_prefix(std::min(word.size(), word.rfind('/') + 1));
    if (word.ends_with(kEnd)) {
      if (const auto op = op_of_program(word.substr(0, word.size() - kEnd.size()))) return op;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

class TableReader {
 public:
  TableReader(const std::string& file, std::optional<Op> op) : file_(file), given_(op) {}

  void line(std::string_view text);
  std::vector<CalibrationTable> finish();

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::usage,
                printable(file_) + ", line " + std::to_string(number_) + ": " + what);
  }
  void comment(const Words& words);
  void row(const Words& words);
  double fastest(const Words& words) const;
  void end_table();

  const std::string& file_;
  std::optional<Op> given_;  // the user's
  std::int64_t number_ = 0;  // of the line
  std::optional<Op> program_;
  std::set<std::string, std::less<>> hosts_;
  std::set<std::int64_t> ranks_;
  std::vector<std::size_t> times_;  // places of the time columns, from the end of a row
  std::vector<CalibrationTable::Row> rows_;
  std::vector<CalibrationTable> tables_;
};

void TableReader::line(std::string_view text) {
  ++number_;
  // What mpirun puts before a line.
  if (text.starts_with('[')) {
    if (const std::size_t tag = text.find(">:"); tag < text.find(' ')) text.remove_prefix(tag + 2);
  }
  const Words words = words_of(text);
  if (words.empty()) return;
  if (words.front().starts_with('#')) return comment(words);
  // A row begins with size and count; anything else is a log's.
  if (words.size() > 2 && whole_number(words[0]) && whole_number(words[1])) return row(words);
  if (const auto op = program_in(words)) {
    end_table();
    program_ = op;
  }
}

void TableReader::comment(const Words& words) {
  if (const auto op = program_in(words)) {
    end_table();
    program_ = op;
    return;
  }
  const auto has = [&words](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (has("Using") && has("devices")) {
    end_table();
    hosts_.clear();
    ranks_.clear();
    return;
  }
  // "#  Rank  0 Group  0 Pid 4242 on node-a device  0 [...]"
  const auto rank = std::find(words.begin(), words.end(), "Rank");
  const auto on = std::find(words.begin(), words.end(), "on");
  if (has("Pid") && rank + 1 < words.end() && on + 1 < words.end()) {
    if (const auto number = whole_number(*(rank + 1))) ranks_.insert(*number);
    hosts_.emplace(*(on + 1));
    return;
  }
  if (!has("size") || !has("time") || !has("busbw")) return;
  times_.clear();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "time") times_.push_back(words.size() - i);
  }
}

// In microseconds.
double TableReader::fastest(const Words& words) const {
  double least = 0;
  for (const std::size_t place : times_) {
    if (place + 2 > words.size()) fail("a row of the table ends early");
    const std::string_view text = words[words.size() - place];
    if (text == "N/A") continue;
    double time = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(time) ||
        time < 0 || time > kLongestMicroseconds)
      fail("\"" + printable(text.substr(0, 40)) + "\" stands where a time in microseconds should");
    if (time > 0 && (least == 0 || time < least)) least = time;
  }
  return least;
}

void TableReader::row(const Words& words) {
  if (times_.empty()) fail("a row of figures before the heading that names its columns");
  const double time = fastest(words);
  const std::int64_t bytes = *whole_number(words[0]);
  if (bytes > 0 && time > 0) rows_.push_back({bytes, time * 1000});
}

void TableReader::end_table() {
  if (rows_.empty()) return;
  const auto op = program_ ? program_ : given_;
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
  tables_.push_back({.file = file_,
                     .op = *op,
                     .ranks = static_cast<std::int64_t>(ranks_.size()),
                     .hosts = static_cast<std::int64_t>(hosts_.size()),
                     .rows = std::move(rows_)});
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
                      : op_of_program(std::string_view(word).substr(0, equals));
  const std::string file = op ? word.substr(equals + 1) : word;
  if (file.empty() || file == "-")
    throw Error(ErrorKind::usage, "--calibrate: \"" + printable(word) + "\" names no file");
  return parse_nccl_tests(read_text(file), file, op);
}

}  // namespace commlens
