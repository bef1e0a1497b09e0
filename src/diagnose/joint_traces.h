// All timelines of a job together: which collective some ranks had called and not left when their
// recordings ended, and who had not called it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "model/operation.h"
#include "model/witness.h"

namespace commlens {

struct TraceWait {
  std::string group;
  std::string description;
  std::vector<int> members;  // global ranks, sorted
  std::int64_t number = 0;
  Op op = Op::unknown;
  Ns since = 0;                         // when the last of those who wait called it
  Ns open = 0;                          // how long their recordings go on after that, at the least
  std::vector<std::int64_t> waiting;    // called it; its kernel did not end
  std::vector<std::int64_t> missing;    // recorded all that time, did not call it, wait nowhere
  std::vector<std::int64_t> elsewhere;  // did not call it, and wait in another operation
  std::vector<std::int64_t> unseen;     // of whom nothing can be said: no trace, a cut one
  std::vector<std::string> evidence;
};

// How long an operation must stand open until it counts as one in which ranks wait. The last
// kernels of any recording are missing: those that ran when it ended.
inline constexpr Ns kLongOpen = 10'000'000'000;

std::vector<TraceWait> find_trace_waits(const std::vector<Witness>& witnesses);

}  // namespace commlens
