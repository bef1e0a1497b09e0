// Lines of what nccl-tests prints: which is a row, and of what run.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/operation.h"

namespace commlens {

struct NcclTestsRow {
  std::int64_t bytes = 0;
  std::int64_t count = 0;  // elements
  std::string type = {};   // of an element, as printed: "float"
  std::string redop = {};  // empty: none
  // By column, out-of-place first: microseconds, 0 for what was not measured; and bus over
  // algorithm bandwidth as printed, 0 where these do not tell.
  std::vector<double> times = {};
  double bus_ratio = 0;
  bool cpu_time = false;        // `times` are of the host's calls alone
  std::int64_t iterations = 0;  // 0: as the run says
  // Figures of the structured output that are none, as they stand: what they should say is unknown.
  std::vector<std::string> odd_figures = {};
  bool wrong = false;          // its check found results that are not those of the operation
  std::string odd_wrong = {};  // what stands where their number should; empty: it is one
};

// Sample (of eight GPUs; mpirun may put "[1,0]<stdout>:" before each line):
//
//   # Collective test starting: all_reduce_perf
//   # nThread 1 nGpus 8 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20 ...
//   #  Rank  0 Group  0 Pid 4242 on node-a device  0 [0000:19:00] NVIDIA H100 80GB HBM3
//   #   size     count    type   redop  root    time   algbw   busbw #wrong   time   algbw   busbw
//   ...
//    1048576    262144   float   sum    -1   74.78   14.02   24.54      0  76.17   13.77   24.09 0
//
// Columns are those of the heading, counted from the end of a row: operations without a reduction
// leave "redop" blank. With -C "cputime" stands for "time"; with -T a last column "timestamp" holds
// a date and a time, two words.
class NcclTestsLines {
 public:
  enum class Kind : std::uint8_t {
    other,   // comments, a log's lines
    begins,  // a run begins, or its devices are listed anew: rows before it are of another table
    heads,   // the names of columns
    row,     // `row` is it
    json,    // the structured output: `json` is it
    odd,     // a row that cannot be read: `fault` says why
  };
  Kind line(std::string_view text);

  const NcclTestsRow& row() const { return row_; }
  std::string_view json() const { return json_; }
  const std::string& fault() const { return fault_; }
  // Of the run that the next rows belong to.
  std::optional<Op> op() const { return op_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(ranks_.size()); }
  std::int64_t hosts() const { return static_cast<std::int64_t>(hosts_.size()); }
  std::int64_t iterations() const { return iterations_; }  // of each row; 0: not told

 private:
  using Words = std::vector<std::string_view>;
  Kind comment(const Words& words);
  Kind read_row(Words words);
  Kind odd(std::string why);
  void name_run(std::optional<Op> op);
  void begin_run();
  void forget_devices();

  std::optional<Op> op_;
  bool named_ahead_ = false;         // the program was named, and its run has not begun
  bool rows_since_devices_ = false;  // devices that are listed now are of another run
  std::set<std::string, std::less<>> hosts_;
  std::set<std::int64_t> ranks_;
  std::int64_t iterations_ = 0;
  void heading(const Words& words);

  bool cpu_times_ = false;
  bool timestamped_ = false;
  std::vector<std::size_t> times_;   // places of the time columns, from the end of a row
  std::vector<std::size_t> wrongs_;  // of "#wrong", likewise
  NcclTestsRow row_;
  std::string_view json_;
  std::string fault_;
};

// The names of its programs, without "_perf".
std::optional<Op> op_of_nccl_test(std::string_view name);

// The rows of the structured output. `whole` is false where the text ends early.
struct NcclTestsJson {
  std::vector<NcclTestsRow> rows;
  std::int64_t odd_sizes = 0;  // rows whose size is none
  bool whole = true;
};
NcclTestsJson read_nccl_tests_json(std::string_view text);

inline constexpr double kLongestNcclTest = 1e12;  // microseconds
// Microseconds; 0 for "N/A"; nothing for what is no time.
std::optional<double> nccl_tests_time(std::string_view text);
// Whether any results are wrong, of "0", "N/A", "1.04858e+06". Nothing for what is no such number.
std::optional<bool> nccl_tests_any_wrong(std::string_view text);
// Bus over algorithm bandwidth; 0 where these are too small for their decimals to tell it.
double nccl_tests_bus_ratio(double algbw, double busbw);

// Bytes of one element of this type; -1 where it is not known.
std::int64_t nccl_tests_element(std::string_view type);

}  // namespace commlens
