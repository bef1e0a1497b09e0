// What happened: the result of a simulation, in memory, in the job's true time.
//
// Instants are nanoseconds since the job's start, on one clock for all ranks. A rank's own clock
// (`Clock`) is applied only where a trace is written. Indices are into the vectors of the same rank
// unless said otherwise.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "simulate/plan.h"

namespace commlens::simulate {

enum class GpuKind : std::uint8_t { compute, communication, memcpy, memset };

// What an instant waited for last: the end of a runtime call or of a GPU activity of the same rank.
struct Bound {
  enum class By : std::uint8_t { none, call, activity } by = By::none;
  int index = -1;
};

// A kernel, copy or set.
struct GpuEvent {
  GpuKind kind = GpuKind::compute;
  int stream = 0;
  int call = -1;        // the runtime call that launched it
  int step = -1;        // index of the step whose host range holds that call; -1: outside
  int name = -1;        // of a copy, into SimulatedJob::names; else -1
  int collective = -1;  // into SimulatedJob::collectives; -1: not communication
  int member = -1;
  const KernelType* kernel = nullptr;  // of kernels
  std::int64_t bytes = 0;              // of copies and sets
  Ns start = 0;
  Ns end = 0;
  // Of the start. Where several things allowed it at the same instant: first the activity before it
  // on its stream, then what its stream had waited for, then its launch.
  Bound bound{};
};

enum class CallKind : std::uint8_t {
  launch,
  launch_communication,
  memcpy,
  memset,
  event_record,
  stream_wait,
  stream_sync
};

// A call of the CUDA runtime on the host thread. Its correlation id is its index (plus what the
// writer adds).
struct RuntimeCall {
  CallKind kind = CallKind::launch;
  int stream = 0;
  int range = -1;        // the innermost operator range around it; -1: none
  int record_call = -1;  // of a stream_wait: the event_record call of its event
  int released_by = -1;  // of a stream_sync: the activity whose end let it return; -1: none blocked
  Ns start = 0;
  Ns end = 0;
};

// An operator or annotation on the host thread.
struct HostRange {
  RangeKind kind = RangeKind::cpu_op;
  int name = -1;        // into SimulatedJob::names
  int collective = -1;  // of ranges around a communication or its wait
  int member = -1;
  Ns start = 0;
  Ns end = 0;
};

struct Step {
  int number = 0;  // N of ProfilerStep#N
  Ns start = 0;    // on the host
  Ns end = 0;
};

// How a rank's clock differs from the true one.
struct Clock {
  Ns offset_ns = 0;
  std::int64_t drift_ppb = 0;  // nanoseconds a second
  Ns at(Ns instant) const {
    return instant + offset_ns + instant / 1'000'000'000 * drift_ppb +
           instant % 1'000'000'000 * drift_ppb / 1'000'000'000;
  }
};

struct RankTrace {
  Clock clock{};
  std::vector<GpuEvent> gpu{};  // in launch order
  std::vector<RuntimeCall> calls{};
  std::vector<HostRange> ranges{};  // in order of start
  std::vector<Step> steps{};

  // What of it was recorded.
  bool missing = false;                       // nothing: the rank has no trace
  Ns opens = std::numeric_limits<Ns>::min();  // only what begins at this instant or later
  std::vector<bool> lost{};                   // by GPU event: it is not; empty: none is
  bool is_lost(std::size_t index) const { return !lost.empty() && lost[index]; }
};

// When a member was in a communication.
struct Attendance {
  int gpu_event = -1;  // of its rank
  Ns entry = 0;
  Ns exit = 0;
};

struct SimulatedJob {
  JobSpec spec{};
  Layout layout{};
  std::vector<std::string> names{};
  std::vector<Collective> collectives{};
  std::vector<std::vector<Attendance>> attendance{};  // [collective][member]
  std::vector<RankTrace> ranks{};
};

// Executes a plan. Throws Error(internal) if the programs block each other.
SimulatedJob run(Plan plan);

// make_plan and run.
SimulatedJob simulate(const JobSpec& spec);

}  // namespace commlens::simulate
