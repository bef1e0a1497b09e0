#include "model/comm_stats.h"

#include <algorithm>
#include <numeric>

#include "model/bandwidth.h"

namespace commlens {
namespace {

// Nearest rank: the smallest value that at least `percent` of all are not above. `sorted` is not
// empty.
Ns percentile(const std::vector<Ns>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

Cell optional_cell(std::optional<double> value) { return value ? Cell(*value) : Cell(); }

}  // namespace

void CommStats::add(const CommOp& op, const Exposure& figures, std::optional<Ns> transfer) {
  if (!figures.in_window) return;
  busy_ += figures.busy;
  hidden_ += figures.hidden;
  exposed_ += figures.exposed;
  exclusive_ += figures.exclusive;
  if (!figures.starts_inside) return;
  ++count_;
  const Ns time = op.time.length();
  durations_.push_back(time);
  if (op.name_may_lie) ++name_only_;
  // A sum that leaves 64 bits is that of a size that no message has.
  std::int64_t sum = 0;
  if (!op.bytes || __builtin_add_overflow(bytes_, *op.bytes, &sum)) {
    ++unknown_size_;
    return;
  }
  bytes_ = sum;
  sized_time_ += time;
  sized_transfer_ += transfer.value_or(0);
  net_ = net_ && transfer;
  if (const auto factor = bus_factor(op.op, static_cast<int>(op.group_size))) {
    bus_bytes_ += static_cast<double>(*op.bytes) * *factor;
    bus_time_ += time;
    bus_transfer_ += transfer.value_or(0);
  }
}

void CommStats::append_columns(std::vector<Column>& columns) {
  const Column mine[] = {
      {"count", Unit::count, "count"},
      {"bytes", Unit::bytes, "bytes"},
      {"unknown_size", Unit::count, ""},
      {"name_only", Unit::count, ""},
      {"busy_ns", Unit::nanoseconds, "busy"},
      {"hidden_ns", Unit::nanoseconds, "hidden"},
      {"exposed_ns", Unit::nanoseconds, ""},
      {"exclusive_exposed_ns", Unit::nanoseconds, "exposed*"},
      {"mean_ns", Unit::nanoseconds, ""},
      {"p50_ns", Unit::nanoseconds, "median"},
      {"p95_ns", Unit::nanoseconds, ""},
      {"p99_ns", Unit::nanoseconds, ""},
      {"max_ns", Unit::nanoseconds, "max"},
      {"algbw_gbs", Unit::gigabytes_per_second, ""},
      {"busbw_gbs", Unit::gigabytes_per_second, "busbw**"},
      {"bandwidth_kind", Unit::none, "kind"},
  };
  columns.insert(columns.end(), std::begin(mine), std::end(mine));
}

void CommStats::append_cells(std::vector<Cell>& cells) {
  std::sort(durations_.begin(), durations_.end());
  const bool sized = count_ > unknown_size_;
  cells.emplace_back(count_);
  cells.push_back(sized ? Cell(bytes_) : Cell());
  cells.emplace_back(unknown_size_);
  cells.emplace_back(name_only_);
  for (const Ns sum : {busy_, hidden_, exposed_, exclusive_}) cells.emplace_back(sum);
  if (durations_.empty()) {
    cells.resize(cells.size() + 5);
  } else {
    const Ns total = std::accumulate(durations_.begin(), durations_.end(), Ns{0});
    const auto n = static_cast<Ns>(durations_.size());
    cells.emplace_back((2 * total + n) / (2 * n));  // half up
    for (const std::size_t percent : {50, 95, 99})
      cells.emplace_back(percentile(durations_, percent));
    cells.emplace_back(durations_.back());
  }
  const bool net = sized && net_;
  const Ns time = net ? sized_transfer_ : sized_time_;
  const Ns bus_time = net ? bus_transfer_ : bus_time_;
  cells.push_back(sized ? optional_cell(gigabytes_per_second(bytes_, time)) : Cell());
  // Bytes per nanosecond are GB/s.
  cells.push_back(bus_time > 0 ? Cell(bus_bytes_ / static_cast<double>(bus_time)) : Cell());
  cells.emplace_back(std::string(net ? "net" : "apparent"));
}

std::optional<Ns> transfer_of(const Job& job, const RankTimeline& rank,
                              const DeviceTimeline& device, std::size_t op) {
  if (!job.waits.known) return std::nullopt;
  const auto row = static_cast<std::size_t>(&rank - job.ranks.data());
  const auto column = static_cast<std::size_t>(&device - rank.devices.data());
  const Wait& wait = job.waits.of[row][column][op];
  if (!wait.estimated || wait.doubtful > 0) return std::nullopt;
  return device.comm[op].time.length() - wait.wait;
}

Table ops_table(std::map<Op, CommStats>& by_op, std::string title) {
  std::vector<std::pair<Op, CommStats*>> sorted;
  for (auto& [op, stats] : by_op) sorted.emplace_back(op, &stats);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->exclusive() > b.second->exclusive();
  });
  Table table{.name = "ops",
              .section = {},
              .title = std::move(title),
              .columns = {{"op", Unit::none, "operation"}},
              .rows = {},
              .footnote = kCommFootnote};
  CommStats::append_columns(table.columns);
  for (const auto& [op, stats] : sorted) {
    std::vector<Cell> cells{std::string(op_name(op))};
    stats->append_cells(cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace commlens
