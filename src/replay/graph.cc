#include "replay/graph.h"

#include "model/semantics.h"

namespace commlens {
namespace {

std::uint32_t row_below(const std::vector<ItemId>& bases, ItemId item) {
  if (bases.size() == 2) return 0;  // one rank
  return static_cast<std::uint32_t>(std::upper_bound(bases.begin(), bases.end(), item) -
                                    bases.begin()) -
         1;
}

}  // namespace

Graph::Graph(const Job& job) : job_(job) {
  number();
  find_launched_before();
  find_members();
  sort_items();
}

std::uint32_t Graph::rank_of_node(ItemId node) const { return row_below(node_base_, node); }
std::uint32_t Graph::rank_of_stretch(ItemId stretch) const {
  return row_below(stretch_base_, stretch);
}

void Graph::number() {
  node_base_.push_back(0);
  stretch_base_.push_back(0);
  for (const RankTimeline& rank : job_.ranks) {
    node_base_.push_back(node_base_.back() + static_cast<ItemId>(rank.work.size()));
    stretch_base_.push_back(stretch_base_.back() + static_cast<ItemId>(rank.work.stretches.size()));
    has_edges_.emplace_back(rank.work.size());
    for (const WorkEdge& edge : rank.work.edges) has_edges_.back()[edge.node] = true;
  }
}

void Graph::find_launched_before() {
  for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
    const Work& work = this->work(rank);
    for (const std::uint32_t node : work.stream_begins) {
      if (node >= work.size() || has_edges_[rank][node] || work.launch[node] == kNoLaunch) continue;
      std::uint32_t before = kNoNode;
      for (std::uint32_t other = 0; other < work.size(); ++other) {
        const Ns launch = work.launch[other];
        if (launch != kNoLaunch && launch < work.launch[node] &&
            (before == kNoNode || launch > work.launch[before]))
          before = other;
      }
      if (before != kNoNode)
        launched_before_.emplace_back(this->node(rank, node), this->node(rank, before));
    }
  }
}

std::optional<ItemId> Graph::launched_before(ItemId node) const {
  const auto found =
      std::lower_bound(launched_before_.begin(), launched_before_.end(), node,
                       [](const auto& pair, ItemId wanted) { return pair.first < wanted; });
  if (found == launched_before_.end() || found->first != node) return std::nullopt;
  return found->second;
}

void Graph::find_members() {
  const Matching& matching = job_.matching;
  // By rank and device: node of each communication.
  std::vector<std::vector<std::vector<std::uint32_t>>> node_of(job_.ranks.size());
  for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
    const RankTimeline& rank = job_.ranks[row];
    memberships_.emplace_back(rank.work.comm.size());
    for (const DeviceTimeline& device : rank.devices)
      node_of[row].emplace_back(device.comm.size(), kNoNode);
    for (std::uint32_t i = 0; i < rank.work.comm.size(); ++i)
      node_of[row][rank.work.comm[i].device][rank.work.comm[i].op] = i;
  }
  part_nodes_.assign(matching.parts.size(), kNoNode);
  zero_split_.resize(matching.ops.size());
  for (std::size_t op = 0; op < matching.ops.size(); ++op) {
    const MatchedOp& matched = matching.ops[op];
    if (matched.count < 2) continue;
    for (std::uint32_t i = 0; i < matched.count; ++i) {
      const Part& part = matching.parts[matched.first + i];
      if (job_.ranks[part.rank].devices[part.device].comm[part.op].zero_split)
        zero_split_[op] = true;
      const std::uint32_t comm = node_of[part.rank][part.device][part.op];
      if (comm == kNoNode) continue;
      // A kernel of several calls is in several operations: its end is taken from the first.
      Membership& membership = memberships_[part.rank][comm];
      if (membership.op >= 0) continue;
      membership = {.op = static_cast<std::int32_t>(op), .part = i};
      part_nodes_[matched.first + i] = node(part.rank, job_.ranks[part.rank].work.comm[comm].node);
    }
  }
}

Graph::Membership Graph::membership(std::uint32_t rank, std::uint32_t local) const {
  const std::vector<CommNode>& comm = work(rank).comm;
  const auto found =
      std::lower_bound(comm.begin(), comm.end(), local,
                       [](const CommNode& c, std::uint32_t n) { return c.node < n; });
  if (found == comm.end() || found->node != local) return {};
  return memberships_[rank][static_cast<std::size_t>(found - comm.begin())];
}

Graph::Range Graph::needed(std::size_t op, std::uint32_t part) const {
  const MatchedOp& matched = job_.matching.ops[op];
  if (matched.pair && part == 0) return sender_is_held(op) ? Range{1, 2} : Range{};
  switch (needs_of(matched, part, zero_split_[op])) {
    case Needs::everyone: return {0, matched.count};
    case Needs::root:
      return {static_cast<std::uint32_t>(matched.root),
              static_cast<std::uint32_t>(matched.root) + 1};
    case Needs::source: return {0, 1};
    default: return {};
  }
}

// A small send leaves before its receiver comes, a large one with it: which it was shows by when
// it left.
bool Graph::sender_is_held(std::size_t op) const {
  const std::span<const ItemId> both = members(op);
  if (both.size() < 2 || both[0] == kNoNode || both[1] == kNoNode) return false;
  const std::uint32_t sends = rank_of_node(both[0]);
  const std::uint32_t receives = rank_of_node(both[1]);
  const Ns left = work(sends).end[local(sends, both[0])];
  const std::uint32_t receiver = local(receives, both[1]);
  const Ns came = work(receives).start[receiver];
  const Ns received = work(receives).end[receiver];
  return left > came + (received - came) / 2;
}

// Depth first, by a stack of our own: an item is written down behind everything that it needs.
void Graph::sort_items() {
  enum State : std::uint8_t { unseen, open, done };
  const auto first_stretch = static_cast<ItemId>(nodes());
  const auto first_op = static_cast<ItemId>(nodes() + stretches());
  const std::size_t count = first_op + job_.matching.ops.size();
  std::vector<State> state(count, unseen);
  std::vector<ItemId> stack;
  order_.reserve(count);

  const auto need = [&](ItemId item) {
    if (state[item] == unseen) stack.push_back(item);
    if (state[item] == open) ++contradictions_;
  };
  // The end of a node: when it has begun, or when its operation has let it go.
  const auto need_end = [&](ItemId node) {
    const std::uint32_t rank = rank_of_node(node);
    const std::uint32_t own = local(rank, node);
    const Membership in =
        work(rank).kind[own] == ActivityClass::communication ? membership(rank, own) : Membership{};
    need(in.op >= 0 ? first_op + static_cast<ItemId>(in.op) : node);
  };
  const auto need_dependency = [&](const Dependency& dependency) {
    if (dependency.of == Dependency::Of::stretch) return need(first_stretch + dependency.item);
    need_end(dependency.item);
  };
  const auto open_item = [&](ItemId item) {
    if (item < first_stretch) {
      if (const auto before = launched_before(item)) need(*before);
      return start_dependencies(item, need_dependency);
    }
    if (item < first_op) return stretch_dependencies(item - first_stretch, need_dependency);
    for (const ItemId member : members(item - first_op)) {
      if (member != kNoNode) need(member);
    }
  };
  for (ItemId item = 0; item < count; ++item) {
    if (state[item] == unseen) stack.push_back(item);
    while (!stack.empty()) {
      const ItemId top = stack.back();
      if (state[top] == unseen) {
        state[top] = open;
        open_item(top);
        continue;
      }
      stack.pop_back();
      if (state[top] == done) continue;
      state[top] = done;
      order_.push_back(top);
    }
  }
}

}  // namespace commlens
