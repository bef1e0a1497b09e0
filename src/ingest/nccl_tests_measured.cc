// Tables of nccl-tests as measurements of their own: each size, out of place and in place, with the
// mean of its iterations. Which operation it was stands in newer outputs only, and in a log that
// shows the command. Otherwise the rows tell some of it: of a size that is the count's own, only an
// all-reduce has a bus bandwidth of 2(n-1)/n; of one that is n times the count's, only a
// reduce-scatter reduces, and all others share the factor (n-1)/n.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"
#include "ingest/nccl_tests_file.h"
#include "ingest/nccl_tests_lines.h"

namespace commlens {
namespace {

// How exact a ratio of two numbers with two decimals is, where the first is at least 1.
constexpr double kRatioError = 0.02;

// What a row tells of its operation.
struct Told {
  Op op = Op::unknown;
  std::int64_t ranks = 0;  // 0: not told
  double bus_factor = -1;  // where the operation is not known
};

// `ranks`: of the list of devices, 0 where there is none.
Told told_by(const NcclTestsRow& row, std::int64_t ranks) {
  Told told{.ranks = ranks};
  const std::int64_t element = nccl_tests_element(row.type);
  std::int64_t counted = 0;
  if (element < 0 || row.count <= 0 || __builtin_mul_overflow(element, row.count, &counted))
    return told;
  if (row.bytes > counted && row.bytes % counted == 0) {
    const std::int64_t parts = row.bytes / counted;
    if (ranks != 0 && parts != ranks) return told;
    told.ranks = parts;
    told.bus_factor = static_cast<double>(parts - 1) / static_cast<double>(parts);
    if (!row.redop.empty()) told.op = Op::reduce_scatter;
    return told;
  }
  if (row.bytes != counted || row.bus_ratio <= 0 || ranks < 2) return told;
  if (std::abs(row.bus_ratio - 1) <= kRatioError) told.bus_factor = 1;
  // Of two ranks every operation of this size has the factor 1.
  if (ranks == 2) return told;
  const double all_reduce = 2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (std::abs(row.bus_ratio - all_reduce) <= kRatioError) told.op = Op::all_reduce;
  return told;
}

class RunReader {
 public:
  explicit RunReader(Measured& measured) : measured_(measured) {}
  void line(std::string_view text, std::int64_t number);
  void file(const NcclTestsFile& file);
  void finish() { end_table(); }
  bool seen() const { return seen_; }

 private:
  struct Row {
    NcclTestsRow row;
    std::int64_t number = 0;
  };
  void take(const NcclTestsRow& row, std::int64_t number);
  void note_odd(std::int64_t count, const std::string& where) {
    if (count > 0) measured_.notes.add(Note::odd_record, where, count);
  }
  void end_table();
  void add(const Row& row, const Told& told, std::int64_t ranks);

  Measured& measured_;
  NcclTestsLines lines_;
  bool seen_ = false;
  std::optional<Op> op_;  // of the table
  std::int64_t ranks_ = 0;
  std::int64_t hosts_ = 0;
  std::int64_t iterations_ = 0;
  std::int32_t run_ = 0;  // tables with rows so far
  std::vector<Row> rows_;
};

void RunReader::line(std::string_view text, std::int64_t number) {
  switch (lines_.line(text)) {
    case NcclTestsLines::Kind::begins: return end_table();
    case NcclTestsLines::Kind::heads: seen_ = true; return end_table();
    case NcclTestsLines::Kind::odd:
      // Before any heading two numbers may begin any line of a log.
      if (seen_) measured_.notes.add(Note::odd_record, example_line(number, text));
      return;
    case NcclTestsLines::Kind::row: return take(lines_.row(), number);
    case NcclTestsLines::Kind::json: {
      seen_ = true;
      end_table();
      const NcclTestsJson json = read_nccl_tests_json(lines_.json());
      if (!json.whole) measured_.notes.add(Note::truncated, "line " + std::to_string(number));
      note_odd(json.odd_sizes, "line " + std::to_string(number));
      for (const NcclTestsRow& row : json.rows) take(row, number);
      return end_table();
    }
    default: return;
  }
}

void RunReader::file(const NcclTestsFile& file) {
  seen_ = true;
  note_odd(file.odd_rows, "line 1");
  for (const NcclTestsRow& row : file.rows) take(row, 1);
  op_ = file.op;
  ranks_ = file.ranks;
  hosts_ = file.hosts;
  iterations_ = file.iterations;
  end_table();
}

void RunReader::take(const NcclTestsRow& row, std::int64_t number) {
  note_odd(static_cast<std::int64_t>(row.odd_figures.size()), "line " + std::to_string(number));
  if (!row.odd_wrong.empty())
    return measured_.notes.add(Note::odd_record, "line " + std::to_string(number));
  ++measured_.records;
  if (row.wrong) measured_.notes.add(Note::wrong_results, "line " + std::to_string(number));
  // Sizes too small for the number of ranks are printed as rows without any.
  if (row.bytes <= 0) return;
  if (rows_.empty()) {
    op_ = lines_.op();
    ranks_ = lines_.ranks();
    hosts_ = lines_.hosts();
    iterations_ = lines_.iterations();
  }
  rows_.push_back({row, number});
}

void RunReader::end_table() {
  // What one row tells holds for the table; small sizes tell nothing.
  Told told{.ranks = ranks_};
  for (const Row& row : rows_) {
    const Told more = told_by(row.row, ranks_);
    if (more.op != Op::unknown) told.op = more.op;
    if (more.bus_factor >= 0) told.bus_factor = more.bus_factor;
    told.ranks = std::max(told.ranks, more.ranks);
  }
  run_ += rows_.empty() ? 0 : 1;
  if (op_) told.op = *op_;
  if (told.op != Op::unknown) told.bus_factor = -1;
  for (const Row& row : rows_) add(row, told, ranks_);
  rows_.clear();
}

void RunReader::add(const Row& row, const Told& told, std::int64_t ranks) {
  // Sizes of which count and bytes say the number of ranks speak for all.
  const std::int64_t size = ranks > 0 ? ranks : told.ranks;
  const std::uint32_t group = measured_.add_group({.size = size, .nodes = hosts_});
  for (std::size_t i = 0; i < row.row.times.size(); ++i) {
    if (row.row.times[i] <= 0) continue;
    MeasuredCall call;
    call.group = group;
    call.op = told.op;
    call.bus_factor = told.bus_factor;
    call.in_place = i > 0;
    call.run = run_;
    const std::int64_t iterations = row.row.iterations > 0 ? row.row.iterations : iterations_;
    call.count = iterations;
    call.bytes = row.row.bytes;
    call.message = row.row.bytes;
    call.dtype = measured_.strings.intern(row.row.type);
    call.timed_by = row.row.cpu_time ? TimedBy::enqueue_loop : TimedBy::test_loop;
    const auto mean = static_cast<Ns>(std::llround(row.row.times[i] * 1000));
    if (iterations == 0 || __builtin_mul_overflow(mean, iterations, &call.time)) {
      call.count = -1;
      call.time = mean;
    }
    call.where = row.number;
    measured_.calls.push_back(call);
    measured_.notes.add(Note::summed_calls, "line " + std::to_string(row.number));
    if (size == 0) measured_.notes.add(Note::unknown_group_size);
  }
}

bool sniff(std::string_view head) {
  if (is_nccl_tests_file(head)) return true;
  if (head.find("busbw") == std::string_view::npos) return false;
  NcclTestsLines lines;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const auto kind = lines.line(head.substr(0, end));
    if (kind == NcclTestsLines::Kind::heads || kind == NcclTestsLines::Kind::json) return true;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

void read(Source& source, std::string_view head, Measured& measured) {
  RunReader reader(measured);
  if (is_nccl_tests_file(head)) {
    const std::string text = read_nccl_tests_text(source, head);
    note_measured_end(source, measured);
    const NcclTestsFile file = read_nccl_tests_file(text, source.name());
    if (!file.truncation.empty()) measured.notes.add(Note::truncated, file.truncation);
    reader.file(file);
  } else {
    read_measured_lines(
        source, head, measured,
        [&reader](std::string_view line, std::int64_t number) { reader.line(line, number); });
    reader.finish();
  }
  if (measured.calls.empty())
    throw Error(ErrorKind::input,
                source.name() + (reader.seen() ? ": its table has no row with a size and a "
                                                 "time; the run may have failed"
                                               : ": holds no table of nccl-tests"));
}

}  // namespace

extern const MeasuredFormat kNcclTests;
constinit const MeasuredFormat kNcclTests{
    .name = "nccl_tests",
    .summary = "Tables that nccl-tests prints, and its structured output",
    .sniff = sniff,
    .read = read,
    .at_the_end = true,
};

}  // namespace commlens
