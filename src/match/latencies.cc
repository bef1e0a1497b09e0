// Each latency is the median over those starts that only this one dependency can have bound: a
// stream's gap where the launch came long before, a launch's where the stream had nothing to do.
#include "match/latencies.h"

#include <algorithm>
#include <vector>

namespace commlens {
namespace {

// Of too few cases nothing is typical: what is usual on current GPUs then.
constexpr std::size_t kLeastCases = 5;
constexpr Latencies kUsual{
    .stream = 1'000, .launch = 5'000, .comm_launch = 5'000, .event = 1'500, .sync = 5'000};
// Longer ones had another reason.
constexpr Ns kLongestLatency = 50'000;
// So many cases tell the median well enough.
constexpr std::size_t kMostCases = 20'000;

class Cases {
 public:
  void add(Ns latency) {
    if (latency <= kLongestLatency && latency >= -kLongestLatency && cases_.size() < kMostCases)
      cases_.push_back(latency);
  }
  Ns median(Ns usual) {
    if (cases_.size() < kLeastCases) return usual;
    const auto middle = cases_.begin() + static_cast<std::ptrdiff_t>(cases_.size() / 2);
    std::nth_element(cases_.begin(), middle, cases_.end());
    return *middle;
  }

 private:
  std::vector<Ns> cases_;
};

// Communication nearly always waits for an event as well.
struct CommStart {
  Ns behind_launch = 0;
  Ns behind_event = 0;
};

// Of those that began later than the event explains.
Ns launch_of(const std::vector<CommStart>& starts, Ns usual_event, Ns usual) {
  Cases cases;
  for (const CommStart& start : starts) {
    if (start.behind_event > 2 * usual_event) cases.add(start.behind_launch);
  }
  return cases.median(usual);
}

}  // namespace

Latencies find_latencies(const WorkNodes& nodes, const Work& work) {
  Cases stream;
  Cases launch;
  std::vector<CommStart> comm_starts;
  Cases event;
  Cases sync;
  std::vector<WorkEdge> edges = work.edges;
  std::sort(edges.begin(), edges.end());
  auto edge = edges.begin();
  for (std::size_t s = 0; s < nodes.streams(); ++s) {
    for (std::uint32_t node = nodes.begin(s); node < nodes.end(s); ++node) {
      const Ns start = work.start[node];
      const bool launched = work.launch[node] != kNoLaunch;
      const Ns before = node > nodes.begin(s) ? work.end[node - 1] : kNoLaunch;
      Ns source = kNoLaunch;
      bool graph = false;
      for (; edge != edges.end() && edge->node == node; ++edge) {
        source = std::max(source, work.end[edge->source]);
        graph = graph || edge->kind == EdgeKind::graph;
      }
      if (graph) continue;
      if (source != kNoLaunch && source > before && launched && source > work.launch[node])
        event.add(start - source);
      const bool idle = before == kNoLaunch || before < work.launch[node];
      if (work.recorded_waits && work.kind[node] == ActivityClass::communication && launched &&
          idle && comm_starts.size() < kMostCases)
        comm_starts.push_back(
            {.behind_launch = start - work.launch[node],
             .behind_event = source == kNoLaunch ? kLongestLatency : start - source});
      // Without recorded waits a communication's stream is rarely what it waits for.
      if (source != kNoLaunch || work.kind[node] == ActivityClass::communication) continue;
      if (before != kNoLaunch && launched && work.launch[node] + kLongestLatency < before)
        stream.add(start - before);
      if (launched && idle) launch.add(start - work.launch[node]);
    }
  }
  for (const HostEdge& host : work.host_edges) {
    const HostStretch& stretch = work.stretches[host.stretch];
    if (work.end[host.source] > stretch.call) sync.add(stretch.start - work.end[host.source]);
  }
  const Ns usual_launch = launch.median(kUsual.launch);
  const Ns usual_event = event.median(kUsual.event);
  return {.stream = stream.median(kUsual.stream),
          .launch = usual_launch,
          .comm_launch = launch_of(comm_starts, usual_event, usual_launch),
          .event = usual_event,
          .sync = sync.median(kUsual.sync)};
}

}  // namespace commlens
