// The critical path: the chain of activities, over all ranks, that the job's time consists of.
//
// replay/critical_path fills this (docs/critical-path.md). Times are nanoseconds of the common
// clock; "row" is a row of Job::ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/call_context.h"
#include "model/interval_set.h"
#include "model/work.h"

namespace commlens {

enum class PathClass : std::uint8_t {
  compute,
  transfer,  // a communication from its last arrival on
  host,      // a CPU thread with its gaps, launch latency, gaps between queued kernels
  memory,
  unexplained,  // nothing is known that it waited for
};
inline constexpr std::size_t kPathClasses = static_cast<std::size_t>(PathClass::unexplained) + 1;
std::string_view path_class_name(PathClass kind);

struct PathSegment {
  Interval time;
  std::uint32_t rank = 0;        // row
  std::uint32_t node = kNoNode;  // of that rank's work; kNoNode: on the host, or between activities
  PathClass kind = PathClass::unexplained;
};

struct CriticalPath {
  bool known = false;
  std::string missing;                // what it would take, where it is not known
  Interval window;                    // first GPU start to last GPU end of any rank
  std::vector<PathSegment> segments;  // in time; they tile the window
  std::array<Ns, kPathClasses> sums{};
  std::vector<Ns> by_rank;  // by row
  std::int64_t rank_changes = 0;
  std::int64_t inferred_edges = 0;    // of the whole graph: dependencies that only times tell
  std::int64_t inferred_on_path = 0;  // of these, those that the path went along
  std::int64_t contradictions = 0;    // dependencies that cannot be, and were left out
  // Whether the ranks' clocks and the dependencies are good enough for its figures to be relied on,
  // and if not, why.
  bool sure = true;
  std::string doubt;
  // Of segments that stand for many: where their activity was launched; of one on the host
  // (kNoNode): what its thread was in. Empty where nobody looked. Rows of `segments`.
  std::map<std::size_t, CallContext> contexts;
};

}  // namespace commlens
