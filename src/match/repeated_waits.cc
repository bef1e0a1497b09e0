// Problem: where a launch comes late, it explains the start of its kernel by itself, and nothing
// shows that the kernel had to wait for a communication as well. A replay in which the launch is in
// time would then let it begin before its data are there.
//
//   recv   [====]             [====]            seen: the kernel begins when the recv has ended
//   next         [kernel]                       not seen: it is launched long after that
//   launch     ^                       ^ [kernel]
//
// Method: of all communications of one operation, group and stream, look at the compute that was
// launched next on another stream. If it began right at their end in several cases (infer_waits has
// the edge) and before it in none, it waits for them in the cases that do not show it, too.
// Communication that runs beside compute is refuted at once by the kernels that begin meanwhile.
#include "match/repeated_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace commlens {
namespace {

constexpr std::int64_t kSeenOften = 3;
// Clocks of events of one GPU tick apart by less.
constexpr Ns kTick = 1'000;

using WaitKind = std::tuple<Op, std::int32_t, std::size_t, std::size_t>;  // op, group, streams

struct WaitCases {
  std::int64_t seen = 0;
  std::int64_t refuted = 0;
  std::vector<WorkEdge> open;
};

class RepeatedWaits {
 public:
  RepeatedWaits(const RankTimeline& rank, const WorkNodes& nodes, Work& work)
      : rank_(rank), nodes_(nodes), work_(work) {}

  void run() {
    for (const WorkEdge& edge : work_.edges) {
      if (work_.kind[edge.source] == ActivityClass::communication)
        known_.emplace_back(edge.node, edge.source);
    }
    std::sort(known_.begin(), known_.end());
    for (const CommNode& comm : work_.comm) look(comm);
    for (auto& [kind, cases] : cases_) {
      if (cases.seen < kSeenOften || cases.refuted > 0) continue;
      work_.edges.insert(work_.edges.end(), cases.open.begin(), cases.open.end());
      work_.inferred_edges += static_cast<std::int64_t>(cases.open.size());
    }
  }

 private:
  void look(const CommNode& comm) {
    const CommOp& op = rank_.devices[comm.device].comm[comm.op];
    const std::size_t own = nodes_.stream_of(comm.node);
    const Ns launch =
        work_.launch[comm.node] != kNoLaunch ? work_.launch[comm.node] : work_.start[comm.node];
    for (std::size_t stream = 0; stream < nodes_.streams(); ++stream) {
      if (stream == own || nodes_.device_of(stream) != nodes_.device_of(own)) continue;
      const std::uint32_t next =
          nodes_.first_launched_after(stream, nodes_.correlation(comm.node), launch);
      if (next == kNoNode || work_.kind[next] != ActivityClass::compute) continue;
      WaitCases& cases = cases_[{op.op, op.group, own, stream}];
      if (work_.start[next] < work_.end[comm.node] - kTick) {
        ++cases.refuted;
      } else if (std::binary_search(known_.begin(), known_.end(), std::pair(next, comm.node))) {
        ++cases.seen;
      } else if (work_.start[next] >= work_.end[comm.node]) {
        cases.open.push_back({.node = next, .source = comm.node, .kind = EdgeKind::inferred});
      }
    }
  }

  const RankTimeline& rank_;
  const WorkNodes& nodes_;
  Work& work_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> known_;  // node, source; sorted
  std::map<WaitKind, WaitCases> cases_;
};

}  // namespace

void infer_repeated_waits(const RankTimeline& rank, const WorkNodes& nodes, Work& work) {
  if (!work.recorded_waits) RepeatedWaits(rank, nodes, work).run();
}

}  // namespace commlens
