// Recorded: `cuda_sync` rows name the stream that waits, the one that it waits for, and the calls.
// The source is the last work launched there before the event was recorded, and what depends on it
// the next work launched on the waiting stream:
//
//   launches    a  b  [record]  c         [wait]  d        (by correlation: a < b < record < wait <
//   d) stream 7    |a||b||== c ==| stream 20                |d ...                        d depends
//   on b
//
// Inferred, where no such rows are: two rules.
// 1. A communication begins behind the work that its thread launched last before it: frameworks
//    make the communication's stream wait for the current one.
// 2. What begins later than its stream and its launch explain, within kNear of the end of other
//    work that was launched before it, waited for that work: of several, for the last to end.
// When it is wrong: rule 2 takes a coincidence for a cause; what waited for two is linked to the
// later one only, so that the other is missing when a change lets it take over.
#include "match/stream_waits.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace commlens {
namespace {

// --- Recorded ---

void add_event_waits(const WorkNodes& nodes, const EventSources& events, Work& work) {
  for (const EventWait& wait : events.waits()) {
    const std::uint32_t node =
        nodes.first_launched_after(wait.stream, wait.correlation, wait.start);
    if (node == kNoNode) continue;
    for (const std::uint32_t source : wait.sources) {
      // Work that began later cannot have been waited for, whatever the ids say.
      if (nodes.stream_of(source) == wait.stream || work.start[source] >= work.start[node])
        continue;
      work.edges.push_back({.node = node,
                            .source = source,
                            .kind = wait.record_known ? EdgeKind::event : EdgeKind::inferred});
      work.inferred_edges += wait.record_known ? 0 : 1;
    }
  }
}

// Kernels of one graph share the correlation of its launch.
void add_graph_orders(const WorkNodes& nodes, Work& work) {
  std::unordered_set<std::uint64_t> graphs;
  for (std::size_t s = 0; s < nodes.streams(); ++s) {
    for (std::uint32_t node = nodes.begin(s) + 1; node < nodes.end(s); ++node) {
      if (nodes.correlation(node) != 0 && nodes.correlation(node) == nodes.correlation(node - 1))
        graphs.insert(nodes.correlation(node));
    }
  }
  if (graphs.empty()) return;
  struct Member {
    std::uint64_t correlation;
    Ns start;
    std::uint32_t node;
    auto order() const { return std::tuple(correlation, start, node); }
  };
  std::vector<Member> members;
  for (std::uint32_t node = 0; node < work.size(); ++node) {
    if (graphs.contains(nodes.correlation(node)))
      members.push_back({nodes.correlation(node), work.start[node], node});
  }
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.order() < b.order(); });
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i].correlation != members[i - 1].correlation) continue;
    work.edges.push_back(
        {.node = members[i].node, .source = members[i - 1].node, .kind = EdgeKind::graph});
    work.launch.set(members[i].node, kNoLaunch);
  }
}

// --- Inferred ---

// What starts so shortly behind the end of other work may have waited for it.
constexpr Ns kNear = 10'000;
// Clocks of events of one GPU tick apart by less.
constexpr Ns kEarly = 1'000;
// A start that is explained to this is explained.
constexpr Ns kExplained = 2'000;

class WaitInference {
 public:
  WaitInference(const WorkNodes& nodes, Work& work) : nodes_(nodes), work_(work) {
    for (std::size_t s = 0; s < nodes.streams(); ++s) {
      bool computes = false;
      for (std::uint32_t node = nodes.begin(s); node < nodes.end(s) && !computes; ++node)
        computes = work.kind[node] == ActivityClass::compute;
      computes_.push_back(computes);
    }
  }

  void run() {
    const std::size_t recorded = work_.edges.size();
    for (std::size_t s = 0; s < nodes_.streams(); ++s) {
      for (std::uint32_t node = nodes_.begin(s); node < nodes_.end(s); ++node) look(s, node);
    }
    work_.inferred_edges += static_cast<std::int64_t>(work_.edges.size() - recorded);
  }

 private:
  void look(std::size_t stream, std::uint32_t node) {
    // Inside a graph the order is known.
    if (work_.launch[node] == kNoLaunch && nodes_.correlation(node) != 0 && node > 0 &&
        nodes_.correlation(node) == nodes_.correlation(node - 1))
      return;
    std::uint32_t asked_for = kNoNode;
    if (work_.kind[node] == ActivityClass::communication) asked_for = launched_before(stream, node);
    if (asked_for != kNoNode) add(node, asked_for);
    if (unexplained(stream, node, asked_for) <= kExplained) return;
    const std::uint32_t other = ended_before(stream, node);
    if (other != kNoNode && other != asked_for) add(node, other);
  }

  void add(std::uint32_t node, std::uint32_t source) {
    work_.edges.push_back({.node = node, .source = source, .kind = EdgeKind::inferred});
  }

  // By how much it starts later than what is known to bind it.
  Ns unexplained(std::size_t stream, std::uint32_t node, std::uint32_t source) const {
    const Latencies& usual = work_.latencies;
    Ns bound = std::numeric_limits<Ns>::min();
    if (node > nodes_.begin(stream)) bound = work_.end[node - 1] + usual.stream;
    if (work_.launch[node] != kNoLaunch) bound = std::max(bound, work_.launch[node] + usual.launch);
    if (source != kNoNode) bound = std::max(bound, work_.end[source] + usual.event);
    if (bound == std::numeric_limits<Ns>::min()) return std::numeric_limits<Ns>::max();
    return work_.start[node] - bound;
  }

  Ns launch_of(std::uint32_t node) const {
    return work_.launch[node] != kNoLaunch ? work_.launch[node] : work_.start[node];
  }

  // The work that was launched last before it on another stream of its device that computes: a
  // kernel, or a copy between kernels. Streams of copies alone are nobody's current stream.
  std::uint32_t launched_before(std::size_t stream, std::uint32_t node) const {
    std::uint32_t best = kNoNode;
    for (std::size_t s = 0; s < nodes_.streams(); ++s) {
      if (s == stream || !computes_[s] || nodes_.device_of(s) != nodes_.device_of(stream)) continue;
      const std::uint32_t other =
          nodes_.last_launched_before(s, nodes_.correlation(node), launch_of(node));
      if (other == kNoNode || work_.kind[other] == ActivityClass::communication) continue;
      if (work_.end[other] > work_.start[node] + kEarly) continue;
      if (best == kNoNode || launch_of(other) > launch_of(best)) best = other;
    }
    return best;
  }

  // The work of other streams of its device that ended last before it started, and close to that.
  std::uint32_t ended_before(std::size_t stream, std::uint32_t node) const {
    std::uint32_t best = kNoNode;
    for (std::size_t s = 0; s < nodes_.streams(); ++s) {
      if (s == stream || nodes_.device_of(s) != nodes_.device_of(stream)) continue;
      // Ends ascend within a stream.
      std::uint32_t low = nodes_.begin(s);
      std::uint32_t high = nodes_.end(s);
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (work_.end[middle] <= work_.start[node] + kEarly) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low == nodes_.begin(s)) continue;
      const std::uint32_t other = low - 1;
      if (work_.end[other] < work_.start[node] - kNear) continue;
      if (work_.start[other] >= work_.start[node] || launch_of(other) > launch_of(node)) continue;
      if (best == kNoNode || work_.end[other] > work_.end[best]) best = other;
    }
    return best;
  }

  const WorkNodes& nodes_;
  Work& work_;
  std::vector<bool> computes_;  // by stream
};

}  // namespace

void find_recorded_waits(const WorkNodes& nodes, const EventSources& events, Work& work) {
  work.recorded_waits = !events.waits().empty();
  add_event_waits(nodes, events, work);
  add_graph_orders(nodes, work);
}

void infer_waits(const WorkNodes& nodes, Work& work) {
  if (!work.recorded_waits) WaitInference(nodes, work).run();
}

}  // namespace commlens
