#include "diagnose/joint_hangs.h"

#include <algorithm>

#include "diagnose/joint_traces.h"
#include "model/witness_log.h"
#include "model/witness_trace.h"

namespace commlens {

bool timed_out(const JointCalls& job, const SeenCall& seen) {
  const WitnessCall& call = *seen.call;
  if (call.gave_up) return true;
  const auto latest = job.latest.find(call.rank);
  constexpr std::int64_t kMostMilliseconds = std::int64_t{1} << 42U;
  if (latest == job.latest.end() || call.timeout_ms <= 0 || call.timeout_ms >= kMostMilliseconds ||
      call.created_ns <= 0)
    return false;
  // Posted ahead of time: nothing stood still.
  if (call.op == Op::recv && call.record < job.went_on.at(call.rank)) return false;
  return latest->second - call.created_ns >= call.timeout_ms * 1'000'000;
}

namespace {

// Clocks of hosts, and calls that wait on a device behind others, differ by less.
constexpr std::int64_t kMoment = 30'000'000'000;

bool logs_time_out(const std::vector<Witness>& witnesses) {
  return std::any_of(witnesses.begin(), witnesses.end(), [](const Witness& witness) {
    if (!witness.log) return false;
    const auto& lines = witness.log->watchdog;
    return std::any_of(lines.begin(), lines.end(), [](const LogWatchdog& line) {
      return line.kind == LogWatchdog::Kind::timed_out ||
             line.kind == LogWatchdog::Kind::position ||
             line.kind == LogWatchdog::Kind::dump_signal;
    });
  });
}

bool traces_wait(const std::vector<Witness>& witnesses) {
  if (std::none_of(witnesses.begin(), witnesses.end(),
                   [](const Witness& witness) { return witness.trace != nullptr; }))
    return false;
  const std::vector<TraceWait> waits = find_trace_waits(witnesses);
  return std::any_of(waits.begin(), waits.end(),
                     [](const TraceWait& wait) { return wait.open >= kMoment; });
}

}  // namespace

bool others_show_hang(const std::vector<Witness>& witnesses) {
  return logs_time_out(witnesses) || traces_wait(witnesses);
}

void find_hang_signs(JointCalls& job, bool others_say) {
  for (const auto& [rank, witness] : job.witnesses) {
    std::int64_t& latest = job.latest[rank];
    std::int64_t& went_on = job.went_on.emplace(rank, -1).first->second;
    for (const WitnessCall& call : witness->calls) {
      latest = std::max(latest, call.created_ns);
      if (call.state == CallState::completed) went_on = std::max(went_on, call.record);
    }
  }
  job.timed_out =
      others_say || std::any_of(job.pending.begin(), job.pending.end(), [&job](const auto& row) {
        return std::any_of(row.second.begin(), row.second.end(),
                           [&job](const PendingCall& call) { return timed_out(job, call.seen); });
      });
}

bool shows_hang(const JointCalls& job, const JointGroup& group, std::int64_t number) {
  if (job.timed_out) return true;
  // Each rank by its own file alone: the next one may have been written a minute later.
  std::int64_t last_call = 0;
  for (const auto& [rank, row] : group.ranks) {
    const auto found = row.calls.find(number);
    if (found == row.calls.end()) continue;
    for (const SeenCall& seen : found->second)
      last_call = std::max(last_call, seen.call->created_ns);
  }
  if (last_call <= 0) return false;
  return std::any_of(group.ranks.begin(), group.ranks.end(), [&](const auto& entry) {
    const auto latest = job.latest.find(entry.first);
    return entry.second.at(number) == Standing::waiting && latest != job.latest.end() &&
           latest->second - last_call >= kMoment;
  });
}

}  // namespace commlens
