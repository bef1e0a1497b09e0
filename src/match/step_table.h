// Per rank and step: how long it was, what the rank itself did in it, and which waiting came from
// it. What stragglers are found in.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

// One rank in one step.
struct RankStep {
  Ns window = 0;
  Ns compute = 0;                                  // any compute running
  Ns host = 0;                                     // idle with nothing queued, and copies
  std::int64_t exchanges = 0;                      // all-to-alls that it launched
  std::int64_t bytes = 0;                          // of its all-to-alls
  std::int64_t events = 0;                         // GPU activities that start in it
  std::array<WaitSums, kCauseCount> originated{};  // waiting of others that came from it
};

class StepTable {
 public:
  explicit StepTable(const Job& job);

  // Steps that are looked at, by number; a recording without steps counts as one, -1.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  std::optional<std::int64_t> left_out() const { return left_out_; }
  // Rows of job.ranks that have figures.
  const std::vector<std::uint32_t>& ranks() const { return ranks_; }
  // `step` is a position in steps().
  const RankStep& at(std::uint32_t rank, std::size_t step) const { return cells_[rank][step]; }
  Ns gpu_time(std::size_t step) const { return gpu_time_[step]; }
  Ns gpu_time() const;
  // Position of a step's number; nothing where it is not looked at.
  std::optional<std::size_t> position(std::int64_t step) const;

 private:
  void choose_steps(const Job& job);
  void fill_times(const Job& job);
  void fill_bytes(const Job& job);
  void fill_origins(const Job& job);

  std::vector<std::int64_t> steps_;
  std::optional<std::int64_t> left_out_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::vector<RankStep>> cells_;  // by row of job.ranks, position of the step
  std::vector<Ns> gpu_time_;
};

// The lower median; 0 of nothing.
Ns median_of(std::vector<Ns> values);

}  // namespace commlens
