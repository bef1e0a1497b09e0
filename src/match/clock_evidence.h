// What matched operations say about clocks, one span for each clock that takes part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/job.h"

namespace commlens {

// Rows that share a clock for certain, as numbers. Those below `count` are of rows that are in
// matched operations, by the first such row, and behind these of rows that only share a clock; the
// others have no evidence.
struct ClockDomains {
  std::size_t count = 0;
  std::vector<std::uint32_t> of_row;
  std::vector<std::uint32_t> first_row;  // by domain below `count`
};

// One domain in one operation. Times are the domain's own, since the epoch.
struct ClockSpan {
  static constexpr Ns kNobody = std::numeric_limits<Ns>::min();
  std::uint32_t domain = 0;
  Ns entered = kNobody;   // the last entry of those whom others need; kNobody: none is needed
  Ns left = kNobody;      // the first exit of those who need others; kNobody: none needs anybody
  Ns all_left = kNobody;  // and the last
};

struct ClockOp {
  std::uint32_t op = 0;     // row of Matching::ops
  std::int32_t group = -1;  // row of Matching::groups
  std::uint32_t count = 0;
  std::size_t first = 0;  // ClockEvidence::spans [first, first + count)
  bool firm = false;      // is_firm
  bool inferred = false;  // only because it ends together: estimates where nothing else does
  bool together = false;  // nobody leaves before everybody has entered: ends agree
  bool balanced = false;  // and everybody moves the same, so that ends agree closely
};

struct ClockEvidence {
  std::vector<ClockSpan> spans;
  std::vector<ClockOp> ops;  // in the order of Matching::ops: by group
};

// Absurd times of a damaged file stay where differences of two do not leave 64 bits.
inline constexpr Ns kFarthestTime = Ns{1} << 61U;
inline Ns near_time(Ns time) { return std::clamp(time, -kFarthestTime, kFarthestTime); }

// A row's own time since the epoch.
Ns absolute_time(const Recording& recording, Ns own);

// Matched by an identifier or a counter, not by likeness.
bool is_firm(const MatchedOp& op);

// From operations that are surely matched, agree, and whose semantics are known. `doubted`: by row
// of Matching::ops, those to leave out.
ClockEvidence gather_evidence(const Job& job, const ClockDomains& domains,
                              const std::vector<bool>& doubted);

}  // namespace commlens
