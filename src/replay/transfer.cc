#include "replay/transfer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace commlens {

std::vector<Leave> find_leaves(const Graph& graph) {
  constexpr Ns kNobody = std::numeric_limits<Ns>::min();
  const Matching& matching = graph.job().matching;
  std::vector<Leave> leaves(matching.parts.size());
  for (std::size_t op = 0; op < matching.ops.size(); ++op) {
    const auto members = graph.members(op);
    const std::uint32_t first = matching.ops[op].first;
    const auto row_of = [&](std::uint32_t part) {
      return graph.local(matching.parts[first + part].rank, members[part]);
    };
    const auto start = [&](std::uint32_t part) {
      return graph.work(matching.parts[first + part].rank).start[row_of(part)];
    };
    Graph::Range last_range;
    Ns last_comes = kNobody;  // of those that the member before needed: most often all need all
    for (std::uint32_t part = 0; part < members.size(); ++part) {
      if (members[part] == kNoNode) continue;
      Leave& leave = leaves[first + part];
      leave.needed = graph.needed(op, part);
      if (leave.needed != last_range) {
        last_range = leave.needed;
        last_comes = kNobody;
        for (std::uint32_t i = last_range.first; i < last_range.last; ++i) {
          if (members[i] != kNoNode) last_comes = std::max(last_comes, start(i));
        }
      }
      leave.transfer = graph.work(matching.parts[first + part].rank).end[row_of(part)] -
                       std::max(last_comes, start(part));
    }
  }
  return leaves;
}

Ns Transfers::length(std::uint32_t rank, const CommNode& comm) const {
  const Work& work = graph_.work(rank);
  const Graph::Membership in = graph_.membership(rank, comm.node);
  if (in.op < 0) return work.end[comm.node] - work.start[comm.node];
  const MatchedOp& op = graph_.job().matching.ops[static_cast<std::size_t>(in.op)];
  return std::max<Ns>(0, leaves_[op.first + in.part].transfer);
}

// Bytes have to be moved even where nobody waits for them: by rank, the longest that any of its
// streams transfers, with what else is changed about it.
std::vector<Ns> busiest_streams(const Graph& graph,
                                const std::vector<std::vector<double>>& factors) {
  const Transfers transfers(graph);
  std::vector<Ns> most(graph.job().ranks.size(), 0);
  for (std::uint32_t rank = 0; rank < most.size(); ++rank) {
    const Work& work = graph.work(rank);
    std::map<std::size_t, double> sums;  // by stream
    for (std::size_t i = 0; i < work.comm.size(); ++i) {
      const auto stream =
          static_cast<std::size_t>(std::upper_bound(work.stream_begins.begin(),
                                                    work.stream_begins.end(), work.comm[i].node) -
                                   work.stream_begins.begin());
      sums[stream] += std::max(0.0, factors[rank][i]) *
                      static_cast<double>(transfers.length(rank, work.comm[i]));
    }
    for (const auto& [stream, sum] : sums)
      most[rank] = std::max(most[rank], static_cast<Ns>(std::llround(sum)));
  }
  return most;
}

}  // namespace commlens
