#include "model/measured_stats.h"

#include <algorithm>
#include <optional>

#include "model/bandwidth.h"
#include "model/comm_stats.h"

namespace commlens {
namespace {

// Nearest rank; `sorted` is not empty.
Ns measured_percentile(const std::vector<Ns>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

// False, and nothing changes, where the sum would leave 64 bits.
bool add_to(std::int64_t& sum, std::int64_t more) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(sum, more, &result)) return false;
  sum = result;
  return true;
}

}  // namespace

void MeasuredStats::add(const MeasuredCall& call, std::int64_t group_size) {
  if (call.repeated) return;
  // Where the source does not say how many calls there were, it tells the time of a mean one.
  const std::int64_t calls = std::max<std::int64_t>(call.count, 1);
  count_known_ = count_known_ && call.count >= 0 && add_to(count_, call.count);
  std::int64_t bytes = 0;
  const bool sized = call.bytes >= 0 && !__builtin_mul_overflow(call.bytes, calls, &bytes) &&
                     add_to(bytes_, bytes);
  sized_ = sized_ || sized;
  if (!sized) add_to(unknown_size_, calls);
  if (call.time < 0 || !add_to(time_, call.time)) {
    all_timed_ = false;
    return;
  }
  add_to(timed_, calls);
  one_by_one_ = one_by_one_ && call.count == 1;
  if (one_by_one_) durations_.push_back(call.time);
  if (!sized || call.time == 0 || call.timed_by == TimedBy::enqueue_loop) return;
  bandwidth_bytes_ += static_cast<double>(bytes);
  add_to(bandwidth_time_, call.time);
  const auto factor = call.bus_factor >= 0 ? std::optional(call.bus_factor)
                                           : bus_factor(call.op, static_cast<int>(group_size));
  if (factor) {
    bus_bytes_ += static_cast<double>(bytes) * *factor;
    add_to(bus_time_, call.time);
  }
}

void MeasuredStats::append_cells(std::vector<Cell>& cells) {
  const auto known = [](bool is, std::int64_t value) { return is ? Cell(value) : Cell(); };
  const auto ratio = [](double bytes, Ns time) {
    return time > 0 ? Cell(bytes / static_cast<double>(time)) : Cell();
  };
  cells.push_back(known(count_known_, count_));
  cells.push_back(known(sized_ && count_known_, bytes_));
  cells.push_back(known(count_known_, unknown_size_));
  cells.emplace_back(std::int64_t{0});  // names that may lie: these are the sources' own words
  cells.push_back(known(count_known_ && all_timed_ && timed_ > 0, time_));
  cells.resize(cells.size() + 3);  // hidden, exposed, its share
  // A mean of means is none of the calls.
  const bool mean_known = timed_ > 0 && (count_known_ || timed_ == 1);
  cells.push_back(known(mean_known, mean_known ? (time_ + timed_ / 2) / timed_ : 0));
  if (one_by_one_ && !durations_.empty()) {
    std::sort(durations_.begin(), durations_.end());
    for (const std::size_t percent : {50, 95, 99})
      cells.emplace_back(measured_percentile(durations_, percent));
    cells.emplace_back(durations_.back());
  } else {
    cells.resize(cells.size() + 4);
  }
  cells.push_back(ratio(bandwidth_bytes_, bandwidth_time_));
  cells.push_back(ratio(bus_bytes_, bus_time_));
  cells.emplace_back(std::string("apparent"));
}

void append_measured_columns(std::vector<Column>& columns) {
  const std::size_t first = columns.size();
  CommStats::append_columns(columns);
  for (std::size_t i = first; i < columns.size(); ++i) {
    Column& column = columns[i];
    if (column.name == "hidden_ns" || column.name == "exclusive_exposed_ns") column.heading.clear();
    if (column.name == "mean_ns") column.heading = "mean";
    if (column.name == "algbw_gbs") column.heading = "algbw**";
  }
}

Table measured_ops_table(std::map<Op, MeasuredStats>& by_op, std::string title) {
  std::vector<std::pair<Op, MeasuredStats*>> sorted;
  for (auto& [op, stats] : by_op) sorted.emplace_back(op, &stats);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->time() > b.second->time();
  });
  Table table{.name = "ops",
              .section = {},
              .title = std::move(title),
              .columns = {{"op", Unit::none, "operation"}},
              .rows = {},
              .footnote = kMeasuredFootnote};
  append_measured_columns(table.columns);
  for (const auto& [op, stats] : sorted) {
    std::vector<Cell> cells{std::string(op_name(op))};
    stats->append_cells(cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace commlens
