// A rank's compute against its peers', step by step: a GPU that is slow now and then is slow in
// those steps only.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "replay/replay.h"

namespace commlens {

// What is compared once for all ranks of a run. Rows are those of Job::ranks.
class Paces {
 public:
  // `graph` must outlive this.
  explicit Paces(const Graph& graph);

  // How many times as long the rank's kernels would take at the pace of its peers: for each kernel,
  // the median over the other ranks of its mean length. Kernels that no other rank runs stay.
  // `alike`: rows that are compared with others only, as they are to be changed, too.
  double pace(std::uint32_t row, const std::vector<std::uint32_t>& alike) const;
  // Adds that of each step to the kernels of the assumption.
  void at_pace_of_peers(std::uint32_t row, const std::vector<std::uint32_t>& alike,
                        Assumption& assumption) const;
  // The same for as much compute as the median of the others has; no more than it has.
  void at_load_of_others(std::uint32_t row, const std::vector<std::uint32_t>& alike,
                         Assumption& assumption) const;

 private:
  struct Sum {
    Ns total = 0;
    std::int64_t count = 0;
  };
  using ByName = std::map<std::string_view, Sum>;
  // One rank's, by number of step; kUnknown: outside all.
  struct Rank {
    std::vector<std::pair<std::int64_t, Interval>> steps;  // on the common time, by start
    std::map<std::int64_t, ByName> kernels;
    std::map<std::int64_t, Ns> compute;
  };

  std::int64_t step_of(std::uint32_t row, Ns start) const;
  std::vector<std::uint32_t> others(std::uint32_t row,
                                    const std::vector<std::uint32_t>& alike) const;
  Sum at_peers(std::uint32_t row, std::int64_t step,
               const std::vector<std::uint32_t>& others) const;
  void apply(std::uint32_t row, const std::map<std::int64_t, double>& factors,
             Assumption& assumption) const;

  const Graph& graph_;
  std::vector<Rank> ranks_;
};

}  // namespace commlens
