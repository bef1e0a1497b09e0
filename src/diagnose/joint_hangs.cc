#include "diagnose/joint_hangs.h"

#include <algorithm>

#include "model/witness_log.h"

namespace commlens {

std::int64_t latest_time(const JointCalls& job) {
  std::int64_t latest = 0;
  for (const auto& [rank, time] : job.latest) latest = std::max(latest, time);
  return latest;
}

bool timed_out(const SeenCall& seen, std::int64_t latest) {
  const WitnessCall& call = *seen.call;
  if (call.gave_up) return true;
  constexpr std::int64_t kMostMilliseconds = std::int64_t{1} << 42U;
  return call.timeout_ms > 0 && call.timeout_ms < kMostMilliseconds && call.created_ns > 0 &&
         latest - call.created_ns >= call.timeout_ms * 1'000'000;
}

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

void find_hang_signs(JointCalls& job, bool logs_say) {
  for (const auto& [rank, witness] : job.witnesses) {
    std::int64_t& latest = job.latest[rank];
    for (const WitnessCall& call : witness->calls) latest = std::max(latest, call.created_ns);
  }
  const std::int64_t latest = latest_time(job);
  job.timed_out =
      logs_say || std::any_of(job.pending.begin(), job.pending.end(), [latest](const auto& row) {
        return std::any_of(row.second.begin(), row.second.end(), [latest](const PendingCall& call) {
          return timed_out(call.seen, latest);
        });
      });
}

bool shows_hang(const JointCalls& job, const JointGroup& group, std::int64_t number) {
  if (job.timed_out) return true;
  // Each rank by its own file alone: the next one may have been written a minute later. Clocks of
  // hosts, and calls that wait on a device behind others, differ by less.
  constexpr std::int64_t kMoment = 30'000'000'000;
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
