// What a timeline tells as a witness of a hang: how far its rank got in each group until the
// recording ended. Made by match/trace_witness, read by diagnose/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "model/operation.h"

namespace commlens {

// Operations of one group, by the numbers that the framework gives them. -1: none seen.
struct TraceGroup {
  std::string name;          // process-local
  std::string description;   // empty: none
  std::vector<int> members;  // global ranks, sorted; empty: unknown
  std::int64_t size = 0;     // 0: unknown
  std::int64_t called = -1;  // the last one that the host called
  std::int64_t ended = -1;   // the last one whose kernel ended
  Ns called_at = 0;          // since the epoch where the clock is known
  Ns ended_at = 0;
  Op op = Op::unknown;  // of the last one called
};

struct TraceFacts {
  std::int64_t rank = -1;    // global; -1: unknown
  bool cut = false;          // the file ends early: what is absent may have stood in the lost part
  std::string how_cut;       // in the reader's words
  bool calls_known = false;  // the host's calls are recorded
  bool clock_known = false;  // times are since the epoch
  Ns first = 0;              // of what was recorded
  Ns last = 0;
  std::vector<TraceGroup> groups;
};

}  // namespace commlens
