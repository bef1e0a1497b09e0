// What a perfect analysis of a simulated job must find, computed from the model's own events.
//
// The definitions are those of the analyses (docs/numbers.md), the code is not: one sweep over all
// ends with counters, sharing nothing with the interval algebra that it is there to check.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/sink.h"
#include "simulate/faults.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {

// A window, cut into its five parts; they sum to `window`.
struct Buckets {
  Ns window = 0;
  Ns compute_only = 0;
  Ns hidden_comm = 0;
  Ns exposed_comm = 0;
  Ns memory_only = 0;
  Ns idle = 0;
};

struct StepTruth {
  int number = 0;
  Ns start = 0;  // on the GPU
  Ns end = 0;
  Buckets buckets{};
};

struct RankTruth {
  Ns start = 0;  // first GPU start
  Ns end = 0;    // last GPU end
  Buckets buckets{};
  std::int64_t gpu_events = 0;
  std::int64_t comm_events = 0;
  Ns comm_busy = 0;
  Ns whole_event_overlap = 0;
  std::vector<StepTruth> steps{};
};

// Waiting, and who is to blame. `[rank]`.
struct WaitTruth {
  Ns total = 0;
  std::vector<Ns> waited{};
  std::vector<Ns> exposed_waited{};
  std::vector<Ns> caused{};
  std::map<std::pair<int, int>, Ns> blame{};  // (waiter, culprit)
};

// Sums over all ranks.
struct OpTruth {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  Ns busy = 0;
  Ns hidden = 0;
  Ns waited = 0;
  Ns transfer = 0;
};

struct Truth {
  std::vector<RankTruth> ranks{};
  WaitTruth waits{};               // a sender waits for nobody, as an analysis must assume
  WaitTruth waits_with_senders{};  // as the model has it: a sender waits for its receiver
  std::map<Op, OpTruth> ops{};     // their waiting is the model's, with senders
  std::vector<std::vector<Ns>> member_waits{};  // [collective][member], with senders
};

Truth find_truth(const SimulatedJob& job);

// The truth as JSON, times in nanoseconds of the job's true time; docs/simulate.md describes it.
// `job` is the scenario's, with all faults.
void write_truth(const Scenario& scenario, const SimulatedJob& job, Sink& sink);

}  // namespace commlens::simulate
