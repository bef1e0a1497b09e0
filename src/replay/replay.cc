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

// Some nodes of a graph. Assumptions name thousands of nodes in a sorted list, and a replay asks
// for millions: a bit each.
class Marks {
 public:
  bool empty() const { return marked_.empty(); }
  bool operator[](ItemId node) const { return !marked_.empty() && marked_[node]; }
  void add(ItemId node, std::size_t nodes) {
    if (marked_.empty()) marked_.resize(nodes);
    marked_[node] = true;
  }

 private:
  std::vector<bool> marked_;
};

class Replayer {
 public:
  Replayer(const Constraints& constraints, const Assumption& assumption, Outcome& outcome)
      : graph_(constraints.graph()),
        constraints_(constraints),
        assumption_(assumption),
        first_stretch_(static_cast<ItemId>(graph_.nodes())),
        first_op_(static_cast<ItemId>(graph_.nodes() + graph_.stretches())),
        outcome_(outcome) {
    // What contradicts the others is left where it was.
    outcome_.start.clear();
    outcome_.start.reserve(graph_.nodes());
    for (std::uint32_t rank = 0; rank < graph_.job().ranks.size(); ++rank) {
      for (const Ns time : graph_.work(rank).start) outcome_.start.push_back(time);
    }
    outcome_.end = constraints.ends();
    for (const auto& [node, factor] : assumption.kernels) kernels_.add(node, graph_.nodes());
    for (const ItemId node : assumption.launched_in_time) in_time_.add(node, graph_.nodes());
    for (const ItemId node : assumption.on_own_stream) moved_.add(node, graph_.nodes());
  }

  void run() {
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
  }

 private:
  static bool says(const std::vector<bool>& by_rank, std::uint32_t rank) {
    return !by_rank.empty() && by_rank[rank];
  }

  Ns allowed(const Constraint& constraint) const {
    return outcome_.end[constraint.of] + constraint.after;
  }

  // Behind the activity before on the stream that it would be on: of two streams made of one, each
  // holds what was not taken to the other.
  Ns behind_on_stream(std::uint32_t rank, ItemId node, const Constraint& constraint) const {
    const std::vector<std::uint32_t>& begins = graph_.work(rank).stream_begins;
    const std::uint32_t local = graph_.local(rank, node);
    const ItemId first =
        graph_.node(rank, *std::prev(std::upper_bound(begins.begin(), begins.end(), local)));
    for (ItemId before = node; before-- > first;) {
      if (moved_[before] == moved_[node]) return outcome_.end[before] + constraint.after;
    }
    return kNoInstant;
  }

  // By how much earlier the rank's thread is at that instant of a stretch.
  Ns spared_before(std::uint32_t rank, std::uint32_t stretch, Ns instant) const {
    if (assumption_.spared.empty()) return 0;
    const std::vector<SparedCall>& calls = assumption_.spared[rank];
    const auto behind = std::lower_bound(calls.begin(), calls.end(), std::pair(stretch, instant),
                                         [](const SparedCall& call, const auto& wanted) {
                                           return std::pair(call.stretch, call.at) < wanted;
                                         });
    if (behind == calls.begin() || std::prev(behind)->stretch != stretch) return 0;
    return std::prev(behind)->until;
  }

  // A stretch that goes on from another, its thread's own or one that handed work over.
  Ns spared_before(std::uint32_t rank, std::uint32_t stretch, const Constraint& constraint) const {
    if (assumption_.spared.empty() || constraint.of < first_stretch_) return 0;
    const std::uint32_t from = graph_.local_stretch(rank, constraint.of - first_stretch_);
    const HostStretch& own = graph_.work(rank).stretches[stretch];
    return spared_before(rank, from, from == own.before ? own.call : own.other_at);
  }

  double kernel_factor(std::uint32_t rank, ItemId node) const {
    double factor = assumption_.compute.empty() ? 1 : assumption_.compute[rank];
    if (!kernels_[node]) return factor;
    auto own =
        std::lower_bound(assumption_.kernels.begin(), assumption_.kernels.end(), node,
                         [](const auto& kernel, ItemId wanted) { return kernel.first < wanted; });
    for (; own != assumption_.kernels.end() && own->first == node; ++own) factor *= own->second;
    return factor;
  }

  void start(ItemId node) {
    const std::uint32_t rank = graph_.rank_of_node(node);
    const std::uint32_t local = graph_.local(rank, node);
    const bool in_time = says(assumption_.host_in_time, rank) || in_time_[node];
    Ns now = kNoInstant;
    const Constraints::Rank& table = constraints_.rank(rank);
    for (std::size_t i = table.node_begins[local]; i < table.node_begins[local + 1]; ++i) {
      const Constraint constraint = table.list[i];
      if (constraint.kind == Constraint::Kind::launch && in_time) continue;
      const bool follows = constraint.kind == Constraint::Kind::stream && !moved_.empty();
      Ns instant = follows ? behind_on_stream(rank, node, constraint) : allowed(constraint);
      if (constraint.kind == Constraint::Kind::launch && !assumption_.spared.empty())
        instant -=
            spared_before(rank, graph_.work(rank).stretch[local], graph_.work(rank).launch[local]);
      now = std::max(now, instant);
    }
    if (now == kNoInstant && in_time) {
      if (const auto before = graph_.launched_before(node))
        now = outcome_.start[*before] + constraints_.residual(node);
    }
    // Until now as recorded, and there it stays if nothing holds it.
    const Ns length = constraints_.ends()[node] - outcome_.start[node];
    if (now != kNoInstant) outcome_.start[node] = now;
    outcome_.end[node] = outcome_.start[node] + alone(rank, node, length);
  }

  // How long it takes as far as that depends on nobody; a communication's operation sets the end
  // later.
  Ns alone(std::uint32_t rank, ItemId node, Ns length) const {
    const std::uint32_t local = graph_.local(rank, node);
    const ActivityClass kind = graph_.work(rank).kind[local];
    if (kind == ActivityClass::compute) return scaled(length, kernel_factor(rank, node));
    if (kind == ActivityClass::memory) return length;
    const double factor = transfer_factor(rank, local);
    return factor == Assumption::kRemoved ? 0 : scaled(length, factor);
  }

  double transfer_factor(std::uint32_t rank, std::uint32_t local) const {
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
    const bool runs_ahead = says(assumption_.host_runs_ahead, rank);
    Ns now = kNoInstant;
    const Constraints::Rank& table = constraints_.rank(rank);
    const std::uint32_t local = graph_.local_stretch(rank, stretch);
    for (std::size_t i = table.stretch_begins[local]; i < table.stretch_begins[local + 1]; ++i) {
      const Constraint constraint = table.list[i];
      if (constraint.kind == Constraint::Kind::wait_of_host && runs_ahead) continue;
      now = std::max(now, allowed(constraint) - spared_before(rank, local, constraint));
    }
    if (now != kNoInstant) outcome_.end[first_stretch_ + stretch] = now;
  }

  // Every member leaves when the last that it needs has come, and the transfer has taken its time.
  void leave(std::size_t op) {
    const auto members = graph_.members(op);
    const std::uint32_t first_part = graph_.job().matching.ops[op].first;
    Graph::Range last_range;
    Ns last_comes = kNoInstant;
    for (std::uint32_t part = 0; part < members.size(); ++part) {
      const ItemId node = members[part];
      if (node == kNoNode) continue;
      const std::uint32_t rank = graph_.job().matching.parts[first_part + part].rank;
      const double factor = transfer_factor(rank, graph_.local(rank, node));
      if (factor == Assumption::kRemoved) continue;  // its start has set the end
      const Leave& leave = constraints_.leave(op, part);
      if (leave.needed != last_range) {  // most often all need all
        last_range = leave.needed;
        last_comes = kNoInstant;
        for (std::uint32_t i = last_range.first; i < last_range.last; ++i) {
          if (members[i] != kNoNode) last_comes = std::max(last_comes, outcome_.start[members[i]]);
        }
      }
      const Ns transfer = leave.transfer > 0 ? scaled(leave.transfer, factor) : leave.transfer;
      outcome_.end[node] = std::max(last_comes, outcome_.start[node]) + transfer;
    }
  }

  void find_window() {
    outcome_.window = {};
    if (outcome_.start.empty()) return;
    const auto last = outcome_.end.begin() + static_cast<std::ptrdiff_t>(outcome_.start.size());
    outcome_.window = {*std::min_element(outcome_.start.begin(), outcome_.start.end()),
                       *std::max_element(outcome_.end.begin(), last)};
  }

  const Graph& graph_;
  const Constraints& constraints_;
  const Assumption& assumption_;
  const ItemId first_stretch_;
  const ItemId first_op_;
  Outcome& outcome_;
  Marks kernels_;  // that Assumption::kernels names
  Marks in_time_;  // and its others
  Marks moved_;
};

}  // namespace

Outcome replay(const Constraints& constraints, const Assumption& assumption) {
  Outcome outcome;
  replay(constraints, assumption, outcome);
  return outcome;
}

void replay(const Constraints& constraints, const Assumption& assumption, Outcome& outcome) {
  Replayer(constraints, assumption, outcome).run();
}

Outcome replay(const Graph& graph, const Assumption& assumption) {
  return replay(Constraints(graph), assumption);
}

}  // namespace commlens
