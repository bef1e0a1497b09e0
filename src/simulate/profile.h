// What a profiler kept of one rank of a simulated job: which of its events, at which times of its
// own clock, and what it says of collectives. Writers of files and of recordings both look through
// this, so that they cannot differ.
//
// Ids: a host range's External id is its index + 1; a runtime call's correlation is its index +
// 100000, so that no kernel's External id equals its correlation (readers take that for an old
// writer's habit).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/interval_set.h"
#include "simulate/comms.h"
#include "simulate/record_options.h"

namespace commlens::simulate {

// Base of all recordings' times, and the instant 0 of a job: event times are relative to the
// former.
inline constexpr Ns kBaseNs = 1'759'300'074'000'000'000;
inline constexpr Ns kJobEpochNs = kBaseNs + 3'216'540'987'654'321;

// A step's copy on a stream: from the first start to the last end of what was launched in it.
struct GpuStep {
  int range = -1;  // of the step
  int stream = 0;
  Interval span;  // own time
};

class Profile {
 public:
  Profile(const SimulatedJob& job, int rank, const RecordOptions& options);

  const SimulatedJob& job() const { return job_; }
  const RecordOptions& options() const { return options_; }
  const RankTrace& trace() const { return trace_; }
  int rank() const { return rank_; }
  int device() const;        // as the process counts
  int devices() const;       // that the process sees
  std::string host() const;  // "node-0"; empty where the trace does not say
  std::int64_t process() const { return process_; }

  // What does not tell of its collectives does not tell of waiting for them either.
  bool kept(const HostRange& range) const {
    const bool told = options_.metadata || range.kind != RangeKind::wait_record;
    return told && range.start >= trace_.opens;
  }
  bool kept(const RuntimeCall& call) const {
    return options_.launches && call.start >= trace_.opens;
  }
  bool kept_activity(std::size_t index) const {
    return trace_.gpu[index].start >= trace_.opens && !trace_.is_lost(index);
  }

  // By the rank's own clock, relative to the base.
  Ns at(Ns instant) const { return kJobEpochNs - kBaseNs + trace_.clock.at(instant); }
  Interval own(Ns start, Ns end) const { return {at(start), at(end)}; }
  Interval span() const;  // of the recording

  std::vector<GpuStep> gpu_steps() const;
  std::set<int> streams() const;
  CommsRecord comms(int collective, int member) const;
  const std::string& name(int index) const { return job_.names[static_cast<std::size_t>(index)]; }
  const RuntimeCall& call(int index) const { return trace_.calls[static_cast<std::size_t>(index)]; }

  static std::int64_t external_id(int range) { return range + 1; }
  static std::int64_t correlation(int call) { return 100'000 + call; }

 private:
  void count_operations();

  const SimulatedJob& job_;
  const RankTrace& trace_;
  RecordOptions options_;
  int rank_;
  std::int64_t process_;
  std::map<int, std::int64_t> process_seq_;  // by collective; of SeqKind::process
};

std::string host_name(int host);  // "node-0"

}  // namespace commlens::simulate
