// The engine's state and parts; engine.cc says how it works and why. Only engine*.cc include this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <vector>

#include "simulate/simulated_job.h"

namespace commlens::simulate::engine {

// The actor that is a rank's host thread; others are indices of its streams.
inline constexpr int kHost = -1;

struct Actor {
  int rank = 0;
  int index = kHost;
};

// An instant, and what it waited for last. Unset, it is before all others.
struct Instant {
  Ns at = std::numeric_limits<Ns>::min();
  Bound bound{};
  Instant after(Ns latency) const { return {at + latency, bound}; }
};

// The latest; of several the one that stands first.
inline Instant latest(std::initializer_list<Instant> candidates) {
  return *std::ranges::max_element(candidates, {}, &Instant::at);
}

// What a stream is asked to do.
struct Task {
  enum class Kind : std::uint8_t { activity, record, wait } kind = Kind::activity;
  int gpu_event = -1;  // of an activity
  int event = -1;      // of a record or wait
  Instant ready{};     // not before: when the call has reached the GPU
  Ns length = 0;       // of an activity that is not a communication
};

struct Stream {
  int id = 0;
  std::vector<Task> tasks{};
  std::size_t next = 0;
  Instant busy_until{};  // the end of what ran last; unset: nothing has
  Instant wait_until{};  // the latest event waited for; unset: none was
  bool entered = false;  // in a communication that is not complete
  bool blocked = false;  // waits for an event or for other members: new tasks do not wake it
  bool queued = false;   // is to run already
};

struct Event {
  bool known = false;
  Instant instant{};
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
  bool attend(int rank, int index, GpuEvent& activity, const Instant& entry);
  void complete(int collective);
  Instant start_of(const Stream& stream, const Task& task) const;

  void enqueue(int rank, int stream_id, Task task);
  void wake(int rank, int actor);
  void resolve(int rank, int event, const Instant& instant);
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

}  // namespace commlens::simulate::engine
