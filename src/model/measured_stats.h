// Sums over any set of measured calls: the columns of CommStats, of which those that need a
// timeline stay unknown.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/measured.h"
#include "model/result.h"

namespace commlens {

class MeasuredStats {
 public:
  // `group_size` 0 is not known. Repeated records add nothing.
  void add(const MeasuredCall& call, std::int64_t group_size);

  Ns time() const { return time_; }  // of those that tell it

  // The cells of one row of CommStats::append_columns.
  void append_cells(std::vector<Cell>& cells);

 private:
  std::int64_t count_ = 0;
  bool count_known_ = true;
  std::int64_t unknown_size_ = 0;  // calls
  std::int64_t bytes_ = 0;         // of those whose size is known
  bool sized_ = false;             // there is any
  Ns time_ = 0;                    // of those that tell it
  std::int64_t timed_ = 0;         // calls that tell it
  bool all_timed_ = true;
  bool one_by_one_ = true;      // each duration is that of one call
  double bandwidth_bytes_ = 0;  // of calls whose size and time are known
  Ns bandwidth_time_ = 0;
  double bus_bytes_ = 0;  // times the bus factor, where that is known too
  Ns bus_time_ = 0;
  std::vector<Ns> durations_;
};

// The columns of CommStats; text shows those that are known.
void append_measured_columns(std::vector<Column>& columns);
// What the marks in the headings mean.
inline constexpr std::string_view kMeasuredFootnote =
    "** GB/s; apparent: the time includes waiting for peers.";

// A table "ops" of sums by operation, what took longest first.
Table measured_ops_table(std::map<Op, MeasuredStats>& by_op, std::string title);

}  // namespace commlens
