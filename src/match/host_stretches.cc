// Problem: a launch that comes late may be late because its thread waited for the GPU before, and
// then a change on the GPU moves it.
//
// Method: calls that block (synchronisations, copies that are not asynchronous) cut a thread into
// stretches; between two of them the thread goes on by itself. A thread that begins again after a
// pause during which another thread was at work was handed that work: the backward pass has a
// thread of its own.
//
//   main      [forward launches][.. waits in backward() ..][optimizer][== sync ==][ ...
//   autograd                    [backward launches]
//                               ^ handed over             ^ handed back
//
// What a call waited for is recorded (cuda_sync), or follows from what it is: a device
// synchronisation waits for all earlier work. A stream synchronisation without a record waited for
// whatever earlier work ended last before it returned: that is inferred, and counted.
//
// When it is wrong: threads that work side by side for long look as if they handed over work to
// each other, unless their calls lie closer than kPause.
#include "match/host_stretches.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace commlens {
namespace {

// A thread that pauses for less goes on by itself, whatever others do meanwhile.
constexpr Ns kPause = 100'000;
// A call returns within this after the work that it waited for, where no record says which.
constexpr Ns kSlowestReturn = 200'000;

// A call of the host that matters here.
struct Call {
  Ns start = 0;
  std::uint32_t thread = 0;
  std::int32_t sync = -1;        // row of the recording's sync_calls; -1: a launch
  std::uint32_t node = kNoNode;  // of a launch
  auto order() const { return std::tuple(start, thread, sync, node); }
};

class StretchFinder {
 public:
  StretchFinder(const RankTimeline& rank, const WorkNodes& nodes, const EventSources& events,
                Work& work)
      : recording_(rank.recording),
        nodes_(nodes),
        events_(events),
        work_(work),
        threads_(recording_.threads.size()) {
    for (const SyncRecord& record : recording_.sync_records) {
      if (record.kind != SyncKind::stream_wait && record.correlation != 0)
        record_of_.try_emplace(record.correlation, &record);
    }
  }

  void run();

 private:
  std::optional<std::uint32_t> only_thread() const;
  void run_alone(std::uint32_t number);
  void run_together();
  struct Thread {
    std::uint32_t stretch = kNoNode;  // that is open
    Ns last_call = 0;
    Ns busy_until = 0;  // the end of its last blocking call
  };

  std::vector<Call> calls() const;
  std::uint32_t open(Thread& thread, HostStretch stretch);
  void enter(const Call& call);
  void block(Thread& thread, const SyncCall& call);
  void add_sources(const SyncCall& call);
  void add_source(std::uint32_t node, const SyncCall& call, bool inferred);
  void infer_source(const SyncCall& call);

  const Recording& recording_;
  const WorkNodes& nodes_;
  const EventSources& events_;
  Work& work_;
  std::vector<Thread> threads_;
  std::unordered_map<std::uint64_t, const SyncRecord*> record_of_;
  std::uint32_t last_thread_ = kNoNode;    // that made the call before
  std::vector<std::uint32_t> stretch_of_;  // by node
};

// In time. Only threads that launch something matter: others may wait for the GPU as they like.
std::vector<Call> StretchFinder::calls() const {
  std::vector<Call> calls;
  std::vector<bool> launches(threads_.size());
  for (std::uint32_t node = 0; node < work_.size(); ++node) {
    const auto launch = nodes_.launch(node);
    if (!launch) continue;
    const auto thread = static_cast<std::uint32_t>(recording_.launches.thread[*launch].index());
    launches[thread] = true;
    calls.push_back({.start = work_.launch[node], .thread = thread, .node = node});
  }
  for (std::size_t i = 0; i < recording_.sync_calls.size(); ++i) {
    const SyncCall& sync = recording_.sync_calls[i];
    if (sync.kind == SyncKind::stream_wait) continue;  // the host goes on
    const auto thread = static_cast<std::uint32_t>(sync.thread.index());
    if (launches[thread])
      calls.push_back(
          {.start = sync.start, .thread = thread, .sync = static_cast<std::int32_t>(i)});
  }
  const auto earlier = [](const Call& a, const Call& b) { return a.order() < b.order(); };
  if (!std::is_sorted(calls.begin(), calls.end(), earlier))
    std::sort(calls.begin(), calls.end(), earlier);
  return calls;
}

std::uint32_t StretchFinder::open(Thread& thread, HostStretch stretch) {
  stretch.before = thread.stretch;
  stretch.thread = static_cast<std::uint32_t>(&thread - threads_.data());
  work_.stretches.push_back(stretch);
  return thread.stretch = static_cast<std::uint32_t>(work_.stretches.size()) - 1;
}

// A call of its thread: the first one opens a stretch, and so does the first after others worked.
void StretchFinder::enter(const Call& call) {
  Thread& thread = threads_[call.thread];
  const bool other_was_at_work = last_thread_ != kNoNode && last_thread_ != call.thread;
  const bool paused =
      thread.stretch == kNoNode ||
      (call.start - std::max(thread.last_call, thread.busy_until) >= kPause && other_was_at_work);
  if (!paused) return;
  HostStretch stretch{.start = call.start, .call = call.start};
  if (other_was_at_work) {
    const Thread& giver = threads_[last_thread_];
    const Ns at = std::max(giver.last_call, giver.busy_until);
    if (at <= call.start) {
      stretch.other = giver.stretch;
      stretch.other_at = at;
    }
  }
  open(thread, stretch);
}

void StretchFinder::block(Thread& thread, const SyncCall& call) {
  if (call.end <= call.start || call.start < thread.busy_until) return;  // inside another
  thread.busy_until = call.end;
  open(thread, {.start = call.end, .call = call.start, .kind = call.kind});
  add_sources(call);
}

void StretchFinder::add_source(std::uint32_t node, const SyncCall& call, bool inferred) {
  // What ended behind the call's end was not waited for, whatever the record says.
  if (node == kNoNode || work_.end[node] > call.end) return;
  work_.host_edges.push_back({.stretch = static_cast<std::uint32_t>(work_.stretches.size()) - 1,
                              .source = node,
                              .inferred = inferred});
}

void StretchFinder::add_sources(const SyncCall& call) {
  const auto found = record_of_.find(call.correlation);
  const SyncRecord* record =
      call.correlation != 0 && found != record_of_.end() ? found->second : nullptr;
  if (call.kind == SyncKind::blocking_copy) {
    for (std::size_t s = 0; s < nodes_.streams() && call.correlation != 0; ++s) {
      const std::uint32_t node = nodes_.first_launched_after(s, call.correlation, call.start);
      if (node != kNoNode && nodes_.correlation(node) == call.correlation)
        add_source(node, call, false);
    }
    return;
  }
  if (call.kind == SyncKind::device_sync) {
    for (std::size_t s = 0; s < nodes_.streams(); ++s)
      add_source(nodes_.last_launched_before(s, call.correlation, call.start), call, false);
    return;
  }
  const bool event = call.kind == SyncKind::event_sync;
  const auto stream = record == nullptr
                          ? std::nullopt
                          : nodes_.find_stream(event ? record->source : record->stream);
  if (!stream) return infer_source(call);
  const std::uint64_t behind =
      event && record->record_correlation != 0 ? record->record_correlation : call.correlation;
  for (const std::uint32_t node : events_.of(*stream, behind, call.start))
    add_source(node, call, false);
}

// The earlier work that ended last while the call waited.
void StretchFinder::infer_source(const SyncCall& call) {
  std::uint32_t latest = kNoNode;
  for (std::size_t s = 0; s < nodes_.streams(); ++s) {
    std::uint32_t node = nodes_.last_launched_before(s, call.correlation, call.start);
    // An event may have been recorded some launches ago.
    while (node != kNoNode && node > nodes_.begin(s) && work_.end[node] > call.end) --node;
    if (node == kNoNode || work_.end[node] > call.end || work_.end[node] < call.start) continue;
    if (latest == kNoNode || work_.end[node] > work_.end[latest]) latest = node;
  }
  if (latest != kNoNode && call.end - work_.end[latest] <= kSlowestReturn)
    add_source(latest, call, true);
}

// The thread that launched everything, where it was one.
std::optional<std::uint32_t> StretchFinder::only_thread() const {
  std::optional<std::uint32_t> only;
  for (std::uint32_t node = 0; node < work_.size(); ++node) {
    const auto launch = nodes_.launch(node);
    if (!launch) continue;
    const auto thread = static_cast<std::uint32_t>(recording_.launches.thread[*launch].index());
    if (only && *only != thread) return std::nullopt;
    only = thread;
  }
  return only;
}

// One thread: its blocking calls alone cut it, and launches need no sorting.
void StretchFinder::run_alone(std::uint32_t number) {
  std::vector<const SyncCall*> calls;
  for (const SyncCall& call : recording_.sync_calls) {
    if (call.thread.index() == number && call.kind != SyncKind::stream_wait) calls.push_back(&call);
  }
  const auto earlier = [](const SyncCall* a, const SyncCall* b) { return a->start < b->start; };
  std::stable_sort(calls.begin(), calls.end(), earlier);
  Ns first = calls.empty() ? std::numeric_limits<Ns>::max() : calls.front()->start;
  for (const Ns launch : work_.launch) {
    if (launch != kNoLaunch) first = std::min(first, launch);
  }
  Thread& thread = threads_[number];
  open(thread, {.start = first, .call = first});
  for (const SyncCall* call : calls) block(thread, *call);
  for (std::uint32_t node = 0; node < work_.size(); ++node) {
    if (work_.launch[node] == kNoLaunch) continue;
    const auto behind = std::upper_bound(
        work_.stretches.begin() + 1, work_.stretches.end(), work_.launch[node],
        [](Ns launch, const HostStretch& stretch) { return launch < stretch.start; });
    stretch_of_[node] = static_cast<std::uint32_t>(behind - work_.stretches.begin()) - 1;
  }
}

void StretchFinder::run() {
  stretch_of_.assign(work_.size(), kNoNode);
  if (const auto only = only_thread()) {
    run_alone(*only);
  } else {
    run_together();
  }
  for (const std::uint32_t stretch : stretch_of_) work_.stretch.push_back(stretch);
}

void StretchFinder::run_together() {
  for (const Call& call : calls()) {
    enter(call);
    Thread& thread = threads_[call.thread];
    thread.last_call = std::max(thread.last_call, call.start);
    if (call.node != kNoNode) stretch_of_[call.node] = thread.stretch;
    if (call.sync >= 0) block(thread, recording_.sync_calls[static_cast<std::size_t>(call.sync)]);
    last_thread_ = call.thread;
  }
}

}  // namespace

void find_host_stretches(const RankTimeline& rank, const WorkNodes& nodes,
                         const EventSources& events, Work& work) {
  StretchFinder(rank, nodes, events, work).run();
}

}  // namespace commlens
