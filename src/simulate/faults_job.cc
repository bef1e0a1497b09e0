// Faults of the recording: clocks that differ, and what is not there.
#include <algorithm>

#include "simulate/faults.h"

namespace commlens::simulate {
namespace {

constexpr std::uint64_t kLostEvents = 7;  // purpose of the random stream

void set_clock(SimulatedJob& job, const Fault& fault) {
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (job.layout.places[rank].host != fault.host) continue;
    job.ranks[rank].clock = {.offset_ns = fault.amount_ns, .drift_ppb = fault.drift_ppb};
  }
}

// What was recorded so far, by start.
std::vector<std::size_t> recorded(const RankTrace& trace) {
  std::vector<std::size_t> events;
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    if (trace.gpu[i].start >= trace.opens && !trace.is_lost(i)) events.push_back(i);
  }
  std::ranges::stable_sort(events, {}, [&](std::size_t i) { return trace.gpu[i].start; });
  return events;
}

// The buffer of the first N communication kernels never arrived, nor that of all that came before
// them; at the end, mirrored.
void lose_at_edge(RankTrace& trace, std::vector<std::size_t> events, const Fault& fault) {
  if (fault.place == LosePlace::end) std::ranges::reverse(events);
  std::int64_t left = fault.count;
  for (const std::size_t event : events) {
    if (left == 0) return;
    trace.lost[event] = true;
    if (trace.gpu[event].kind == GpuKind::communication) --left;
  }
}

void lose_anywhere(RankTrace& trace, std::vector<std::size_t> events, std::int64_t count,
                   Prng chance) {
  for (; count > 0 && !events.empty(); --count) {
    const auto at =
        static_cast<std::size_t>(chance.below(static_cast<std::int64_t>(events.size())));
    trace.lost[events[at]] = true;
    events[at] = events.back();
    events.pop_back();
  }
}

void lose(SimulatedJob& job, const Fault& fault) {
  RankTrace& trace = job.ranks[static_cast<std::size_t>(fault.rank)];
  std::vector<std::size_t> events = recorded(trace);
  trace.lost.resize(trace.gpu.size());
  if (fault.place != LosePlace::random) return lose_at_edge(trace, std::move(events), fault);
  lose_anywhere(trace, std::move(events), fault.count,
                Prng(job.spec.seed, kLostEvents, static_cast<std::uint64_t>(fault.rank)));
}

void apply(SimulatedJob& job, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::clock: return set_clock(job, fault);
    case FaultKind::lose: return lose(job, fault);
    case FaultKind::window_shift:
      job.ranks[static_cast<std::size_t>(fault.rank)].opens = fault.amount_ns;
      return;
    case FaultKind::missing: job.ranks[static_cast<std::size_t>(fault.rank)].missing = true; return;
    default: return;  // of the plan
  }
}

}  // namespace

void apply_to_job(SimulatedJob& job, const Faults& faults) {
  std::vector<Fault> ordered = faults.list;
  std::ranges::stable_sort(ordered, {}, &Fault::kind);
  for (const Fault& fault : ordered) apply(job, fault);
}

}  // namespace commlens::simulate
