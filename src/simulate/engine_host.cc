// The host threads of the engine: what each instruction of a program does.
#include <algorithm>
#include <utility>

#include "simulate/engine.h"

namespace commlens::simulate::engine {

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
           .ready = {host.now + plan_.spec.launch_latency_ns, {Bound::By::call, call_index}},
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
           .ready = {host.now, {Bound::By::call, call}}});
}

// Comes here twice: once to ask the stream for an event behind its work, once more when that is
// known.
bool Engine::synchronise(int rank, const Instruction& instruction) {
  Rank& host = state(rank);
  Event& done = event_of(host, instruction.event);
  if (done.record_call < 0) {
    done.record_call = add_call(rank, instruction, CallKind::stream_sync);
    enqueue(rank, instruction.stream,
            {.kind = Task::Kind::record,
             .event = instruction.event,
             .ready = {host.now, {Bound::By::call, done.record_call}}});
  }
  if (!known_or_wait(rank, instruction.event, kHost)) return false;
  const Event& known = event_of(host, instruction.event);
  RuntimeCall& call = trace(rank).calls[static_cast<std::size_t>(known.record_call)];
  const Instant done_on_host = known.instant.after(plan_.spec.event_latency_ns);
  if (done_on_host.at > host.now && done_on_host.bound.by == Bound::By::activity)
    call.released_by = done_on_host.bound.index;
  host.now = call.end = std::max(host.now, done_on_host.at);
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

}  // namespace commlens::simulate::engine
