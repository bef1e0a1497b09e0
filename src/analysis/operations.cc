// What each kind of operation costs, over all ranks.
#include <map>

#include "analysis/analysis.h"
#include "model/comm_stats.h"

namespace commlens {
namespace {

Result run_operations(const Job& job, const AnalysisOptions&) {
  std::map<Op, CommStats> by_op;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (std::size_t i = 0; i < device.comm.size(); ++i) {
        if (device.exposures[i].in_window)
          by_op[device.comm[i].op].add(device.comm[i], device.exposures[i],
                                       transfer_of(job, rank, device, i));
      }
    }
  }
  Result result;
  result.tables.push_back(ops_table(by_op, "Operations (all ranks)"));
  result.tables.back().known = has_timelines(job);
  return result;
}

}  // namespace

extern const Analysis kOperations;
constinit const Analysis kOperations{
    .name = "operations",
    .summary =
        "What each kind of operation costs: count, bytes, time, hidden and exposed part, bandwidth",
    .run = run_operations,
};

}  // namespace commlens
