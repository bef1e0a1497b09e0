// How cost and bandwidth depend on the message size: by operation, group size and power of two of
// the bytes.
#include <bit>
#include <map>
#include <tuple>

#include "analysis/analysis.h"
#include "model/comm_stats.h"

namespace commlens {
namespace {

// Sizes in [lo, 2 lo) are one class; 0 bytes and unknown are classes of their own.
std::int64_t class_of(const CommOp& op) {
  if (!op.bytes) return -1;
  return *op.bytes <= 0
             ? 0
             : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(*op.bytes)));
}

Result run_sizes(const Job& job, const AnalysisOptions&) {
  std::map<std::tuple<Op, std::int64_t, std::int64_t>, CommStats> classes;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (std::size_t i = 0; i < device.comm.size(); ++i) {
        const CommOp& op = device.comm[i];
        if (device.exposures[i].in_window)
          classes[{op.op, op.group_size, class_of(op)}].add(op, device.exposures[i],
                                                            transfer_of(job, rank, device, i));
      }
    }
  }
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
  Result result;
  table.known = has_timelines(job);
  result.tables.push_back(std::move(table));
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
