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
//
// Where the calls that make a stream wait were recorded, though not for what, the compute that was
// launched next behind such a call is looked at instead, also behind calls that come only when
// further communications of the kind have been launched (sharded parameters are fetched ahead):
//
//   launches   gather 1, gather 2, [wait] kernel, gather 3, [wait] kernel     one further each
//
// Where every launch comes late, nothing is ever seen. If then each communication has one such call
// behind it, the first for the first and so on, and no kernel began before the end of what that
// makes it wait for, this is taken as it is.
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

// Communications that are launched ahead of the one that is waited for: at most so many.
constexpr std::size_t kMostAhead = 4;
// Of the communications: fewer are waited for at the edges of a recording.
constexpr std::size_t kUnpairedOf = 20;

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
    for (const auto& [kind, cases] : cases_) take(cases);
    find_calls();
    if (calls_.empty()) return;
    look_behind_calls();
    take_in_order();
  }

 private:
  bool take(const WaitCases& cases) {
    if (cases.seen < kSeenOften || cases.refuted > 0) return false;
    work_.edges.insert(work_.edges.end(), cases.open.begin(), cases.open.end());
    work_.inferred_edges += static_cast<std::int64_t>(cases.open.size());
    return true;
  }

  void judge(const CommNode& comm, std::uint32_t next, WaitCases& cases) const {
    if (work_.start[next] < work_.end[comm.node] - kTick) {
      ++cases.refuted;
    } else if (std::binary_search(known_.begin(), known_.end(), std::pair(next, comm.node))) {
      ++cases.seen;
    } else if (work_.start[next] >= work_.end[comm.node]) {
      cases.open.push_back({.node = next, .source = comm.node, .kind = EdgeKind::inferred});
    }
  }

  Ns launch_of(std::uint32_t node) const {
    return work_.launch[node] != kNoLaunch ? work_.launch[node] : work_.start[node];
  }

  // Calls that make a stream wait, and the compute that their thread launched next.
  void find_calls() {
    const Recording& recording = rank_.recording;
    std::vector<std::vector<std::pair<Ns, std::uint32_t>>> launched(recording.threads.size());
    const auto waits = [](const SyncCall& call) { return call.kind == SyncKind::stream_wait; };
    if (std::none_of(recording.sync_calls.begin(), recording.sync_calls.end(), waits)) return;
    // By launch, and so in time: that leaves nothing to sort.
    std::vector<std::uint32_t> first(recording.launches.size(), kNoNode);
    for (std::uint32_t node = 0; node < work_.size(); ++node) {
      const auto row = nodes_.launch(node);
      if (row && work_.launch[node] != kNoLaunch) first[*row] = std::min(first[*row], node);
    }
    for (std::size_t row = 0; row < first.size(); ++row) {
      if (first[row] != kNoNode)
        launched[recording.launches.thread[row].index()].emplace_back(recording.launches.start[row],
                                                                      first[row]);
    }
    for (auto& thread : launched) {
      if (!std::is_sorted(thread.begin(), thread.end())) std::sort(thread.begin(), thread.end());
    }
    for (const SyncCall& call : recording.sync_calls) {
      if (!waits(call)) continue;
      const auto& thread = launched[call.thread.index()];
      const auto next =
          std::upper_bound(thread.begin(), thread.end(), std::pair(call.start, kNoNode));
      if (next != thread.end() && work_.kind[next->second] == ActivityClass::compute)
        calls_.emplace_back(call.start, next->second);
    }
    std::sort(calls_.begin(), calls_.end());
  }

  void look_behind_calls() {
    std::map<std::tuple<Op, std::int32_t, std::size_t>, std::vector<CommNode>> kinds;
    for (const CommNode& comm : work_.comm) {
      const CommOp& op = rank_.devices[comm.device].comm[comm.op];
      kinds[{op.op, op.group, nodes_.stream_of(comm.node)}].push_back(comm);
    }
    for (auto& [kind, comms] : kinds) {
      std::sort(comms.begin(), comms.end(), [this](const CommNode& a, const CommNode& b) {
        return launch_of(a.node) < launch_of(b.node);
      });
      for (std::size_t ahead = 0; ahead <= kMostAhead; ++ahead) {
        if (take(behind_calls(comms, std::get<2>(kind), ahead))) break;
      }
    }
  }

  WaitCases behind_calls(const std::vector<CommNode>& comms, std::size_t stream,
                         std::size_t ahead) const {
    WaitCases cases;
    for (std::size_t i = 0; i + ahead < comms.size(); ++i) {
      const auto call = std::upper_bound(calls_.begin(), calls_.end(),
                                         std::pair(launch_of(comms[i + ahead].node), kNoNode));
      if (call == calls_.end()) continue;
      const std::size_t waiting = nodes_.stream_of(call->second);
      if (waiting != stream && nodes_.device_of(waiting) == nodes_.device_of(stream))
        judge(comms[i], call->second, cases);
    }
    return cases;
  }

  // The n-th call for the n-th communication.
  void take_in_order() {
    std::vector<CommNode> comms = work_.comm;
    std::sort(comms.begin(), comms.end(), [this](const CommNode& a, const CommNode& b) {
      return launch_of(a.node) < launch_of(b.node);
    });
    const std::size_t apart =
        std::max(comms.size(), calls_.size()) - std::min(comms.size(), calls_.size());
    if (apart * kUnpairedOf > comms.size()) return;
    WaitCases cases;
    for (std::size_t i = 0; i < std::min(comms.size(), calls_.size()); ++i) {
      const auto& [call, next] = calls_[i];
      if (call < launch_of(comms[i].node)) return;
      judge(comms[i], next, cases);
    }
    if (cases.refuted > 0) return;
    work_.edges.insert(work_.edges.end(), cases.open.begin(), cases.open.end());
    work_.inferred_edges += static_cast<std::int64_t>(cases.open.size());
  }

  void look(const CommNode& comm) {
    const CommOp& op = rank_.devices[comm.device].comm[comm.op];
    const std::size_t own = nodes_.stream_of(comm.node);
    for (std::size_t stream = 0; stream < nodes_.streams(); ++stream) {
      if (stream == own || nodes_.device_of(stream) != nodes_.device_of(own)) continue;
      const std::uint32_t next =
          nodes_.first_launched_after(stream, nodes_.correlation(comm.node), launch_of(comm.node));
      if (next == kNoNode || work_.kind[next] != ActivityClass::compute) continue;
      WaitCases& cases = cases_[{op.op, op.group, own, stream}];
      judge(comm, next, cases);
    }
  }

  const RankTimeline& rank_;
  const WorkNodes& nodes_;
  Work& work_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> known_;  // node, source; sorted
  std::map<WaitKind, WaitCases> cases_;
  std::vector<std::pair<Ns, std::uint32_t>> calls_;  // start, compute launched next; sorted
};

}  // namespace

void infer_repeated_waits(const RankTimeline& rank, const WorkNodes& nodes, Work& work) {
  if (!work.recorded_waits) RepeatedWaits(rank, nodes, work).run();
}

}  // namespace commlens
