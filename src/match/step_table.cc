#include "match/step_table.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/saturated.h"

namespace commlens {
namespace {

// From this many steps on the first is left out: it holds warm-up and compilation, and ranks enter
// it at different times.
constexpr std::size_t kEnoughSteps = 4;

void add_times(const Breakdown& figures, RankStep& cell) {
  cell.window += figures.window.length();
  cell.compute += figures.compute_only + figures.hidden_comm;
  cell.host += figures.host_idle + figures.memory_only;
  cell.events += figures.gpu_events;
}

}  // namespace

Ns median_of(std::vector<Ns> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

StepTable::StepTable(const Job& job) {
  choose_steps(job);
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (job.ranks[rank].run == 0 && !job.ranks[rank].devices.empty()) ranks_.push_back(rank);
  }
  cells_.assign(job.ranks.size(), std::vector<RankStep>(steps_.size()));
  fill_times(job);
  fill_bytes(job);
  fill_origins(job);
  gpu_time_.assign(steps_.size(), 0);
  for (const std::uint32_t rank : ranks_) {
    for (std::size_t step = 0; step < steps_.size(); ++step)
      gpu_time_[step] += cells_[rank][step].window;
  }
}

void StepTable::choose_steps(const Job& job) {
  std::set<std::int64_t> numbers;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (const StepFigures& step : device.step_figures) numbers.insert(step.number);
    }
  }
  steps_.assign(numbers.begin(), numbers.end());
  if (steps_.size() >= kEnoughSteps) {
    left_out_ = steps_.front();
    steps_.erase(steps_.begin());
  }
  if (steps_.empty()) steps_.push_back(kUnknown);
}

std::optional<std::size_t> StepTable::position(std::int64_t step) const {
  const auto found = std::lower_bound(steps_.begin(), steps_.end(), step);
  if (found == steps_.end() || *found != step) return std::nullopt;
  return static_cast<std::size_t>(found - steps_.begin());
}

void StepTable::fill_times(const Job& job) {
  const bool whole = steps_.front() == kUnknown;
  for (const std::uint32_t rank : ranks_) {
    for (const DeviceTimeline& device : job.ranks[rank].devices) {
      if (whole) add_times(device.breakdown, cells_[rank][0]);
      for (const StepFigures& step : device.step_figures) {
        if (const auto at = position(step.number)) add_times(step.breakdown, cells_[rank][*at]);
      }
    }
  }
}

void StepTable::fill_bytes(const Job& job) {
  const bool whole = steps_.front() == kUnknown;
  for (const std::uint32_t rank : ranks_) {
    for (const DeviceTimeline& device : job.ranks[rank].devices) {
      for (const CommOp& op : device.comm) {
        if (op.op != Op::all_to_all) continue;
        const auto at = whole ? std::optional<std::size_t>(0) : position(op.step);
        if (!at) continue;
        ++cells_[rank][*at].exchanges;
        std::int64_t& bytes = cells_[rank][*at].bytes;
        bytes = saturated_sum(bytes, op.bytes.value_or(0));
      }
    }
  }
}

void StepTable::fill_origins(const Job& job) {
  for (const auto& [origin, sums] : job.waits.origins) {
    const auto at =
        steps_.front() == kUnknown ? std::optional<std::size_t>(0) : position(origin.step);
    if (at) cells_[origin.rank][*at].originated[static_cast<std::size_t>(origin.cause)] += sums;
  }
}

Ns StepTable::gpu_time() const {
  return std::accumulate(gpu_time_.begin(), gpu_time_.end(), Ns{0});
}

}  // namespace commlens
