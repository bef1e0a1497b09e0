// A small profiler simulator: intervals of compute and of communication in, a summary and a
// timeline out.
//
//   commlens::NcclProfilerSim profiler;
//   profiler.add_compute("forward", 0.0, 2.0);
//   profiler.add_comm("all_reduce", 1.0, 2.5, 128 * 1024);
//   auto summary = profiler.summarize();
//   summary.overlap_ratio;                  // 1.0: the only communication overlaps compute
//   summary.by_op.at("all_reduce").bytes;   // 131072
//
// It follows the tutorial's Python class NCCLProfilerSim field for field and bit for bit: the same
// names, the same order of additions, the same answers for reversed intervals (duration 0),
// infinities and NaN. What follows from that, and may surprise:
//
// - Times are doubles of whatever unit the caller uses (the tutorial: seconds); results are in the
// same unit.
// - Whether an event overlaps is fixed when it is added, against the compute added so far: add
// compute first.
// - Overlap is a yes or no for a whole event. `overlap_time` sums whole durations, not
// intersections; touching ends
//   do not overlap. For times that are true to a trace use the analyses of commlens instead.
// - Sums are taken from left to right in doubles, as Python's `sum` does up to version 3.11.
//
// Cost: add_* O(log n), summarize O(n), timeline O(n log n). Copyable; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace commlens {

// What was added, in that order. To be read only, since the answers depend on what came before
// what.
template <class Event>
class EventList {
 public:
  std::size_t size() const { return events_.size(); }
  bool empty() const { return events_.empty(); }
  const Event& operator[](std::size_t index) const { return events_[index]; }
  const Event& at(std::size_t index) const { return events_.at(index); }
  const Event& front() const { return events_.front(); }
  const Event& back() const { return events_.back(); }
  auto begin() const { return events_.begin(); }
  auto end() const { return events_.end(); }

 private:
  friend class NcclProfilerSim;
  std::vector<Event> events_;
};

class NcclProfilerSim {
 public:
  struct ComputeEvent {
    std::string name;
    double start = 0.0;
    double end = 0.0;
  };

  struct CommEvent {
    std::string op;
    double start = 0.0;
    double end = 0.0;
    std::int64_t bytes = 0;
    bool overlap_with_compute = false;

    // end - start, and 0 for a reversed interval. NaN stays NaN.
    double duration() const;
  };

  // Totals of one op.
  struct OpTotals {
    std::int64_t count = 0;
    double time = 0.0;
    std::int64_t bytes = 0;
  };

  // Totals by op, in the order in which the ops were first added; iterates over pairs of name and
  // totals.
  class ByOp {
   public:
    // Throws std::out_of_range for an op that was never added.
    const OpTotals& at(std::string_view op) const;
    bool contains(std::string_view op) const { return rows_by_op_.find(op) != rows_by_op_.end(); }
    std::size_t size() const { return rows_.size(); }
    bool empty() const { return rows_.empty(); }
    auto begin() const { return rows_.begin(); }
    auto end() const { return rows_.end(); }

   private:
    friend class NcclProfilerSim;
    OpTotals& row(const std::string& op);

    std::vector<std::pair<std::string, OpTotals>> rows_;
    std::map<std::string, std::size_t, std::less<>> rows_by_op_;
  };

  struct Summary {
    std::int64_t num_comm_events = 0;
    double total_comm_time = 0.0;  // sum of the durations
    double overlap_time = 0.0;     // sum of the durations of those that overlap compute
    double overlap_ratio = 0.0;    // overlap_time / total_comm_time; the divisor is at least 1e-8
    ByOp by_op;
  };

  struct Record {
    std::string op;
    double start = 0.0;
    double end = 0.0;
    double duration = 0.0;
    std::int64_t bytes = 0;
    bool overlap = false;
  };

  void add_compute(std::string name, double start, double end);
  // `op`: any name; names that are valid UTF-8 sort as in Python. `bytes`: of the message; not
  // checked.
  void add_comm(std::string op, double start, double end, std::int64_t bytes);

  // Throws std::overflow_error where an op's bytes do not fit 64 bits, which Python's integers
  // would.
  Summary summarize() const;

  // The communication sorted by (start, end, op); equal ones stay in the order of adding. With a
  // NaN among the times there is no such order; the result is then what CPython 3.7 to 3.12 makes
  // of up to 63 events, and for more of them in the order of adding.
  std::vector<Record> timeline() const;

  EventList<CommEvent> events;
  EventList<ComputeEvent> compute_events;

 private:
  // A time with the two values NaN acts as when compared by `not (a <= b)`: before and behind all
  // others.
  struct Bound {
    int side = 0;  // -1: before all times, 0: `time`, 1: behind all times
    double time = 0.0;
    static Bound of(double time, int side_of_nan);
    friend bool operator<(const Bound& a, const Bound& b) {
      return a.side != b.side ? a.side < b.side : a.time < b.time;
    }
  };

  bool has_overlap(double start, double end) const;
  void add_to_frontier(Bound start, Bound end);

  // The compute intervals that decide: those that end later than all that start no later. Starts
  // and ends ascend together, so of all intervals that start before a time, the last row's ends
  // last.
  std::map<Bound, Bound> frontier_;
};

}  // namespace commlens
