// How the ranks' clocks relate: what is added to a rank's times to compare them with another's, and
// how far that can be trusted.
//
// match/clocks fills this from matched operations. "Row" is a row of Job::ranks. A "domain" is a
// set of rows that share a clock for certain. Common time is the clock of the reference, in
// nanoseconds since the epoch (or since that recording's own zero).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace commlens {

enum class ClockMethod : std::uint8_t {
  reference,        // the lowest rank: 0 by definition
  same_host,        // shares the reference's clock
  end_differences,  // median difference of ends of operations that synchronise everyone
  none,             // no estimate: `offset` is null
};
std::string_view clock_method_name(ClockMethod method);

// One rank's clock. Offsets are added to its own times, and hold at `Clocks::origin`.
struct ClockLine {
  std::optional<Ns> offset;  // estimate, inside the bounds
  std::optional<Ns> lower;   // by causality alone; nothing where unbounded
  std::optional<Ns> upper;
  Ns spread = 0;         // of the estimate; 0 on the reference's host
  double drift_ppm = 0;  // of the estimate: microseconds that the offset grows a second
  ClockMethod method = ClockMethod::none;
  // The offset that `Clocks::common` adds: `offset`; else, of ranks that only end differences among
  // themselves relate, one that keeps those; else 0 where it can be, else the middle of the bounds.
  Ns assumed = 0;
};

// What the true difference of two ranks' common times can be away from the estimated one.
struct ClockError {
  static constexpr Ns kUnbounded = std::numeric_limits<Ns>::max() / 4;
  Ns lower = 0;  // <= 0
  Ns upper = 0;  // >= 0
};

// Estimates form trees over domains: an estimate of one difference for each domain but the root.
struct ClockLink {
  std::uint32_t parent = 0;  // domain; of a root: itself
  std::uint32_t depth = 0;   // links to the root
  Ns spread = 0;             // of the estimated difference to the parent
};

class Clocks {
 public:
  // Longest way through the trees that still counts as an estimate.
  static constexpr std::uint32_t kLongestWay = 64;

  bool known = false;  // false: there is nothing that relates any two clocks
  // Row: the lowest rank that is in any matched operation; without any, that shares its clock.
  std::size_t reference = 0;
  Ns origin = 0;                      // common time: the start of the window that all ranks share
  std::vector<ClockLine> lines;       // by row
  std::vector<std::uint32_t> domain;  // by row: rows with equal numbers share a clock for certain
  std::vector<Ns> base;               // by row: the recording's clock_base
  std::string infeasible;             // what contradicts causality, in words; empty: nothing
  // By row of Matching::ops: matched by likeness, and contradict causality. Not to be used as
  // evidence. Empty: none.
  std::vector<bool> doubted;
  Ns skew = 0;  // by how much ranks of one domain were seen to contradict each other: little

  // A row's own time as common time, by the estimate.
  Ns common(std::size_t row, Ns own) const;
  // Its inverse, within the rounding of a drift.
  Ns own(std::size_t row, Ns common) const;
  // Bounds on (true time of `a` - true time of `b`) minus (estimated), for instants near `at`
  // (common time): those that lie D away from it can be off by another 200 parts per million of D.
  // {-skew, skew} within one domain; +-kUnbounded where nothing bounds them.
  ClockError error(std::size_t a, std::size_t b, Ns at) const;
  // How far estimates of the difference scatter; 0 within one domain; nothing without an estimate.
  std::optional<Ns> spread(std::size_t a, std::size_t b) const;

  // Bounds by time: the window from `origin` is cut into bins of equal length, and for each there
  // is a matrix over domains: entry [x * domains + y] is the largest possible
  // (offset of x - offset of y), as added to own times, anywhere in the bin; kUnbounded where
  // nothing bounds it. Empty: nothing is bounded.
  std::size_t domains = 0;  // those with numbers below it have a row in the matrices
  Ns bin_length = 1;
  std::vector<std::vector<Ns>> most;

  // By domain below `domains`.
  std::vector<ClockLink> links;
};

}  // namespace commlens
