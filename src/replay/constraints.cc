#include "replay/constraints.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/parallel.h"

namespace commlens {
namespace {

constexpr ItemId kLastItem = (ItemId{1} << 30U) - 1;

Constraint::Kind kind_of(Reason reason) {
  switch (reason) {
    case Reason::stream: return Constraint::Kind::stream;
    case Reason::launch: return Constraint::Kind::launch;
    case Reason::sync:
    case Reason::inferred_sync: return Constraint::Kind::wait_of_host;
    default: return Constraint::Kind::fixed;
  }
}

}  // namespace

void ConstraintList::push_back(const Constraint& constraint) {
  const bool near =
      constraint.after > kFar && constraint.after <= std::numeric_limits<std::int32_t>::max();
  if (!near) far_.emplace_back(rows_.size(), constraint.after);
  Row& row = rows_.emplace_back();
  row.after = near ? static_cast<std::int32_t>(constraint.after) : kFar;
  row.of = constraint.of & kLastItem;
  row.kind = static_cast<std::uint32_t>(constraint.kind) & 3U;
}

Ns ConstraintList::far(std::size_t i) const {
  return std::lower_bound(far_.begin(), far_.end(), std::pair{i, kNoInstant})->second;
}

Constraints::Constraints(const Graph& graph, unsigned threads)
    : graph_(graph), ranks_(graph.job().ranks.size()), leaves_(find_leaves(graph)) {
  if (graph.nodes() + graph.stretches() > kLastItem)
    throw Error(ErrorKind::input, "more than a billion activities are too many for one replay");
  take_recorded();
  for_each_parallel(ranks_.size(), threads,
                    [this](std::size_t rank) { constrain(static_cast<std::uint32_t>(rank)); });
}

void Constraints::take_recorded() {
  ends_.reserve(graph_.nodes() + graph_.stretches());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const Ns time : graph_.work(rank).end) ends_.push_back(time);
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const HostStretch& stretch : graph_.work(rank).stretches) ends_.push_back(stretch.start);
  }
}

Constraint Constraints::without_residual(const Dependency& dependency) const {
  const Constraint::Kind kind = kind_of(dependency.reason);
  if (dependency.of == Dependency::Of::node_end)
    return {.after = dependency.latency, .of = dependency.item, .kind = kind};
  return {.after = dependency.offset + dependency.latency,
          .of = static_cast<ItemId>(graph_.nodes()) + dependency.item,
          .kind = kind};
}

// Two passes an item: its residual is known when all of its dependencies are.
void Constraints::constrain(std::uint32_t rank) {
  const Work& work = graph_.work(rank);
  Rank& table = ranks_[rank];
  std::vector<Constraint> open;  // of one item
  Ns latest = kNoInstant;
  const auto add = [&](const Dependency& dependency) {
    open.push_back(without_residual(dependency));
    latest = std::max(latest, ends_[open.back().of] + open.back().after);
  };
  const auto finish = [&](Ns instant) {
    for (Constraint& constraint : open) {
      constraint.after += instant - latest;
      table.list.push_back(constraint);
    }
    open.clear();
    latest = kNoInstant;
  };

  // At most: a list that grows would hold its old and its new memory for a moment.
  table.list.reserve(2 * work.size() + work.edges.size() + work.host_edges.size() +
                     2 * work.stretches.size());
  table.node_begins.reserve(work.size() + 1);
  for (std::uint32_t node = 0; node < work.size(); ++node) {
    table.node_begins.push_back(static_cast<std::uint32_t>(table.list.size()));
    const ItemId item = graph_.node(rank, node);
    graph_.start_dependencies(item, add);
    finish(work.start[node]);
  }
  table.node_begins.push_back(static_cast<std::uint32_t>(table.list.size()));
  table.stretch_begins.reserve(work.stretches.size() + 1);
  for (std::uint32_t stretch = 0; stretch < work.stretches.size(); ++stretch) {
    table.stretch_begins.push_back(static_cast<std::uint32_t>(table.list.size()));
    const ItemId item = graph_.stretch_of(rank, stretch);
    graph_.stretch_dependencies(item, add);
    finish(ends_[graph_.nodes() + item]);
  }
  table.stretch_begins.push_back(static_cast<std::uint32_t>(table.list.size()));
}

Ns Constraints::residual(ItemId node) const {
  Ns latest = kNoInstant;
  graph_.start_dependencies(node, [&](const Dependency& dependency) {
    const Constraint constraint = without_residual(dependency);
    latest = std::max(latest, ends_[constraint.of] + constraint.after);
  });
  const std::uint32_t rank = graph_.rank_of_node(node);
  return latest == kNoInstant ? 0 : graph_.work(rank).start[graph_.local(rank, node)] - latest;
}

}  // namespace commlens
