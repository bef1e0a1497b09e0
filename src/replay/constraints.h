// The dependency graph as a replay reads it: what no item can come before, and by how much.
//
// Worked out once for all replays of a run. A replay looks at every item, and asking the packed
// columns and edges of the graph again each time would cost several times as much as the replay.
//
//   graph          kernel 7 starts behind kernel 6 by 1 us, and behind its launch by 4 us;
//                  it began 2 us after the later of the two
//   constraints    kernel 7 starts 3 us behind the end of 6, 6 us behind the launch, or later
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "replay/graph.h"
#include "replay/transfer.h"

namespace commlens {

// Before every instant: the latest of none.
inline constexpr Ns kNoInstant = std::numeric_limits<Ns>::min();

struct Constraint {
  // Which assumption can lift it.
  enum class Kind : std::uint8_t { fixed, stream, launch, wait_of_host };
  Ns after = 0;   // no earlier than this long behind `of`: latency and residual (replay.cc)
  ItemId of = 0;  // the end of a node; nodes() + a stretch: its begin
  Kind kind = Kind::fixed;
};

class Constraints {
 public:
  // `graph` must outlive this. The same for any number of threads.
  explicit Constraints(const Graph& graph, unsigned threads = 1);

  static constexpr std::uint32_t kNoComm = ~std::uint32_t{0};

  // One rank's share; rows are local to the rank.
  struct Rank {
    std::vector<std::uint32_t> node_begins;  // of `list`, by node; then the end
    std::vector<std::uint32_t> stretch_begins;
    std::vector<Constraint> list;
    std::vector<std::uint32_t> comm_of;  // by node: row of Work::comm

    std::span<const Constraint> of_node(std::uint32_t node) const {
      return between(node_begins, node);
    }
    std::span<const Constraint> of_stretch(std::uint32_t stretch) const {
      return between(stretch_begins, stretch);
    }

   private:
    std::span<const Constraint> between(const std::vector<std::uint32_t>& begins,
                                        std::uint32_t row) const {
      return {list.data() + begins[row], begins[row + 1] - begins[row]};
    }
  };

  const Graph& graph() const { return graph_; }
  const Rank& rank(std::uint32_t row) const { return ranks_[row]; }
  const Leave& leave(std::size_t op, std::uint32_t part) const {
    return leaves_[graph_.job().matching.ops[op].first + part];
  }
  // As recorded: starts by node; ends by node, then begins by stretch.
  const std::vector<Ns>& starts() const { return starts_; }
  const std::vector<Ns>& ends() const { return ends_; }
  // By how much a node began after the last of what it depends on.
  Ns residual(ItemId node) const;

 private:
  void take_recorded();
  Constraint without_residual(const Dependency& dependency) const;
  void constrain(std::uint32_t rank);

  const Graph& graph_;
  std::vector<Rank> ranks_;
  std::vector<Leave> leaves_;  // by row of Matching::parts
  std::vector<Ns> starts_;
  std::vector<Ns> ends_;
};

}  // namespace commlens
