#include <algorithm>
#include <limits>

#include "simulate/change.h"

namespace commlens::simulate {
namespace {

constexpr Ns kNever = std::numeric_limits<Ns>::max();

struct Span {
  Ns start = kNever;
  Ns end = 0;
  void add(const GpuEvent& event) {
    start = std::min(start, event.start);
    end = std::max(end, event.end);
  }
  Ns length() const { return start == kNever ? 0 : end - start; }
};

// From the start of the first step on the GPU to that of the last, and how many steps lie between.
struct Distance {
  Ns length = 0;
  int steps = 0;
};

Distance between_steps(const RankTrace& trace) {
  std::vector<Ns> starts(trace.steps.size(), kNever);
  for (const GpuEvent& event : trace.gpu) {
    if (event.step < 0) continue;
    Ns& start = starts[static_cast<std::size_t>(event.step)];
    start = std::min(start, event.start);
  }
  if (starts.size() < 2 || std::ranges::count(starts, kNever) > 0) return {};
  return {starts.back() - starts.front(), static_cast<int>(starts.size()) - 1};
}

}  // namespace

StepTime find_step_time(const SimulatedJob& job) {
  StepTime time{.steps = job.spec.steps};
  Span whole;
  for (const RankTrace& trace : job.ranks) {
    Span span;
    for (const GpuEvent& event : trace.gpu) span.add(event);
    whole.start = std::min(whole.start, span.start);
    whole.end = std::max(whole.end, span.end);
    const Distance own = between_steps(trace);
    time.window_of_rank.push_back(span.length());
    time.pace_of_rank.push_back(own.steps > 0 ? own.length / own.steps : span.length());
  }
  time.window = whole.length();
  // Ranks of one pace may each have started a little earlier or later than the others.
  const bool single = time.steps < 2 || time.pace_of_rank.empty();
  time.pace = single ? time.window : std::ranges::max(time.pace_of_rank);
  return time;
}

}  // namespace commlens::simulate
