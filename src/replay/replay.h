// What the run would have been like under a changed assumption.
#pragma once

#include <utility>
#include <vector>

#include "replay/constraints.h"

namespace commlens {

// A call that a host thread does not make: what the thread does behind it in the same stretch comes
// earlier by what this and the spared calls before it take.
struct SparedCall {
  std::uint32_t stretch = 0;  // of the rank
  Ns at = 0;
  Ns until = 0;  // what those of the stretch take, up to and with this one
};

// What is changed. Empty vectors change nothing.
struct Assumption {
  static constexpr double kRemoved = -1;  // nobody waits, nothing is moved

  // By rank (row), then by communication (parallel to Work::comm): how many times as long its
  // transfer takes.
  std::vector<std::vector<double>> transfer;
  std::vector<double> compute;        // by rank: how many times as long its kernels take
  std::vector<bool> host_in_time;     // by rank: its launches hold nothing up
  std::vector<bool> host_runs_ahead;  // by rank: its host waits for the GPU nowhere
  std::vector<std::pair<ItemId, double>> kernels;  // by node: as `compute`, of single kernels
  std::vector<ItemId> launched_in_time;            // nodes, sorted: their launches hold nothing up
  std::vector<ItemId> on_own_stream;  // nodes, sorted: on another stream than they were, in order
  std::vector<std::vector<SparedCall>> spared;  // by rank; by stretch, then instant
};

// When everything would have begun and ended, in common time.
struct Outcome {
  std::vector<Ns> start;  // by node
  std::vector<Ns> end;    // by node; then by stretch its begin: what others depend on
  Interval window;        // first start to last end
};

// One pass in the order of the graph: no instant comes before what its dependencies, each with its
// latency and what it was late by then (its residual, which stays), allow.
Outcome replay(const Constraints& constraints, const Assumption& assumption);
// The same in the memory of an outcome that nobody needs any more.
void replay(const Constraints& constraints, const Assumption& assumption, Outcome& outcome);
// The same for one replay only.
Outcome replay(const Graph& graph, const Assumption& assumption);

}  // namespace commlens
