// What a job would have been, had one thing been otherwise: the truth that a what-if must predict.
// The changed job is planned from the same seed, so that all durations but those that the change is
// about stay what they were, and run again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/faults.h"

namespace commlens::simulate {

enum class ChangeKind : std::uint8_t {
  comm_speed,  // communications are `speed_ppm` times as fast from the last start on, latency too
  remove,      // communications take no time and nobody waits in them; their launches stay
  like_peers,  // the kernels of `rank` take no longer than its peers': no fault slows them down
  hosts_on_time,  // no host loses time: no fault stops them
  no_host,        // nothing ever waits for a host thread, nor for its input
  bucket,         // DDP collects `bytes` of gradients before it sends them
};

struct Change {
  ChangeKind kind = ChangeKind::comm_speed;
  // Of comm_speed and remove: which communications.
  Op op = Op::unknown;         // any; send, recv and send_recv are all pairs
  std::string group{};         // description; empty: any
  bool between_hosts = false;  // only those whose ranks are on several hosts
  std::int64_t speed_ppm = kMillion;
  int rank = -1;           // of like_peers
  std::int64_t bytes = 0;  // of bucket
};

// The scenario's job with all of the changes. Throws Error(usage) for a change that cannot be.
SimulatedJob simulate_changed(const Scenario& scenario, const std::vector<Change>& changes);

// How long a step takes, seen in two ways.
struct StepTime {
  int steps = 0;
  // From the first GPU start to the last GPU end of the job. Divided by its steps it is the step
  // time that a what-if answers: all that was recorded counts, and nothing needs to be known of
  // where steps begin. It has one gap between steps too few, and so is a little less than the pace.
  Ns window = 0;
  Ns step() const { return steps > 0 ? window / steps : window; }
  // The mean distance between the starts of neighbouring steps on the GPU (the first start of what
  // was launched in them) of the slowest rank: what a job that goes on takes. It leaves out the
  // last step. Of a single step: the window.
  Ns pace = 0;
  std::vector<Ns> pace_of_rank{};    // [rank]; 0 where nothing ran
  std::vector<Ns> window_of_rank{};  // its first start to its last end
};

StepTime find_step_time(const SimulatedJob& job);

}  // namespace commlens::simulate
