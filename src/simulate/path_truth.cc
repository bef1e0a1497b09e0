// Example (two ranks, one all-reduce; rank 1 computes longer):
//
//   rank 0   host ---> [compute 0..10)[all-reduce waits ... 14..16)[compute 16..20)
//   rank 1   host ---> [compute 0......14)[all-reduce 14..16)[compute 16..19)
//
// The last end is rank 0's at 20. Its kernel waited for the all-reduce, which waited for its last
// member, rank 1, whose kernel began at 0: compute 14 on rank 1, transfer 2 on rank 0, compute 4 on
// rank 0, one change of rank.
//
// A transfer belongs to the rank that the walk comes from: its members all leave because of it, and
// to stay is not to change ranks. The host thread has no dependencies but its own order and the
// calls that block it; so what a launch comes from is all of the thread's time since the GPU last
// held it up.
#include "simulate/path_truth.h"

#include <algorithm>

namespace commlens::simulate {
namespace {

// An activity of a rank.
struct At {
  int rank = 0;
  int activity = -1;
};

PathClass class_of(GpuKind kind) {
  switch (kind) {
    case GpuKind::compute: return PathClass::compute;
    case GpuKind::communication: return PathClass::transfer;
    default: return PathClass::memory;
  }
}

class Walk {
 public:
  Walk(const SimulatedJob& job, PathTruth& path) : job_(job), path_(path), now_(path.end) {}

  // From the end of an activity back to the window's start.
  void run(At at) {
    while (now_ > path_.start) at = to_cause(over(at));
  }

 private:
  const RankTrace& trace(int rank) const { return job_.ranks[static_cast<std::size_t>(rank)]; }
  const GpuEvent& event(At at) const {
    return trace(at.rank).gpu[static_cast<std::size_t>(at.activity)];
  }

  // What runs from `start` until now; of it the part inside the window.
  void add(PathSegment segment, Ns start) {
    segment.start = std::max(start, path_.start);
    segment.end = now_;
    if (segment.start >= segment.end) return;
    path_.segments.push_back(segment);
    now_ = segment.start;
  }
  void add_host(HostPart part, At at, Ns start) {
    add({.kind = PathClass::host, .part = part, .rank = at.rank, .activity = at.activity}, start);
  }

  At over(At at);
  At last_to_arrive(At at) const;
  At to_cause(At at);
  At over_host(int rank, int call);

  const SimulatedJob& job_;
  PathTruth& path_;
  Ns now_;
};

// Who let the communication begin: this member if it was last, too, else the lowest rank of those
// that were.
At Walk::last_to_arrive(At at) const {
  const GpuEvent& own = event(at);
  const auto collective = static_cast<std::size_t>(own.collective);
  const std::vector<Attendance>& members = job_.attendance[collective];
  const Ns together = std::ranges::max_element(members, {}, &Attendance::entry)->entry;
  if (own.start == together || job_.collectives[collective].apart) return at;
  At last{.rank = static_cast<int>(job_.ranks.size())};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int rank = job_.collectives[collective].members[i].rank;
    if (members[i].entry == together && rank < last.rank) last = {rank, members[i].gpu_event};
  }
  return last;
}

// From the end of an activity to the start that it came from: its own, or that of the member that
// its communication waited for.
At Walk::over(At at) {
  const GpuEvent& own = event(at);
  const At from = own.collective >= 0 ? last_to_arrive(at) : at;
  add({.kind = class_of(own.kind), .rank = at.rank, .activity = at.activity}, event(from).start);
  return from;
}

// From the start of an activity to the end of what it waited for.
At Walk::to_cause(At at) {
  const Bound bound = event(at).bound;
  if (bound.by == Bound::By::call) {
    add_host(HostPart::launch_latency, at,
             trace(at.rank).calls[static_cast<std::size_t>(bound.index)].end);
    return over_host(at.rank, bound.index);
  }
  const At cause{at.rank, bound.index};
  const bool queued = event(cause).stream == event(at).stream;
  add_host(queued ? HostPart::kernel_gap : HostPart::event_latency, at, event(cause).end);
  return cause;
}

// From the end of a call to the end of the activity that last held the thread up; without one the
// thread has worked since the window's start.
At Walk::over_host(int rank, int call) {
  const std::vector<RuntimeCall>& calls = trace(rank).calls;
  auto last = static_cast<std::size_t>(call);
  while (last > 0 && calls[last].released_by < 0) --last;
  const int held_by = calls[last].released_by;
  add_host(HostPart::thread, {rank, -1}, held_by < 0 ? path_.start : calls[last].end);
  if (held_by >= 0) add_host(HostPart::event_latency, {rank, -1}, event({rank, held_by}).end);
  return {rank, held_by};
}

// Of several that end last the lowest rank's, and of that the one launched last.
At last_of(const SimulatedJob& job) {
  At last;
  Ns end = 0;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const std::vector<GpuEvent>& gpu = job.ranks[rank].gpu;
    for (std::size_t i = 0; i < gpu.size(); ++i) {
      const bool same_rank = last.rank == static_cast<int>(rank);
      if (last.activity >= 0 && (gpu[i].end < end || (gpu[i].end == end && !same_rank))) continue;
      last = {static_cast<int>(rank), static_cast<int>(i)};
      end = gpu[i].end;
    }
  }
  return last;
}

Ns first_start(const SimulatedJob& job) {
  Ns first = std::numeric_limits<Ns>::max();
  for (const RankTrace& trace : job.ranks) {
    for (const GpuEvent& event : trace.gpu) first = std::min(first, event.start);
  }
  return first;
}

void add_up(const SimulatedJob& job, PathTruth& path) {
  path.by_rank.resize(job.ranks.size());
  int rank = path.segments.empty() ? -1 : path.segments.front().rank;
  for (const PathSegment& segment : path.segments) {
    const Ns length = segment.end - segment.start;
    const auto kind = static_cast<std::size_t>(segment.kind);
    path.sums[kind] += length;
    path.by_rank[static_cast<std::size_t>(segment.rank)][kind] += length;
    if (segment.rank != rank) ++path.rank_changes;
    rank = segment.rank;
    if (segment.kind != PathClass::transfer) continue;
    const GpuEvent& event =
        job.ranks[static_cast<std::size_t>(rank)].gpu[static_cast<std::size_t>(segment.activity)];
    const Collective& collective = job.collectives[static_cast<std::size_t>(event.collective)];
    const Op op = collective.members[static_cast<std::size_t>(event.member)].op;
    path.by_op[{op, collective.group}] += length;
  }
}

}  // namespace

PathTruth find_critical_path(const SimulatedJob& job) {
  PathTruth path;
  const At last = last_of(job);
  if (last.activity >= 0) {
    path.start = first_start(job);
    path.end = job.ranks[static_cast<std::size_t>(last.rank)]
                   .gpu[static_cast<std::size_t>(last.activity)]
                   .end;
    Walk(job, path).run(last);
    std::ranges::reverse(path.segments);
  }
  add_up(job, path);
  return path;
}

}  // namespace commlens::simulate
