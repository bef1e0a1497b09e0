// How cost and bandwidth depend on the message size: by operation, group size and power of two of
// the bytes.
#include <bit>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/analysis.h"
#include "model/comm_stats.h"
#include "model/measured_stats.h"

namespace commlens {
namespace {

// Sizes in [lo, 2 lo) are one class; 0 bytes and unknown are classes of their own.
std::int64_t class_of(std::optional<std::int64_t> bytes) {
  if (!bytes) return -1;
  return *bytes <= 0
             ? 0
             : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(*bytes)));
}

// By operation, group size and class.
template <class Stats>
using Classes = std::map<std::tuple<Op, std::int64_t, std::int64_t>, Stats>;

template <class Stats>
Table size_table(Classes<Stats>& classes) {
  Table table{.name = "sizes", .section = {}, .title = {}, .columns = {}, .rows = {}};
  table.columns = {{"op", Unit::none, ""},
                   {"group_size", Unit::none, ""},
                   {"bytes_lo", Unit::bytes, ""},
                   {"bytes_hi", Unit::bytes, ""}};
  CommStats::append_columns(table.columns);
  for (auto& [key, stats] : classes) {
    const auto& [op, group_size, lo] = key;
    std::vector<Cell> cells{std::string(op_name(op)), group_size > 0 ? Cell(group_size) : Cell()};
    cells.push_back(lo < 0 ? Cell() : Cell(lo));
    cells.push_back(lo < 0 ? Cell()
                           : Cell(lo == 0                        ? std::int64_t{1}
                                  : lo > (std::int64_t{1} << 61) ? lo
                                                                 : 2 * lo));
    stats.append_cells(cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Of inputs that are no timelines.
Result measured_sizes(const Job& job) {
  Classes<MeasuredStats> classes;
  for (const Measured& file : job.measured.files) {
    for (const MeasuredCall& call : file.calls) {
      const std::int64_t size = file.groups[call.group].size;
      const auto bytes = call.bytes < 0 ? std::nullopt : std::optional(call.bytes);
      classes[{call.op, size, class_of(bytes)}].add(call, size);
    }
  }
  Result result;
  result.tables.push_back(size_table(classes));
  result.tables.back().known = !classes.empty();
  return result;
}

Result run_sizes(const Job& job, const AnalysisOptions&) {
  if (only_measured(job)) return measured_sizes(job);
  Classes<CommStats> classes;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (std::size_t i = 0; i < device.comm.size(); ++i) {
        const CommOp& op = device.comm[i];
        if (device.exposures[i].in_window)
          classes[{op.op, op.group_size, class_of(op.bytes)}].add(
              op, device.exposures[i], transfer_of(job, rank, device, i));
      }
    }
  }
  Result result;
  result.tables.push_back(size_table(classes));
  result.tables.back().known = has_timelines(job);
  return result;
}

}  // namespace

extern const Analysis kSizes;
constinit const Analysis kSizes{
    .name = "sizes",
    .summary = "How cost and bandwidth depend on the message size, by operation and group size",
    .run = run_sizes,
};

}  // namespace commlens
