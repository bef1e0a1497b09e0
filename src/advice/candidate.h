// What finders look at, and what they hand over.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/finding.h"
#include "model/rank_hosts.h"
#include "model/transfer_fit.h"
#include "replay/combine.h"

namespace commlens {

// Something that could be changed about the run.
struct Candidate {
  Finding finding;      // without what the replay tells: severity and gains
  Assumption change;    // the run with the advice followed
  Ns least_window = 0;  // that the run takes all the same: bytes that are hidden are still moved
  // Names a rank, host or link that is later than the others. Of two that are about equally late,
  // neither gains anything before the other one is mended: they are replayed together as well.
  bool culprit = false;
};

// The run, and facts that several finders need.
class Scene {
 public:
  explicit Scene(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const Job& job() const { return graph_.job(); }
  std::int64_t steps() const { return steps_; }
  Ns step() const { return step_; }  // the job's window by step
  Ns per_step(Ns total) const { return total / steps_; }
  // Exposed time is known in the chosen window only, which `--steps` makes smaller than the run.
  Ns per_chosen_step(Ns total) const { return total / chosen_steps_; }

  // Calls `visit(row, i, op, matched)` with every communication of the graph: the row of its rank,
  // its row in Work::comm, itself, and the operation that it is part of, or null.
  template <class Visit>
  void each_communication(Visit visit) const {
    for (std::uint32_t row = 0; row < job().ranks.size(); ++row) {
      const RankTimeline& rank = job().ranks[row];
      for (std::size_t i = 0; i < rank.work.comm.size(); ++i) {
        const CommNode& comm = rank.work.comm[i];
        const std::int32_t op = graph_.membership(row, comm.node).op;
        visit(row, i, rank.devices[comm.device].comm[comm.op],
              op < 0 ? nullptr : &job().matching.ops[static_cast<std::size_t>(op)]);
      }
    }
  }

  // Null where the group is not known.
  const GroupIdentity* group_of(std::uint32_t row, const CommOp& op) const;
  // What all groups of its kind have in common: "dp groups (mesh_dp)", "groups of 4 ranks". What is
  // changed is changed for all of them: of equal groups one alone gains nothing.
  std::string groups_words(std::uint32_t row, const CommOp& op) const;
  TransferKind kind_of(const MatchedOp& op) const;
  const TransferFit* fit_of(const MatchedOp& op) const;  // null: none with a known alpha

 private:
  const Graph& graph_;
  std::int64_t steps_;
  std::int64_t chosen_steps_;
  Ns step_;
  RankHosts hosts_;
  std::vector<std::int64_t> hosts_of_group_;  // by row of Matching::groups
};

// One kind of advice.
struct Finder {
  std::string_view id;       // of its findings
  std::string_view summary;  // what it looks for
  std::vector<Candidate> (*find)(const Scene& scene);
  double least = 0;  // share of the window below which its model is not exact enough to be told
};

// All of them, what has a cause before what is a bound.
std::span<const Finder* const> finders();

}  // namespace commlens
