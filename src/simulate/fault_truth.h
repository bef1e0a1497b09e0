// What each fault of a simulated job costs, and whether anybody could know it from the traces: what
// a perfect analysis must say about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulate/faults.h"

namespace commlens::simulate {

struct FaultTruth {
  std::string_view kind{};   // fault_name, or of the recording: "hosts_unknown", "seq_none", ...
  std::string_view cause{};  // in the words of `analyze`; empty: a fault of the recording only
  Fault fault{};             // with the steps that it is in, all of them; of the recording: blank
  // Against the same job with all faults but this one.
  Ns extra = 0;                // how much longer the job takes
  double share_of_step = 0;    // that in each of its steps, as a part of a step of this job
  Ns added_waits = 0;          // over all ranks
  Ns added_exposed_waits = 0;  // outside the waiters' own compute
  double exposed_share = 0;    // that, as a part of all ranks' time in its steps
  // Why nobody could tell the culprit from these traces; empty: it can be told.
  std::string hidden_by{};
};

// `job` is the scenario's, with all faults. Runs it again without each fault of the job itself.
std::vector<FaultTruth> find_fault_truth(const Scenario& scenario, const SimulatedJob& job);

}  // namespace commlens::simulate
