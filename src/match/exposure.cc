// Problem: two all-reduces on two streams are exposed during the same 8 ms. Counting 8 ms for each
// would make a table of operations sum to twice what the rank lost.
//
//   stream 20  |####### all_reduce A #######|
//   stream 24          |#### all_reduce B ####|
//   compute                   |===|
//   exposed    AAAAAAAAABBBBBB     BBBBBBBBBBB     where two overlap, each gets half: the exclusive
//   share
//
// Method: one sweep over the instants at which the set of running communications changes. Between
// two of them the exposed length is shared evenly; what the division leaves goes, 1 ns each, to the
// first in order of (start, stream, file order). Even shares need only a running sum of length / k:
// an event's share is the sum at its end less the sum at its start. The left-over nanoseconds go to
// "the first r running events", kept in two binary indexed trees. Cost: O((n + m) log n) for n
// communications and m compute intervals, however many run at once.
#include "match/exposure.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

namespace commlens {
namespace {

// Sums over prefixes, changed one place at a time: O(log n) each.
class PrefixSums {
 public:
  explicit PrefixSums(std::size_t size) : sums_(size + 1, 0) {}

  void add(std::size_t at, std::int64_t amount) {
    for (std::size_t i = at + 1; i < sums_.size(); i += i & (0 - i)) sums_[i] += amount;
  }
  // Sum of the places before `end`.
  std::int64_t before(std::size_t end) const {
    std::int64_t sum = 0;
    for (std::size_t i = end; i > 0; i -= i & (0 - i)) sum += sums_[i];
    return sum;
  }
  // The smallest `end` whose sum before it reaches `wanted` (> 0), all places being >= 0.
  std::size_t reaching(std::int64_t wanted) const {
    std::size_t at = 0;
    for (std::size_t step = std::bit_floor(sums_.size() - 1); step > 0; step /= 2) {
      if (at + step < sums_.size() && sums_[at + step] < wanted) {
        at += step;
        wanted -= sums_[at];
      }
    }
    return at + 1;
  }

 private:
  std::vector<std::int64_t> sums_;
};

// How much of a set lies before an instant, for many questions.
class Coverage {
 public:
  explicit Coverage(const IntervalSet& set) : set_(set) {
    before_.reserve(set.parts().size() + 1);
    Ns sum = 0;
    for (const Interval part : set.parts()) {
      before_.push_back(sum);
      sum += part.length();
    }
    before_.push_back(sum);
  }
  Ns before(Ns instant) const {
    const std::size_t i = set_.first_ending_after(instant);
    const auto parts = set_.parts();
    const Ns inside = i < parts.size() ? std::max<Ns>(0, instant - parts[i].start) : 0;
    return before_[i] + inside;
  }
  Ns within(Interval interval) const { return before(interval.end) - before(interval.start); }

 private:
  const IntervalSet& set_;
  std::vector<Ns> before_;  // length of the parts before part i
};

// The exclusive shares. `times` are the events' intervals inside the window, in order of priority.
class ShareSweep {
 public:
  ShareSweep(const std::vector<Interval>& times, const IntervalSet& compute)
      : times_(times),
        compute_(compute),
        running_(times.size()),
        extra_(times.size()),
        share_(times.size(), 0) {}

  std::vector<Ns> run() {
    struct Change {
      Ns at;
      std::size_t event;
      bool begins;
    };
    std::vector<Change> changes;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (times_[i].length() == 0) continue;
      changes.push_back({times_[i].start, i, true});
      changes.push_back({times_[i].end, i, false});
    }
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.at < b.at; });
    for (std::size_t i = 0; i < changes.size();) {
      const Ns at = changes[i].at;
      for (; i < changes.size() && changes[i].at == at; ++i)
        change(changes[i].event, changes[i].begins);
      if (i < changes.size() && count_ > 0) share_out({at, changes[i].at});
    }
    return std::move(share_);
  }

 private:
  // `share_` holds minus the sums at the event's start while it runs.
  void change(std::size_t event, bool begins) {
    const Ns sums = even_ + extra_.before(event + 1);
    share_[event] += begins ? -sums : sums;
    running_.add(event, begins ? 1 : -1);
    count_ += begins ? 1 : -1;
  }

  // The pieces of [from, to) outside compute, each shared among the running events.
  void share_out(Interval piece) {
    const auto parts = compute_.parts();
    while (next_compute_ < parts.size() && parts[next_compute_].end <= piece.start) ++next_compute_;
    Ns from = piece.start;
    for (std::size_t i = next_compute_; i < parts.size() && parts[i].start < piece.end; ++i) {
      share_length(parts[i].start - from);
      from = parts[i].end;
    }
    share_length(piece.end - from);
  }

  void share_length(Ns length) {
    if (length <= 0) return;
    even_ += length / count_;
    const Ns left_over = length % count_;
    if (left_over == 0) return;
    // One more nanosecond for all places up to the event that is the left_over-th running: those
    // not running there never see the difference, since an event's sums are taken at its own start
    // and end.
    extra_.add(0, 1);
    const std::size_t end = running_.reaching(left_over);
    if (end < times_.size()) extra_.add(end, -1);
  }

  const std::vector<Interval>& times_;
  const IntervalSet& compute_;
  PrefixSums running_;  // 1 at each running event
  PrefixSums
      extra_;  // differences: a prefix sum is the extra nanoseconds handed to that place so far
  std::vector<Ns> share_;
  std::int64_t count_ = 0;
  Ns even_ = 0;
  std::size_t next_compute_ = 0;
};

// The part of a set inside a window, at the cost of that part.
IntervalSet clipped(const IntervalSet& set, Interval window) {
  const auto parts = set.parts();
  const std::size_t first = set.first_ending_after(window.start);
  std::size_t last = first;
  while (last < parts.size() && parts[last].start < window.end) ++last;
  std::vector<Interval> inside;
  inside.reserve(last - first);
  for (std::size_t i = first; i < last; ++i) inside.push_back(clip(parts[i], window));
  return IntervalSet(std::move(inside));
}

// Whether a set lies inside a window as it is: the usual case, and then the largest set of all need
// not be copied.
bool lies_inside(const IntervalSet& set, Interval window) {
  const auto parts = set.parts();
  return parts.empty() || (parts.front().start >= window.start && parts.back().end <= window.end);
}

// Whether what starts at the very end of everything (an event without length) counts in this
// window. Windows that tile count each event once: it belongs to the last one that has any length.
bool counts_the_end(Interval window, Interval extent) {
  return window.end == extent.end && (window.length() > 0 || extent.length() == 0);
}

// Whether an event is counted in this window: where it starts.
bool starts_in(Interval event, Interval window, Interval extent) {
  if (event.start < window.start) return false;
  return event.start < window.end || (event.start == window.end && counts_the_end(window, extent));
}

bool meets(Interval event, Interval window, Interval extent) {
  return (event.start < window.end && event.end > window.start) || starts_in(event, window, extent);
}

std::int64_t count_starts(const DeviceTimeline& device, Interval window) {
  const auto from = std::lower_bound(device.starts.begin(), device.starts.end(), window.start);
  const auto to = counts_the_end(window, device.extent)
                      ? device.starts.end()
                      : std::lower_bound(from, device.starts.end(), window.end);
  return std::max<std::int64_t>(0, to - from);
}

}  // namespace

ExposureFigures::ExposureFigures(const DeviceTimeline& device) : device_(device) {
  latest_end_.reserve(device.comm.size());
  Ns latest = std::numeric_limits<Ns>::min();
  for (const CommOp& op : device.comm) {
    latest = std::max(latest, op.time.end);
    latest_end_.push_back(latest);
  }
}

StepFigures ExposureFigures::of(std::int64_t number, Interval window) const {
  StepFigures figures{.number = number, .breakdown = {}, .exposures = {}};
  Breakdown& sums = figures.breakdown;
  sums.window = window;
  // The rows that can meet the window: from the first that may reach into it to the last that
  // starts in it.
  const auto& comm = device_.comm;
  const auto first =
      std::lower_bound(latest_end_.begin(), latest_end_.end(), window.start) - latest_end_.begin();
  const auto last = std::upper_bound(comm.begin() + first, comm.end(), window.end,
                                     [](Ns end, const CommOp& op) { return end < op.time.start; });
  const std::span<const CommOp> ops(comm.begin() + first, last);
  figures.first_op = static_cast<std::size_t>(first);

  const bool whole = lies_inside(device_.compute, window);
  const IntervalSet part = whole ? IntervalSet() : clipped(device_.compute, window);
  const IntervalSet& compute = whole ? device_.compute : part;
  const Coverage in_compute(compute);
  std::vector<Interval> times;
  times.reserve(ops.size());
  for (const CommOp& op : ops) times.push_back(clip(op.time, window));
  const std::vector<Ns> shares = ShareSweep(times, compute).run();
  figures.exposures.resize(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Exposure& event = figures.exposures[i];
    event.in_window = meets(ops[i].time, window, device_.extent);
    if (!event.in_window) continue;
    event.starts_inside = starts_in(ops[i].time, window, device_.extent);
    event.busy = times[i].length();
    event.hidden = in_compute.within(times[i]);
    event.exposed = event.busy - event.hidden;
    event.exclusive = shares[i];
    sums.comm_busy += event.busy;
    if (event.hidden > 0) sums.whole_event_overlap += event.busy;
    if (event.starts_inside) ++sums.comm_events;
  }

  const IntervalSet all_comm(std::move(times));
  sums.hidden_comm = set_intersection(all_comm, compute).length();
  sums.exposed_comm = all_comm.length() - sums.hidden_comm;
  sums.compute_only = compute.length() - sums.hidden_comm;
  const IntervalSet memory =
      set_difference(set_difference(clipped(device_.memory, window), all_comm), compute);
  sums.memory_only = memory.length();
  sums.idle =
      window.length() - sums.compute_only - sums.hidden_comm - sums.exposed_comm - sums.memory_only;
  sums.gpu_events = count_starts(device_, window);
  return figures;
}

WindowFigures window_figures(const DeviceTimeline& device, Interval window) {
  StepFigures part = ExposureFigures(device).of(0, window);
  WindowFigures figures{.breakdown = part.breakdown,
                        .exposures = std::vector<Exposure>(device.comm.size())};
  std::copy(part.exposures.begin(), part.exposures.end(),
            figures.exposures.begin() + static_cast<std::ptrdiff_t>(part.first_op));
  return figures;
}

}  // namespace commlens
