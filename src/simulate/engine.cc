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
// instructions.
//
//   rank 0 stream 20: all-reduce, entry 40 -> waits for member 1
//   rank 1 stream 20: all-reduce, entry 55 -> last: exits = 55 + transfer, wakes both streams
//
// When it would be wrong: where a length depends on what else runs at that time (two transfers
// sharing a link, compute slowed down by communication). Such effects are not simulated; lengths
// are fixed in the plan.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "base/error.h"
#include "simulate/simulated_job.h"

namespace commlens::simulate {
namespace {

constexpr int kHost =
    -1;  // the actor that is a rank's host thread; others are indices of its streams

struct Actor {
  int rank = 0;
  int index = kHost;
};

// What a stream is asked to do.
struct Task {
  enum class Kind : std::uint8_t { activity, record, wait } kind = Kind::activity;
  int gpu_event = -1;  // of an activity
  int event = -1;      // of a record or wait
  Ns ready = 0;        // not before: when the call has reached the GPU
  Ns length = 0;       // of an activity that is not a communication
};

struct Stream {
  int id = 0;
  std::vector<Task> tasks{};
  std::size_t next = 0;
  Ns busy_until = 0;
  Ns wait_until = 0;     // the latest event waited for
  bool used = false;     // something ran: the gap between kernels applies
  bool entered = false;  // in a communication that is not complete
  bool blocked = false;  // waits for an event or for other members: new tasks do not wake it
  bool queued = false;   // is to run already
};

struct Event {
  bool known = false;
  Ns instant = 0;
  int record_call = -1;
  std::vector<int> waiting{};  // actors of the same rank
};

struct Rank {
  std::size_t next = 0;  // instruction
  Ns now = 0;            // of the host thread
  std::vector<Stream> streams{};
  std::vector<Event> events{};
  std::vector<int> open_ranges{};
  int step = -1;  // that is open; -1: none
};

class Engine {
 public:
  explicit Engine(Plan& plan, SimulatedJob& job)
      : plan_(plan), job_(job), missing_(job.collectives.size()) {
    ranks_.resize(plan.programs.size());
    for (std::size_t i = 0; i < job.collectives.size(); ++i) {
      missing_[i] = job.collectives[i].members.size();
      job.attendance[i].resize(missing_[i]);
    }
  }
  void run();

 private:
  void run_host(int rank);
  bool execute(int rank, const Instruction& instruction);
  void begin_range(int rank, const Instruction& instruction);
  void end_range(int rank);
  void launch(int rank, const Instruction& instruction);
  void enqueue_event(int rank, const Instruction& instruction);
  bool synchronise(int rank, const Instruction& instruction);
  int add_call(int rank, const Instruction& instruction, CallKind kind);

  void run_stream(int rank, int index);
  bool perform(int rank, int index, const Task& task);
  bool attend(int rank, int index, GpuEvent& activity, Ns entry);
  void complete(int collective);
  Ns start_of(const Stream& stream, const Task& task) const;

  void enqueue(int rank, int stream_id, Task task);
  void wake(int rank, int actor);
  void resolve(int rank, int event, Ns instant);
  bool known_or_wait(int rank, int event, int actor);
  int stream_index(Rank& rank, int id);
  Event& event_of(Rank& rank, int event);
  void check_finished() const;

  Rank& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  RankTrace& trace(int rank) { return job_.ranks[static_cast<std::size_t>(rank)]; }

  Plan& plan_;
  SimulatedJob& job_;
  std::vector<Rank> ranks_;
  std::vector<std::size_t> missing_;  // members that have not entered, by collective
  std::deque<Actor> runnable_;
};

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

void Engine::resolve(int rank, int event, Ns instant) {
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

// --- Hosts ---

int Engine::add_call(int rank, const Instruction& instruction, CallKind kind) {
  Rank& host = state(rank);
  RankTrace& own = trace(rank);
  const Ns start = host.now;
  host.now += instruction.host;
  int range = -1;
  for (const int open : host.open_ranges) {
    const RangeKind open_kind = own.ranges[static_cast<std::size_t>(open)].kind;
    if (open_kind != RangeKind::annotation && open_kind != RangeKind::step) range = open;
  }
  own.calls.push_back({.kind = kind,
                       .stream = instruction.stream,
                       .range = range,
                       .start = start,
                       .end = host.now});
  return static_cast<int>(own.calls.size()) - 1;
}

void Engine::begin_range(int rank, const Instruction& instruction) {
  Rank& host = state(rank);
  RankTrace& own = trace(rank);
  host.open_ranges.push_back(static_cast<int>(own.ranges.size()));
  own.ranges.push_back({.kind = instruction.range,
                        .name = instruction.name,
                        .collective = instruction.collective,
                        .member = instruction.member,
                        .start = host.now});
  if (instruction.range == RangeKind::step) {
    host.step = static_cast<int>(own.steps.size());
    own.steps.push_back({.number = plan_.spec.first_step + host.step, .start = host.now});
  }
  host.now += instruction.host;
}

void Engine::end_range(int rank) {
  Rank& host = state(rank);
  RankTrace& own = trace(rank);
  HostRange& range = own.ranges[static_cast<std::size_t>(host.open_ranges.back())];
  host.open_ranges.pop_back();
  range.end = host.now;
  if (range.kind != RangeKind::step) return;
  own.steps.back().end = host.now;
  host.step = -1;
}

void Engine::launch(int rank, const Instruction& instruction) {
  const auto [gpu, call] = [&]() -> std::pair<GpuKind, CallKind> {
    switch (instruction.verb) {
      case Verb::memcpy: return {GpuKind::memcpy, CallKind::memcpy};
      case Verb::memset: return {GpuKind::memset, CallKind::memset};
      case Verb::communicate: return {GpuKind::communication, CallKind::launch_communication};
      default: return {GpuKind::compute, CallKind::launch};
    }
  }();
  Rank& host = state(rank);
  std::vector<GpuEvent>& activities = trace(rank).gpu;
  const int call_index = add_call(rank, instruction, call);
  activities.push_back({.kind = gpu,
                        .stream = instruction.stream,
                        .call = call_index,
                        .step = host.step,
                        .name = instruction.name,
                        .collective = instruction.collective,
                        .member = instruction.member,
                        .kernel = instruction.kernel,
                        .bytes = instruction.bytes});
  enqueue(rank, instruction.stream,
          {.kind = Task::Kind::activity,
           .gpu_event = static_cast<int>(activities.size()) - 1,
           .ready = host.now + plan_.spec.launch_latency_ns,
           .length = instruction.gpu});
}

void Engine::enqueue_event(int rank, const Instruction& instruction) {
  Rank& host = state(rank);
  const bool record = instruction.verb == Verb::record_event;
  const int call =
      add_call(rank, instruction, record ? CallKind::event_record : CallKind::stream_wait);
  Event& event = event_of(host, instruction.event);
  if (record) {
    event.record_call = call;
  } else {
    trace(rank).calls.back().record_call = event.record_call;
  }
  enqueue(rank, instruction.stream,
          {.kind = record ? Task::Kind::record : Task::Kind::wait,
           .event = instruction.event,
           .ready = host.now});
}

// Comes here twice: once to ask the stream for an event behind its work, once more when that is
// known.
bool Engine::synchronise(int rank, const Instruction& instruction) {
  Rank& host = state(rank);
  Event& done = event_of(host, instruction.event);
  if (done.record_call < 0) {
    done.record_call = add_call(rank, instruction, CallKind::stream_sync);
    enqueue(rank, instruction.stream,
            {.kind = Task::Kind::record, .event = instruction.event, .ready = host.now});
  }
  if (!known_or_wait(rank, instruction.event, kHost)) return false;
  const Event& known = event_of(host, instruction.event);
  RuntimeCall& call = trace(rank).calls[static_cast<std::size_t>(known.record_call)];
  host.now = call.end = std::max(host.now, known.instant + plan_.spec.event_latency_ns);
  return true;
}

// False: the host is blocked, and comes back to the same instruction.
bool Engine::execute(int rank, const Instruction& instruction) {
  switch (instruction.verb) {
    case Verb::work: state(rank).now += instruction.host; return true;
    case Verb::range_begin: begin_range(rank, instruction); return true;
    case Verb::range_end:
      state(rank).now += instruction.host;
      end_range(rank);
      return true;
    case Verb::kernel:
    case Verb::memcpy:
    case Verb::memset:
    case Verb::communicate: launch(rank, instruction); return true;
    case Verb::record_event:
    case Verb::wait_event: enqueue_event(rank, instruction); return true;
    case Verb::sync_stream: return synchronise(rank, instruction);
  }
  return true;
}

void Engine::run_host(int rank) {
  const std::vector<Instruction>& program = plan_.programs[static_cast<std::size_t>(rank)];
  Rank& host = state(rank);
  while (host.next < program.size() && execute(rank, program[host.next])) ++host.next;
}

// --- Streams ---

int Engine::stream_index(Rank& rank, int id) {
  const auto found = std::ranges::find(rank.streams, id, &Stream::id);
  if (found != rank.streams.end()) return static_cast<int>(found - rank.streams.begin());
  rank.streams.push_back({.id = id});
  return static_cast<int>(rank.streams.size()) - 1;
}

Ns Engine::start_of(const Stream& stream, const Task& task) const {
  const Ns behind = stream.used ? stream.busy_until + plan_.spec.kernel_gap_ns : 0;
  return std::max({task.ready, behind, stream.wait_until});
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
bool Engine::attend(int rank, int index, GpuEvent& activity, Ns entry) {
  Stream& stream = state(rank).streams[static_cast<std::size_t>(index)];
  std::size_t& missing = missing_[static_cast<std::size_t>(activity.collective)];
  if (stream.entered) return missing == 0;
  stream.entered = true;
  job_.attendance[static_cast<std::size_t>(activity.collective)][static_cast<std::size_t>(
      activity.member)] = {.gpu_event = stream.tasks[stream.next].gpu_event, .entry = entry};
  activity.start = entry;
  if (--missing > 0) return false;
  complete(activity.collective);
  return true;
}

// False: the stream is blocked, and comes back to the same task.
bool Engine::perform(int rank, int index, const Task& task) {
  Stream& stream = state(rank).streams[static_cast<std::size_t>(index)];
  if (task.kind == Task::Kind::wait) {
    if (!known_or_wait(rank, task.event, index)) return false;
    const Ns instant = event_of(state(rank), task.event).instant;
    stream.wait_until = std::max(stream.wait_until, instant + plan_.spec.event_latency_ns);
    return true;
  }
  if (task.kind == Task::Kind::record) {
    resolve(rank, task.event, std::max({task.ready, stream.busy_until, stream.wait_until}));
    return true;
  }
  GpuEvent& activity = trace(rank).gpu[static_cast<std::size_t>(task.gpu_event)];
  if (activity.collective >= 0) {
    if (!attend(rank, index, activity, start_of(stream, task))) return false;
    stream.entered = false;
  } else {
    activity.start = start_of(stream, task);
    activity.end = activity.start + task.length;
  }
  stream.busy_until = activity.end;
  stream.used = true;
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

}  // namespace

SimulatedJob run(Plan plan) {
  SimulatedJob job;
  job.collectives = std::move(plan.collectives);
  job.attendance.resize(job.collectives.size());
  job.ranks.resize(plan.programs.size());
  Engine(plan, job).run();
  job.spec = plan.spec;
  job.layout = std::move(plan.layout);
  job.names = std::move(plan.names);
  return job;
}

SimulatedJob simulate(const JobSpec& spec) { return run(make_plan(spec)); }

}  // namespace commlens::simulate
