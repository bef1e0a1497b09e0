#include "match/dependencies.h"

#include <algorithm>

#include "match/device_rows.h"
#include "match/host_stretches.h"
#include "match/latencies.h"
#include "match/repeated_waits.h"
#include "match/stream_waits.h"
#include "match/work_nodes.h"

namespace commlens {
namespace {

// Where each communication stands in the timelines, by node.
std::vector<CommNode> comm_nodes(const RankTimeline& rank, const WorkNodes& nodes) {
  std::vector<CommNode> by_row;  // by row of the recording, as the timelines have it
  for (std::uint32_t d = 0; d < rank.devices.size(); ++d) {
    const std::vector<CommOp>& comm = rank.devices[d].comm;
    for (std::uint32_t op = 0; op < comm.size(); ++op)
      by_row.push_back({static_cast<std::uint32_t>(comm[op].source), d, op});
  }
  std::sort(by_row.begin(), by_row.end(),
            [](const CommNode& a, const CommNode& b) { return a.node < b.node; });
  std::vector<CommNode> found;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    const auto row = static_cast<std::uint32_t>(nodes.row(node));
    if (rank.classes[row] != ActivityClass::communication) continue;
    const auto at = std::lower_bound(
        by_row.begin(), by_row.end(), row,
        [](const CommNode& comm, std::uint32_t wanted) { return comm.node < wanted; });
    if (at != by_row.end() && at->node == row) found.push_back({node, at->device, at->op});
  }
  return found;
}

}  // namespace

void find_dependencies(RankTimeline& rank) {
  Work& work = rank.work;
  work = {};
  if (rank.recording.gpu.size() == 0) return;  // communication on the host: no streams, no launches
  work.known = true;
  const WorkNodes nodes(rank, work);
  work.comm = comm_nodes(rank, nodes);
  const EventSources events(rank, nodes);
  find_host_stretches(rank, nodes, events, work);
  find_recorded_waits(nodes, events, work);
  work.latencies = find_latencies(nodes, work);
  infer_waits(nodes, work);
  infer_repeated_waits(rank, nodes, work);
  if (!std::is_sorted(work.edges.begin(), work.edges.end()))
    std::sort(work.edges.begin(), work.edges.end());
  work.edges.erase(std::unique(work.edges.begin(), work.edges.end()), work.edges.end());
  for (const HostEdge& edge : work.host_edges) work.inferred_edges += edge.inferred ? 1 : 0;
}

}  // namespace commlens
