// Executes a plan: finds the instant of everything that the programs ask for.
//
// The problem. A kernel starts when its launch has reached the GPU, the work before it on its
// stream is done and the events that its stream waits for have happened; a communication moves data
// once every member has started; a host goes on at once after a launch, but not after a
// synchronisation. So every instant is the latest of some earlier instants plus a length, across
// ranks.
//
// The method. Hosts and streams are actors, each with a list to work through. An actor runs until
// it needs an instant that is not known yet, and leaves a note there; whoever finds the instant
// wakes it. As each instant is a maximum over its own dependencies, the order in which actors run
// cannot change any of them: no clock, no queue sorted by time. The cost is linear in the
// instructions. Which of its dependencies an instant waited for last is kept with it: that is the
// critical path's thread (path_truth.cc).
//
//   rank 0 stream 20: all-reduce, entry 40 -> waits for member 1
//   rank 1 stream 20: all-reduce, entry 55 -> last: exits = 55 + transfer, wakes both streams
//
// When it would be wrong: where a length depends on what else runs at that time (two transfers
// sharing a link, compute slowed down by communication). Such effects are not simulated; lengths
// are fixed in the plan.
#include "simulate/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace commlens::simulate {
namespace engine {

void Engine::wake(int rank, int actor) {
  if (actor != kHost) {
    Stream& stream = state(rank).streams[static_cast<std::size_t>(actor)];
    stream.blocked = false;
    if (std::exchange(stream.queued, true)) return;
  }
  runnable_.push_back({rank, actor});
}

void Engine::enqueue(int rank, int stream_id, Task task) {
  const int index = stream_index(state(rank), stream_id);
  Stream& stream = state(rank).streams[static_cast<std::size_t>(index)];
  stream.tasks.push_back(task);
  if (!stream.blocked) wake(rank, index);
}

// --- Events ---

Event& Engine::event_of(Rank& rank, int event) {
  const auto index = static_cast<std::size_t>(event);
  if (index >= rank.events.size()) rank.events.resize(index + 1);
  return rank.events[index];
}

void Engine::resolve(int rank, int event, const Instant& instant) {
  Event& resolved = event_of(state(rank), event);
  resolved.known = true;
  resolved.instant = instant;
  for (const int actor : resolved.waiting) wake(rank, actor);
  resolved.waiting.clear();
}

bool Engine::known_or_wait(int rank, int event, int actor) {
  Event& wanted = event_of(state(rank), event);
  if (!wanted.known) wanted.waiting.push_back(actor);
  return wanted.known;
}

// --- Streams ---

int Engine::stream_index(Rank& rank, int id) {
  const auto found = std::ranges::find(rank.streams, id, &Stream::id);
  if (found != rank.streams.end()) return static_cast<int>(found - rank.streams.begin());
  rank.streams.push_back({.id = id});
  return static_cast<int>(rank.streams.size()) - 1;
}

Instant Engine::start_of(const Stream& stream, const Task& task) const {
  return latest({stream.busy_until.after(plan_.spec.kernel_gap_ns), stream.wait_until, task.ready});
}

// The last member's entry is when the data moves.
void Engine::complete(int collective) {
  const Collective& whole = job_.collectives[static_cast<std::size_t>(collective)];
  std::vector<Attendance>& attendance = job_.attendance[static_cast<std::size_t>(collective)];
  const Ns together = std::ranges::max_element(attendance, {}, &Attendance::entry)->entry;
  for (std::size_t i = 0; i < attendance.size(); ++i) {
    const int rank = whole.members[i].rank;
    GpuEvent& activity = trace(rank).gpu[static_cast<std::size_t>(attendance[i].gpu_event)];
    attendance[i].exit = together + whole.transfer + whole.members[i].late_exit;
    activity.end = attendance[i].exit;
    wake(rank, stream_index(state(rank), activity.stream));
  }
}

// False: others are missing, and the stream comes back to this task when the communication is
// complete.
bool Engine::attend(int rank, int index, GpuEvent& activity, const Instant& entry) {
  Stream& stream = state(rank).streams[static_cast<std::size_t>(index)];
  std::size_t& missing = missing_[static_cast<std::size_t>(activity.collective)];
  if (stream.entered) return missing == 0;
  stream.entered = true;
  const auto collective = static_cast<std::size_t>(activity.collective);
  job_.attendance[collective][static_cast<std::size_t>(activity.member)] = {
      .gpu_event = stream.tasks[stream.next].gpu_event, .entry = entry.at, .exit = entry.at};
  activity.start = activity.end = entry.at;
  activity.bound = entry.bound;
  if (job_.collectives[collective].apart) return true;
  if (--missing > 0) return false;
  complete(activity.collective);
  return true;
}

// False: the stream is blocked, and comes back to the same task.
bool Engine::perform(int rank, int index, const Task& task) {
  Stream& stream = state(rank).streams[static_cast<std::size_t>(index)];
  if (task.kind == Task::Kind::wait) {
    if (!known_or_wait(rank, task.event, index)) return false;
    const Instant done = event_of(state(rank), task.event).instant;
    stream.wait_until = latest({stream.wait_until, done.after(plan_.spec.event_latency_ns)});
    return true;
  }
  if (task.kind == Task::Kind::record) {
    resolve(rank, task.event, latest({stream.busy_until, stream.wait_until, task.ready}));
    return true;
  }
  GpuEvent& activity = trace(rank).gpu[static_cast<std::size_t>(task.gpu_event)];
  if (activity.collective >= 0) {
    if (!attend(rank, index, activity, start_of(stream, task))) return false;
    stream.entered = false;
  } else {
    const Instant start = start_of(stream, task);
    activity.start = start.at;
    activity.bound = start.bound;
    activity.end = activity.start + task.length;
  }
  stream.busy_until = {activity.end, {Bound::By::activity, task.gpu_event}};
  return true;
}

void Engine::run_stream(int rank, int index) {
  Stream& stream = state(rank).streams[static_cast<std::size_t>(index)];
  stream.queued = false;
  while (stream.next < stream.tasks.size()) {
    if (!perform(rank, index, stream.tasks[stream.next])) {
      stream.blocked = true;
      return;
    }
    ++stream.next;
  }
}

void Engine::check_finished() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const bool host_done = ranks_[rank].next == plan_.programs[rank].size();
    const bool streams_done = std::ranges::all_of(ranks_[rank].streams, [](const Stream& stream) {
      return stream.next == stream.tasks.size();
    });
    if (host_done && streams_done) continue;
    throw Error(ErrorKind::internal, "simulate: rank " + std::to_string(rank) +
                                         " waits for something that never happens");
  }
}

void Engine::run() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    runnable_.push_back({static_cast<int>(rank), kHost});
  while (!runnable_.empty()) {
    const Actor actor = runnable_.front();
    runnable_.pop_front();
    if (actor.index == kHost) {
      run_host(actor.rank);
    } else {
      run_stream(actor.rank, actor.index);
    }
  }
  check_finished();
}

}  // namespace engine

SimulatedJob run(Plan plan) {
  SimulatedJob job;
  job.collectives = std::move(plan.collectives);
  job.attendance.resize(job.collectives.size());
  job.ranks.resize(plan.programs.size());
  engine::Engine(plan, job).run();
  job.spec = plan.spec;
  job.layout = std::move(plan.layout);
  job.names = std::move(plan.names);
  return job;
}

SimulatedJob simulate(const JobSpec& spec) { return run(make_plan(spec)); }

}  // namespace commlens::simulate
