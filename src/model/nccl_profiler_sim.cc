#include "commlens/nccl_profiler_sim.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

namespace commlens {
namespace {

using Record = NcclProfilerSim::Record;

// Python's order of tuples: the first pair that is not equal decides. With NaN this is no order.
bool sorts_before(const Record& a, const Record& b) {
  if (!(a.start == b.start)) return a.start < b.start;
  if (!(a.end == b.end)) return a.end < b.end;
  return a.op < b.op;
}

// CPython's sort of fewer than 64 values: finds the run at the beginning, turns it round if it
// descends, and inserts the others by bisection. Only for records without an order, for which the
// way of sorting shows.
void sort_as_python(std::vector<Record>& records) {
  if (records.size() < 2) return;
  const auto first = records.begin();
  const bool descends = sorts_before(first[1], first[0]);
  auto sorted = first + 2;
  while (sorted != records.end() && sorts_before(*sorted, *std::prev(sorted)) == descends) ++sorted;
  if (descends) std::reverse(first, sorted);
  for (; sorted != records.end(); ++sorted) {
    auto low = first;
    auto high = sorted;
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      if (sorts_before(*sorted, *middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    std::rotate(low, sorted, sorted + 1);
  }
}

void sort_records(std::vector<Record>& records) {
  constexpr std::size_t kPythonInserts = 64;
  const bool ordered = std::none_of(records.begin(), records.end(), [](const Record& record) {
    return std::isnan(record.start) || std::isnan(record.end);
  });
  if (ordered) {
    std::stable_sort(records.begin(), records.end(), sorts_before);
  } else if (records.size() < kPythonInserts) {
    sort_as_python(records);
  }
}

}  // namespace

// std::max returns its first argument when a comparison with NaN is false, as Python's `max` does;
// the order of the arguments here and in `summarize` is Python's.
double NcclProfilerSim::CommEvent::duration() const { return std::max(end - start, 0.0); }

const NcclProfilerSim::OpTotals& NcclProfilerSim::ByOp::at(std::string_view op) const {
  const auto found = rows_by_op_.find(op);
  if (found == rows_by_op_.end()) throw std::out_of_range("no events of op " + std::string(op));
  return rows_[found->second].second;
}

NcclProfilerSim::OpTotals& NcclProfilerSim::ByOp::row(const std::string& op) {
  const auto [found, added] = rows_by_op_.try_emplace(op, rows_.size());
  if (added) rows_.emplace_back(op, OpTotals{});
  return rows_[found->second].second;
}

void NcclProfilerSim::add_compute(std::string name, double start, double end) {
  // Two intervals overlap if not (end <= other start or start >= other end). So the NaN that starts
  // a compute interval starts before everything, and the NaN that ends one ends behind everything.
  add_to_frontier(Bound::of(start, -1), Bound::of(end, 1));
  compute_events.events_.push_back({std::move(name), start, end});
}

void NcclProfilerSim::add_comm(std::string op, double start, double end, std::int64_t bytes) {
  events.events_.push_back({std::move(op), start, end, bytes, has_overlap(start, end)});
}

NcclProfilerSim::Bound NcclProfilerSim::Bound::of(double time, int side_of_nan) {
  return std::isnan(time) ? Bound{side_of_nan, 0.0} : Bound{0, time};
}

bool NcclProfilerSim::has_overlap(double start, double end) const {
  // The last of those that start before `end`: no other of them ends later. A NaN at the event's
  // end is behind all starts, even the NaN ones, and a NaN at its start before all ends.
  const auto behind = frontier_.lower_bound(Bound::of(end, 1));
  if (behind == frontier_.begin()) return false;
  return Bound::of(start, -1) < std::prev(behind)->second;
}

void NcclProfilerSim::add_to_frontier(Bound start, Bound end) {
  auto behind = frontier_.upper_bound(start);
  if (behind != frontier_.begin() && !(std::prev(behind)->second < end)) return;
  while (behind != frontier_.end() && !(end < behind->second)) behind = frontier_.erase(behind);
  frontier_.insert_or_assign(start, end);
}

NcclProfilerSim::Summary NcclProfilerSim::summarize() const {
  Summary summary;
  summary.num_comm_events = static_cast<std::int64_t>(events.size());
  for (const CommEvent& event : events) {
    const double duration = event.duration();
    summary.total_comm_time += duration;
    if (event.overlap_with_compute) summary.overlap_time += duration;
    OpTotals& totals = summary.by_op.row(event.op);
    ++totals.count;
    totals.time += duration;
    if (__builtin_add_overflow(totals.bytes, event.bytes, &totals.bytes)) {
      throw std::overflow_error("the bytes of " + event.op + " do not fit 64 bits");
    }
  }
  summary.overlap_ratio = summary.overlap_time / std::max(summary.total_comm_time, 1e-8);
  return summary;
}

std::vector<NcclProfilerSim::Record> NcclProfilerSim::timeline() const {
  std::vector<Record> records;
  records.reserve(events.size());
  for (const CommEvent& event : events) {
    records.push_back({event.op, event.start, event.end, event.duration(), event.bytes,
                       event.overlap_with_compute});
  }
  sort_records(records);
  return records;
}

}  // namespace commlens
