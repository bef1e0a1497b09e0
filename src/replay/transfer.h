// How long communications take to move their data, once everyone whom they need is there.
#pragma once

#include <vector>

#include "replay/graph.h"

namespace commlens {

// How a member leaves an operation: `transfer` after the last of those that it needs has come.
// Negative where clocks contradict each other.
struct Leave {
  Ns transfer = 0;
  Graph::Range needed;
};
// By row of Matching::parts; nothing for parts that the graph does not hold. Linear in the parts
// where members of an operation need the same others, as they do but for rooted ones.
std::vector<Leave> find_leaves(const Graph& graph);

// Answers for single communications; one that is in no operation takes as long as it was seen.
class Transfers {
 public:
  explicit Transfers(const Graph& graph) : graph_(graph), leaves_(find_leaves(graph)) {}
  Ns length(std::uint32_t rank, const CommNode& comm) const;

 private:
  const Graph& graph_;
  const std::vector<Leave> leaves_;
};

// Bytes have to be moved even where nobody waits for them: by rank, the longest that any of its
// streams transfers. `factors`: as Assumption::transfer.
std::vector<Ns> busiest_streams(const Graph& graph,
                                const std::vector<std::vector<double>>& factors);

}  // namespace commlens
