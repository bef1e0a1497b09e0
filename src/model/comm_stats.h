// Sums over any set of communications: the columns that every table of operations has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/result.h"

namespace commlens {

// What the marks in the headings of its columns mean.
inline constexpr std::string_view kCommFootnote =
    "* its own share: where several are exposed at once they split it; sums to the ranks' "
    "exposed.\n"
    "  ** GB/s; net: of the transfer alone; apparent: the time includes waiting for peers.";

class CommStats {
 public:
  // Counts one communication with its figures in a window. `group_size` 0 is unknown. `transfer` is
  // its time without waiting; nothing where that is not known.
  void add(const CommOp& op, const Exposure& figures, std::optional<Ns> transfer);

  Ns exclusive() const { return exclusive_; }
  std::int64_t count() const { return count_; }

  // The columns, and the cells of one row of them, in the same order.
  static void append_columns(std::vector<Column>& columns);
  void append_cells(std::vector<Cell>& cells);

 private:
  std::int64_t count_ = 0;         // those that start in the window
  std::int64_t unknown_size_ = 0;  // of these, without a known size
  std::int64_t name_only_ = 0;     // of these, known only by a name that can lie
  std::int64_t bytes_ = 0;         // of those with a known size
  Ns sized_time_ = 0;              // whole time of those with a known size
  Ns sized_transfer_ = 0;          // and their time without waiting
  bool net_ = true;                // which is known for all of them
  double bus_bytes_ = 0;           // bytes times bus factor, of those with a known size and factor
  Ns bus_time_ = 0;
  Ns bus_transfer_ = 0;
  Ns busy_ = 0;
  Ns hidden_ = 0;
  Ns exposed_ = 0;
  Ns exclusive_ = 0;
  std::vector<Ns> durations_;  // whole times of those that start in the window
};

// The time of a communication without its waiting, `op` being a row of the device's comm; nothing
// where its waiting is not known.
std::optional<Ns> transfer_of(const Job& job, const RankTimeline& rank,
                              const DeviceTimeline& device, std::size_t op);

// A table "ops" of sums by operation, what costs most first.
Table ops_table(std::map<Op, CommStats>& by_op, std::string title);

}  // namespace commlens
