// What the user says that links can do: bus bandwidths (--peak), and tables that were measured
// (--calibrate).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "model/operation.h"

namespace commlens {

// A bus bandwidth as nccl-tests defines it.
struct PeakRate {
  std::string group;     // description or label; empty: any
  std::optional<Op> op;  // nothing: any
  double gbs = 0;        // of 1e9 bytes; > 0
};

// "180", "all_reduce=180,dp:all_reduce=40,dp=30". Throws Error(usage).
std::vector<PeakRate> parse_peaks(std::string_view text);

// What one run of nccl-tests measured.
struct CalibrationTable {
  struct Row {
    std::int64_t bytes = 0;
    double ns = 0;
  };
  std::string file;
  Op op = Op::unknown;
  std::int64_t ranks = 0;  // 0: not known
  std::int64_t hosts = 0;  // 0: not known
  std::vector<Row> rows;   // by size, each size once; at least one

  // The time of one message: between two sizes along the line of their logarithms, beyond the last
  // at its bandwidth, below the first as long as the first.
  double time_of(std::int64_t bytes) const;
};

struct RateOptions {
  std::vector<PeakRate> peaks;
  std::vector<CalibrationTable> tables;
};

}  // namespace commlens
