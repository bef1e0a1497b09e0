#include "replay/pace.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace commlens {
namespace {

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Windows of the steps on the time that the graph is on.
std::vector<std::pair<std::int64_t, Interval>> steps_of(const Job& job, std::size_t row) {
  std::vector<std::pair<std::int64_t, Interval>> steps;
  if (job.ranks[row].devices.empty()) return steps;
  const auto common = [&](Ns time) {
    return job.clocks.known ? job.clocks.common(row, time) : time;
  };
  for (const auto& [number, window] : job.ranks[row].devices.front().steps)
    steps.emplace_back(number, Interval{common(window.start), common(window.end)});
  std::sort(steps.begin(), steps.end(),
            [](const auto& a, const auto& b) { return a.second.start < b.second.start; });
  return steps;
}

}  // namespace

Paces::Paces(const Graph& graph) : graph_(graph), ranks_(graph.job().ranks.size()) {
  for (std::uint32_t row = 0; row < ranks_.size(); ++row) {
    const RankTimeline& rank = graph.job().ranks[row];
    Rank& sums = ranks_[row];
    sums.steps = steps_of(graph.job(), row);
    std::map<std::int64_t, std::unordered_map<std::uint32_t, Sum>> by_id;
    const Work& work = rank.work;
    for (std::uint32_t i = 0; i < work.size(); ++i) {
      if (work.kind[i] != ActivityClass::compute) continue;
      const std::int64_t step = step_of(row, work.start[i]);
      const Ns length = work.end[i] - work.start[i];
      sums.compute[step] += length;
      if (!work.name[i].valid()) continue;
      Sum& sum = by_id[step][static_cast<std::uint32_t>(work.name[i].index())];
      sum.total += length;
      ++sum.count;
    }
    for (const auto& [step, names] : by_id) {
      for (const auto& [id, sum] : names)
        sums.kernels[step][rank.recording.strings.get(StringId::from(id))] = sum;
    }
  }
}

std::int64_t Paces::step_of(std::uint32_t row, Ns start) const {
  const auto& steps = ranks_[row].steps;
  const auto behind =
      std::upper_bound(steps.begin(), steps.end(), start,
                       [](Ns at, const auto& step) { return at < step.second.start; });
  if (behind == steps.begin()) return kUnknown;
  const auto& [number, window] = *std::prev(behind);
  return start < window.end ? number : kUnknown;
}

// Those that stay as they are; all others where none does.
std::vector<std::uint32_t> Paces::others(std::uint32_t row,
                                         const std::vector<std::uint32_t>& alike) const {
  std::vector<std::uint32_t> stay;
  std::vector<std::uint32_t> all;
  for (std::uint32_t other = 0; other < ranks_.size(); ++other) {
    if (other == row || graph_.job().ranks[other].run > 0) continue;
    all.push_back(other);
    if (std::find(alike.begin(), alike.end(), other) == alike.end()) stay.push_back(other);
  }
  return stay.empty() ? all : stay;
}

// What its kernels of a step take now (`total`), and would take, which is in `count`.
Paces::Sum Paces::at_peers(std::uint32_t row, std::int64_t step,
                           const std::vector<std::uint32_t>& others) const {
  Sum sum;
  double then = 0;
  for (const auto& [name, own] : ranks_[row].kernels.at(step)) {
    sum.total += own.total;
    std::vector<double> means;
    for (const std::uint32_t other : others) {
      const auto of_step = ranks_[other].kernels.find(step);
      if (of_step == ranks_[other].kernels.end()) continue;
      const auto found = of_step->second.find(name);
      if (found != of_step->second.end())
        means.push_back(static_cast<double>(found->second.total) /
                        static_cast<double>(found->second.count));
    }
    then += means.empty() ? static_cast<double>(own.total)
                          : median(means) * static_cast<double>(own.count);
  }
  sum.count = std::llround(then);
  return sum;
}

double Paces::pace(std::uint32_t row, const std::vector<std::uint32_t>& alike) const {
  const std::vector<std::uint32_t> peers = others(row, alike);
  double now = 0;
  double then = 0;
  for (const auto& [step, kernels] : ranks_[row].kernels) {
    const Sum sum = at_peers(row, step, peers);
    now += static_cast<double>(sum.total);
    then += static_cast<double>(sum.count);
  }
  return now > 0 ? then / now : 1;
}

void Paces::apply(std::uint32_t row, const std::map<std::int64_t, double>& factors,
                  Assumption& assumption) const {
  const Work& work = graph_.work(row);
  for (std::uint32_t i = 0; i < work.size(); ++i) {
    if (work.kind[i] != ActivityClass::compute) continue;
    const auto factor = factors.find(step_of(row, work.start[i]));
    if (factor != factors.end() && factor->second != 1)
      assumption.kernels.emplace_back(graph_.node(row, i), factor->second);
  }
  std::sort(assumption.kernels.begin(), assumption.kernels.end());
}

void Paces::at_pace_of_peers(std::uint32_t row, const std::vector<std::uint32_t>& alike,
                             Assumption& assumption) const {
  const std::vector<std::uint32_t> peers = others(row, alike);
  std::map<std::int64_t, double> factors;
  for (const auto& [step, kernels] : ranks_[row].kernels) {
    const Sum sum = at_peers(row, step, peers);
    if (sum.total > 0)
      factors[step] = static_cast<double>(sum.count) / static_cast<double>(sum.total);
  }
  apply(row, factors, assumption);
}

void Paces::at_load_of_others(std::uint32_t row, const std::vector<std::uint32_t>& alike,
                              Assumption& assumption) const {
  std::map<std::int64_t, double> factors;
  for (const auto& [step, own] : ranks_[row].compute) {
    std::vector<double> theirs;
    for (const std::uint32_t other : others(row, alike)) {
      const auto found = ranks_[other].compute.find(step);
      if (found != ranks_[other].compute.end())
        theirs.push_back(static_cast<double>(found->second));
    }
    if (!theirs.empty() && own > 0)
      factors[step] = std::min(1.0, median(theirs) / static_cast<double>(own));
  }
  apply(row, factors, assumption);
}

}  // namespace commlens
