#include "replay/transfer.h"

#include <algorithm>

namespace commlens {

Ns transfer_length(const Graph& graph, std::uint32_t rank, const CommNode& comm) {
  const Work& work = graph.work(rank);
  Ns together = work.start[comm.node];
  const Graph::Membership in = graph.membership(rank, comm.node);
  if (in.op < 0) return work.end[comm.node] - together;
  const auto members = graph.members(static_cast<std::size_t>(in.op));
  const Graph::Range needed = graph.needed(static_cast<std::size_t>(in.op), in.part);
  for (std::uint32_t i = needed.first; i < needed.last; ++i) {
    if (members[i] == kNoNode) continue;
    const std::uint32_t other = graph.rank_of_node(members[i]);
    together = std::max(together, graph.work(other).start[graph.local(other, members[i])]);
  }
  return std::max<Ns>(0, work.end[comm.node] - together);
}

}  // namespace commlens
