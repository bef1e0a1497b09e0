// Problem: what would the step time be if a communication took half as long? Taking its saved time
// off the step is wrong: another dependency, hidden until now, takes over.
//
//   rank 0  [= a =][== ar ==]      [= c =]     c was bound by the all-reduce; with a faster one it
//   launch                  ^c                 is bound by its launch
//
// Method: instant = max over dependencies (their instant + latency) + residual. The residual is
// what the recorded instant has above that maximum; it is found on the way and kept, so that
// without a change every instant comes out as recorded. Latencies are typical ones, never larger
// than recorded: residuals are not negative but where clocks contradict each other.
//
// Cost: one pass over the graph, a few dependencies an item.
//
// When it is wrong: lengths are taken to be independent of what runs beside them; dependencies that
// nothing shows cannot take over.
#include "replay/replay.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace commlens {
namespace {

Ns scaled(Ns length, double factor) {
  return factor == 1 ? length : std::llround(static_cast<double>(length) * factor);
}

class Replayer {
 public:
  Replayer(const Graph& graph, const Assumption& assumption)
      : graph_(graph),
        assumption_(assumption),
        first_stretch_(static_cast<ItemId>(graph.nodes())),
        first_op_(static_cast<ItemId>(graph.nodes() + graph.stretches())) {
    take_recorded();
  }

  Outcome run() {
    for (const ItemId item : graph_.order()) {
      if (item < first_stretch_) {
        start(item);
      } else if (item < first_op_) {
        resume(item - first_stretch_);
      } else {
        leave(item - first_op_);
      }
    }
    find_window();
    return std::move(outcome_);
  }

 private:
  // What contradicts the others is left where it was.
  void take_recorded() {
    outcome_.start.reserve(graph_.nodes());
    outcome_.end.reserve(graph_.nodes());
    for (std::uint32_t rank = 0; rank < graph_.job().ranks.size(); ++rank) {
      const Work& work = graph_.work(rank);
      for (const Ns time : work.start) outcome_.start.push_back(time);
      for (const Ns time : work.end) outcome_.end.push_back(time);
      for (const HostStretch& stretch : work.stretches) outcome_.stretches.push_back(stretch.start);
    }
  }

  struct Latest {
    Ns recorded = std::numeric_limits<Ns>::min();
    Ns now = std::numeric_limits<Ns>::min();
    void add(Ns was, Ns is) {
      recorded = std::max(recorded, was);
      now = std::max(now, is);
    }
    // A dependency that is no more.
    void drop(Ns was) { recorded = std::max(recorded, was); }
    // The recorded instant, moved as its dependencies were; in its place where there are none.
    Ns moved(Ns instant) const {
      return now == std::numeric_limits<Ns>::min() ? instant : now + (instant - recorded);
    }
  };

  // Of an item of this rank, and so on this rank itself.
  void add(Latest& latest, std::uint32_t rank, const Dependency& dependency,
           bool dropped = false) const {
    Ns was = 0;
    Ns is = 0;
    if (dependency.of == Dependency::Of::node_end) {
      was = graph_.work(rank).end[graph_.local(rank, dependency.item)] + dependency.latency;
      is = outcome_.end[dependency.item] + dependency.latency;
    } else {
      const Ns after = dependency.offset + dependency.latency;
      was = graph_.stretch(rank, dependency.item).start + after;
      is = outcome_.stretches[dependency.item] + after;
    }
    if (dropped) return latest.drop(was);
    latest.add(was, is);
  }

  static bool says(const std::vector<bool>& by_rank, std::uint32_t rank) {
    return !by_rank.empty() && by_rank[rank];
  }

  static bool contains(const std::vector<ItemId>& nodes, ItemId node) {
    return std::binary_search(nodes.begin(), nodes.end(), node);
  }

  // The activity before on the stream that it would be on: of two streams made of one, each holds
  // what was not taken to the other.
  void follow_stream(Latest& latest, ItemId node, Dependency dependency) const {
    const std::uint32_t rank = graph_.rank_of_node(node);
    const std::vector<std::uint32_t>& begins = graph_.work(rank).stream_begins;
    const std::uint32_t local = graph_.local(rank, node);
    const std::uint32_t first = *std::prev(std::upper_bound(begins.begin(), begins.end(), local));
    add(latest, rank, dependency, true);
    const bool moved = contains(assumption_.on_own_stream, node);
    for (std::uint32_t before = local; before-- > first;) {
      dependency.item = graph_.node(rank, before);
      if (contains(assumption_.on_own_stream, dependency.item) != moved) continue;
      Latest usual;
      add(usual, rank, dependency);
      latest.now = std::max(latest.now, usual.now);
      return;
    }
  }

  double kernel_factor(std::uint32_t rank, ItemId node) const {
    double factor = assumption_.compute.empty() ? 1 : assumption_.compute[rank];
    auto own =
        std::lower_bound(assumption_.kernels.begin(), assumption_.kernels.end(), node,
                         [](const auto& kernel, ItemId wanted) { return kernel.first < wanted; });
    for (; own != assumption_.kernels.end() && own->first == node; ++own) factor *= own->second;
    return factor;
  }

  void start(ItemId node) {
    const std::uint32_t rank = graph_.rank_of_node(node);
    const std::uint32_t local = graph_.local(rank, node);
    const Work& work = graph_.work(rank);
    Latest latest;
    const bool in_time =
        says(assumption_.host_in_time, rank) || contains(assumption_.launched_in_time, node);
    graph_.start_dependencies(node, [&](const Dependency& dependency) {
      if (dependency.reason == Reason::stream && !assumption_.on_own_stream.empty())
        return follow_stream(latest, node, dependency);
      add(latest, rank, dependency, dependency.reason == Reason::launch && in_time);
    });
    if (in_time && latest.now == std::numeric_limits<Ns>::min()) {
      if (const auto before = graph_.launched_before(node)) latest.now = outcome_.start[*before];
    }
    outcome_.start[node] = latest.moved(work.start[local]);
    const Ns length = work.end[local] - work.start[local];
    Ns now = length;
    if (work.kind[local] == ActivityClass::compute) now = scaled(length, kernel_factor(rank, node));
    if (work.kind[local] == ActivityClass::communication) now = alone(rank, local, length);
    outcome_.end[node] = outcome_.start[node] + now;
  }

  // A communication's length as far as it depends on nobody; its operation sets the end later.
  Ns alone(std::uint32_t rank, std::uint32_t local, Ns length) const {
    const double factor = factor_of(rank, local);
    return factor == Assumption::kRemoved ? 0 : scaled(length, factor);
  }

  double factor_of(std::uint32_t rank, std::uint32_t local) const {
    if (assumption_.transfer.empty()) return 1;
    const std::vector<CommNode>& comm = graph_.work(rank).comm;
    const auto found =
        std::lower_bound(comm.begin(), comm.end(), local,
                         [](const CommNode& c, std::uint32_t n) { return c.node < n; });
    if (found == comm.end() || found->node != local) return 1;
    return assumption_.transfer[rank][static_cast<std::size_t>(found - comm.begin())];
  }

  void resume(ItemId stretch) {
    const std::uint32_t rank = graph_.rank_of_stretch(stretch);
    Latest latest;
    graph_.stretch_dependencies(stretch, [&](const Dependency& dependency) {
      const bool waits =
          dependency.reason == Reason::sync || dependency.reason == Reason::inferred_sync;
      add(latest, rank, dependency, waits && says(assumption_.host_runs_ahead, rank));
    });
    outcome_.stretches[stretch] = latest.moved(graph_.stretch(stretch).start);
  }

  // Every member leaves when the last that it needs has come, and the transfer has taken its time.
  void leave(std::size_t op) {
    const auto members = graph_.members(op);
    for (std::uint32_t part = 0; part < members.size(); ++part) {
      const ItemId node = members[part];
      if (node == kNoNode) continue;
      const std::uint32_t rank = graph_.rank_of_node(node);
      const std::uint32_t local = graph_.local(rank, node);
      const Work& work = graph_.work(rank);
      const double factor = factor_of(rank, local);
      if (factor == Assumption::kRemoved) continue;  // its start has set the end
      Latest together;
      together.add(work.start[local], outcome_.start[node]);
      const Graph::Range needed = graph_.needed(op, part);
      for (std::uint32_t i = needed.first; i < needed.last; ++i) {
        if (members[i] == kNoNode) continue;
        const std::uint32_t other = graph_.rank_of_node(members[i]);
        together.add(graph_.work(other).start[graph_.local(other, members[i])],
                     outcome_.start[members[i]]);
      }
      const Ns transfer = work.end[local] - together.recorded;
      outcome_.end[node] = together.now + (transfer > 0 ? scaled(transfer, factor) : transfer);
    }
  }

  void find_window() {
    if (outcome_.start.empty()) return;
    outcome_.window = {std::numeric_limits<Ns>::max(), std::numeric_limits<Ns>::min()};
    for (const Ns time : outcome_.start)
      outcome_.window.start = std::min(outcome_.window.start, time);
    for (const Ns time : outcome_.end) outcome_.window.end = std::max(outcome_.window.end, time);
  }

  const Graph& graph_;
  const Assumption& assumption_;
  const ItemId first_stretch_;
  const ItemId first_op_;
  Outcome outcome_;
};

}  // namespace

Outcome replay(const Graph& graph, const Assumption& assumption) {
  return Replayer(graph, assumption).run();
}

}  // namespace commlens
