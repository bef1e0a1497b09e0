// What is wrong with a simulated job: faults of its machines, as plain changes of the plan, and of
// its recording, as marks on what happened.
//
//   plan   slow        a rank's compute kernels take longer
//          late        a rank's host thread loses time
//          slow_link   what passes between two ranks takes longer
//          unequal     a rank's experts get more tokens, the others fewer
//   job    clock       a host's clock differs from the true one
//          lose, window_shift, missing    parts of a rank that have no record
//
// Faults do not touch random numbers: a job with a fault is the same job without it but for the
// fault.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulate/prng.h"
#include "simulate/record_options.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {

// In the order in which they are applied: more tokens change a transfer before a link slows it
// down, and events are lost of what the window holds.
enum class FaultKind : std::uint8_t {
  unequal,
  slow,
  late,
  slow_link,
  clock,
  window_shift,
  lose,
  missing
};

enum class LosePlace : std::uint8_t { random, start, end };

struct Fault {
  FaultKind kind = FaultKind::slow;
  int rank = -1;                        // of a link: its first end
  int peer = -1;                        // of a link: its other end
  int host = -1;                        // of a clock
  std::int64_t factor_ppm = kMillion;   // slow, slow_link: of time; unequal: of popularity
  Ns amount_ns = 0;                     // late: a step; clock: offset; window_shift: after 0
  std::int64_t drift_ppb = 0;           // clock
  std::int64_t count = 0;               // lose: GPU events, or communication kernels at an edge
  LosePlace place = LosePlace::random;  // lose
  std::vector<std::int64_t> steps{};    // numbers of those that a plan's fault is in; empty: all
};

// "slow", "slow_link", ...
std::string_view fault_name(FaultKind kind);
// Faults of the job itself have one, in the words of `analyze`; those of the recording have none.
std::string_view fault_cause(FaultKind kind);

struct Faults {
  std::vector<Fault> list{};
  // Members of a communication leave up to this much after the first, as on real machines.
  Ns end_jitter_ns = 0;

  bool none() const { return list.empty() && end_jitter_ns == 0; }
};

// Throws Error(usage) with one sentence where a job cannot have these faults. `spec` must be valid.
void validate(const JobSpec& spec, const Faults& faults);

void apply_to_plan(Plan& plan, const Faults& faults);
void apply_to_job(SimulatedJob& job, const Faults& faults);

// A job, what is wrong with it, and how it was recorded.
struct Scenario {
  JobSpec spec{};
  Faults faults{};
  RecordOptions record{};
};

// Validates, plans, runs, with all faults.
SimulatedJob simulate(const JobSpec& spec, const Faults& faults);

}  // namespace commlens::simulate
