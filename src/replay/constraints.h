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
#include <utility>
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

// Constraints in half of their bytes: millions of them stand beside what the replays fill. Nearly
// all are within the 2 s that 32 bits hold; how far the others are stands aside.
class ConstraintList {
 public:
  void reserve(std::size_t size) { rows_.reserve(size); }
  std::size_t size() const { return rows_.size(); }
  void push_back(const Constraint& constraint);
  Constraint operator[](std::size_t i) const {
    const Row& row = rows_[i];
    return {.after = row.after == kFar ? far(i) : row.after,
            .of = row.of,
            .kind = static_cast<Constraint::Kind>(row.kind)};
  }

 private:
  static constexpr std::int32_t kFar = std::numeric_limits<std::int32_t>::min();
  struct Row {
    std::int32_t after = 0;
    std::uint32_t of : 30 = 0;
    std::uint32_t kind : 2 = 0;
  };
  static_assert(sizeof(Row) == 8);
  Ns far(std::size_t i) const;

  std::vector<Row> rows_;
  std::vector<std::pair<std::size_t, Ns>> far_;  // by row, ascending
};

class Constraints {
 public:
  // `graph` must outlive this. The same for any number of threads.
  explicit Constraints(const Graph& graph, unsigned threads = 1);

  // One rank's share; rows are local to the rank.
  struct Rank {
    std::vector<std::uint32_t> node_begins;  // of `list`, by node; then the end
    std::vector<std::uint32_t> stretch_begins;
    ConstraintList list;
  };

  const Graph& graph() const { return graph_; }
  const Rank& rank(std::uint32_t row) const { return ranks_[row]; }
  const Leave& leave(std::size_t op, std::uint32_t part) const {
    return leaves_[graph_.job().matching.ops[op].first + part];
  }
  // As recorded: ends by node, then begins by stretch. Starts stand in Work only: they are read
  // once a replay.
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
  std::vector<Ns> ends_;
};

}  // namespace commlens
