// The dependency graph of all ranks: what could not begin, or end, before what.
//
// Three kinds of items, numbered through: nodes (GPU activities, which begin), stretches (host
// threads, which go on after a wait) and operations (matched communications, whose members leave).
// Each waits for the latest of a few other instants plus what that typically takes. The graph holds
// no times of its own: `Work` of each rank has them, on the common clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/job.h"

namespace commlens {

using ItemId = std::uint32_t;

// What a dependency is, in the order in which ties are decided.
enum class Reason : std::uint8_t {
  stream,    // the activity before on the stream
  event,     // work of another stream that was waited for
  inferred,  // the same, not recorded
  graph,     // the kernel before in the CUDA graph
  launch,    // the call on the host
  thread,    // the host thread's own work before
  handover,  // another host thread
  sync,      // a blocking call waited for the GPU
  inferred_sync,
};

// An instant that another one depends on.
struct Dependency {
  enum class Of : std::uint8_t { node_end, stretch } of = Of::node_end;
  Reason reason = Reason::stream;
  ItemId item = 0;  // a node, or a stretch counted from 0
  Ns offset = 0;    // what is meant is this long after the stretch began
  Ns latency = 0;   // from there to what depends on it; typical, never more than was seen
};

class Graph {
 public:
  // `job` must outlive this and have its works placed on the common time.
  explicit Graph(const Job& job);

  const Job& job() const { return job_; }
  std::size_t nodes() const { return node_base_.back(); }
  std::size_t stretches() const { return stretch_base_.back(); }
  // Everything behind what it depends on: nodes, then nodes() + stretch, then nodes() +
  // stretches() + row of Matching::ops.
  const std::vector<ItemId>& order() const { return order_; }
  // Dependencies that contradict the others (times or matches that cannot be) and were left out of
  // the order.
  std::int64_t contradictions() const { return contradictions_; }

  std::uint32_t rank_of_node(ItemId node) const;
  std::uint32_t rank_of_stretch(ItemId stretch) const;
  ItemId node(std::uint32_t rank, std::uint32_t local) const { return node_base_[rank] + local; }
  ItemId stretch_of(std::uint32_t rank, std::uint32_t local) const {
    return stretch_base_[rank] + local;
  }
  std::uint32_t local(std::uint32_t rank, ItemId node) const {
    return static_cast<std::uint32_t>(node - node_base_[rank]);
  }
  std::uint32_t local_stretch(std::uint32_t rank, ItemId stretch) const {
    return static_cast<std::uint32_t>(stretch - stretch_base_[rank]);
  }
  const Work& work(std::uint32_t rank) const { return job_.ranks[rank].work; }
  const HostStretch& stretch(ItemId stretch) const {
    return this->stretch(rank_of_stretch(stretch), stretch);
  }
  // The same where its rank is known: dependencies of one rank's items stay on that rank.
  const HostStretch& stretch(std::uint32_t rank, ItemId stretch) const {
    return work(rank).stretches[stretch - stretch_base_[rank]];
  }

  // The operation that a communication's node is part of, and which part; -1 where it is in none.
  struct Membership {
    std::int32_t op = -1;
    std::uint32_t part = 0;
  };
  Membership membership(std::uint32_t rank, std::uint32_t local) const;
  // The nodes of an operation's parts, in their order; kNoNode where a part has none.
  std::span<const ItemId> members(std::size_t op) const {
    const MatchedOp& matched = job_.matching.ops[op];
    return {part_nodes_.data() + matched.first, matched.count};
  }
  // Which members of `op` part `part` cannot leave before: [first, last) of members(op). Empty
  // where it can leave by itself.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  Range needed(std::size_t op, std::uint32_t part) const;

  // Calls `visit` with each dependency of a node's start.
  template <class Visit>
  void start_dependencies(ItemId node, Visit visit) const;
  // ... of a stretch's begin.
  template <class Visit>
  void stretch_dependencies(ItemId stretch, Visit visit) const;
  // Of a node that depends on nothing but its launch: what its rank launched before it. Should
  // launches hold nothing up, it still begins no earlier than that. Nothing for other nodes.
  std::optional<ItemId> launched_before(ItemId node) const;

 private:
  bool sender_is_held(std::size_t op) const;
  void number();
  void find_launched_before();
  void find_members();
  void sort_items();

  const Job& job_;
  std::vector<ItemId> node_base_;                           // by rank; then the sum
  std::vector<ItemId> stretch_base_;                        // the same
  std::vector<ItemId> part_nodes_;                          // by row of Matching::parts
  std::vector<std::vector<Membership>> memberships_;        // by rank, then parallel to Work::comm
  std::vector<bool> zero_split_;                            // by operation: of any member
  std::vector<std::vector<bool>> has_edges_;                // by rank, by node
  std::vector<std::pair<ItemId, ItemId>> launched_before_;  // by node
  std::vector<ItemId> order_;
  std::int64_t contradictions_ = 0;
};

template <class Visit>
void Graph::start_dependencies(ItemId id, Visit visit) const {
  const std::uint32_t rank = rank_of_node(id);
  const Work& work = this->work(rank);
  const std::uint32_t node = local(rank, id);
  const Ns start = work.start[node];
  const auto capped = [start](Ns usual, Ns since) { return std::min(usual, start - since); };
  const bool first = std::binary_search(work.stream_begins.begin(), work.stream_begins.end(), node);
  if (!first)
    visit(Dependency{.of = Dependency::Of::node_end,
                     .reason = Reason::stream,
                     .item = id - 1,
                     .latency = capped(work.latencies.stream, work.end[node - 1])});
  if (has_edges_[rank][node]) {
    auto edge = std::lower_bound(work.edges.begin(), work.edges.end(), node,
                                 [](const WorkEdge& e, std::uint32_t n) { return e.node < n; });
    for (; edge != work.edges.end() && edge->node == node; ++edge) {
      const Ns since = work.end[edge->source];
      const bool graph = edge->kind == EdgeKind::graph;
      visit(Dependency{.of = Dependency::Of::node_end,
                       .reason = graph                              ? Reason::graph
                                 : edge->kind == EdgeKind::inferred ? Reason::inferred
                                                                    : Reason::event,
                       .item = this->node(rank, edge->source),
                       .latency = graph ? start - since : capped(work.latencies.event, since)});
    }
  }
  if (work.launch[node] != kNoLaunch && work.stretch[node] != kNoNode) {
    const std::uint32_t stretch = work.stretch[node];
    const bool communicates = work.kind[node] == ActivityClass::communication;
    const Ns usual = communicates ? work.latencies.comm_launch : work.latencies.launch;
    visit(Dependency{.of = Dependency::Of::stretch,
                     .reason = Reason::launch,
                     .item = stretch_base_[rank] + stretch,
                     .offset = work.launch[node] - work.stretches[stretch].start,
                     .latency = capped(usual, work.launch[node])});
  }
}

template <class Visit>
void Graph::stretch_dependencies(ItemId id, Visit visit) const {
  const std::uint32_t rank = rank_of_stretch(id);
  const Work& work = this->work(rank);
  const auto row = static_cast<std::uint32_t>(id - stretch_base_[rank]);
  const HostStretch& stretch = work.stretches[row];
  const auto capped = [&](Ns since) {
    return std::min(work.latencies.sync, stretch.start - since);
  };
  auto edge = std::lower_bound(work.host_edges.begin(), work.host_edges.end(), row,
                               [](const HostEdge& e, std::uint32_t r) { return e.stretch < r; });
  for (; edge != work.host_edges.end() && edge->stretch == row; ++edge)
    visit(Dependency{.of = Dependency::Of::node_end,
                     .reason = edge->inferred ? Reason::inferred_sync : Reason::sync,
                     .item = node(rank, edge->source),
                     .latency = capped(work.end[edge->source])});
  if (stretch.before != kNoNode)
    visit(Dependency{.of = Dependency::Of::stretch,
                     .reason = Reason::thread,
                     .item = stretch_base_[rank] + stretch.before,
                     .offset = stretch.call - work.stretches[stretch.before].start,
                     .latency = capped(stretch.call)});
  if (stretch.other != kNoNode)
    visit(Dependency{.of = Dependency::Of::stretch,
                     .reason = Reason::handover,
                     .item = stretch_base_[rank] + stretch.other,
                     .offset = stretch.other_at - work.stretches[stretch.other].start,
                     .latency = stretch.start - stretch.other_at});
}

}  // namespace commlens
