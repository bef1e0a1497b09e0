// The critical path of a simulated job: the one chain of activities that the job's length consists
// of, from the model's own reasons. docs/simulate.md says what the words mean.
//
// Walked backwards from the last end on any GPU to the first start on any: at each instant the path
// is in exactly one activity of one rank, and what it comes from is what that activity really
// waited for last. So its segments tile that window, and nothing of it is waiting.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/json_out.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {

enum class PathClass : std::uint8_t { compute, transfer, host, memory };
inline constexpr std::size_t kPathClasses = 4;

// What kind of host time.
enum class HostPart : std::uint8_t {
  none,            // it is not
  thread,          // the host thread works, or is between two calls
  launch_latency,  // from the end of a call to the start on the GPU
  kernel_gap,      // between activities that are queued behind each other on a stream
  event_latency,   // from the end of an activity to what waits for it on another stream or on the
                   // host
};

struct PathSegment {
  PathClass kind = PathClass::host;
  HostPart part = HostPart::none;
  int rank = 0;
  int activity = -1;  // of the rank; what runs, or after latencies and gaps starts; -1: on the host
  Ns start = 0;
  Ns end = 0;  // > start
};

struct PathTruth {
  using Sums = std::array<Ns, kPathClasses>;  // by PathClass

  Ns start = 0;  // of the window
  Ns end = 0;
  std::vector<PathSegment> segments{};  // in order of time
  Sums sums{};
  std::vector<Sums> by_rank{};               // [rank]
  std::map<std::pair<Op, int>, Ns> by_op{};  // transfer by operation and group
  int rank_changes = 0;

  Ns window() const { return end - start; }
  Ns of(PathClass kind) const { return sums[static_cast<std::size_t>(kind)]; }
};

PathTruth find_critical_path(const SimulatedJob& job);

// As member "critical_path" of an object of truth.json.
void write_critical_path(JsonOut& json, const Layout& layout, const PathTruth& path);

}  // namespace commlens::simulate
