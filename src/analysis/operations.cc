// What each kind of operation costs, over all ranks.
#include <map>

#include "analysis/analysis.h"
#include "model/comm_stats.h"
#include "model/measured_stats.h"

namespace commlens {
namespace {

// Of inputs that are no timelines.
Result measured_operations(const Job& job) {
  std::map<Op, MeasuredStats> by_op;
  for (const Measured& file : job.measured.files) {
    for (const MeasuredCall& call : file.calls)
      by_op[call.op].add(call, file.groups[call.group].size);
  }
  Result result;
  result.tables.push_back(measured_ops_table(by_op, "Operations (all inputs)"));
  result.tables.back().known = !by_op.empty();
  return result;
}

Result run_operations(const Job& job, const AnalysisOptions&) {
  if (only_measured(job)) return measured_operations(job);
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
