// Problem: a rank can be late because its GPU is slow (heat, clocks) or because it has more to do.
// Method: kernels of one name are compared by their mean time; the weighted median of these ratios
// over the names is the rank's pace, which a few kernels with other shapes do not move. More to do
// are more kernels of a name, by what they take. When it is wrong: where one name stands for other
// shapes on every rank, shapes are taken for pace; more work of as many kernels is not seen.
#include "match/kernel_pace.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

namespace commlens {
namespace {

struct Mean {
  std::uint32_t rank = 0;
  double time = 0;
};

// Of a rank's kernels. Names that take less than 0.5 % are not kept, so one may seem to be missing.
constexpr double kMoreTime = 0.01;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Weights by time; the value at which half of the weight is reached.
double weighted_median(std::vector<std::pair<double, Ns>>& values) {
  std::sort(values.begin(), values.end());
  Ns sum = 0;
  for (const auto& [value, weight] : values) sum += weight;
  Ns reached = 0;
  for (const auto& [value, weight] : values) {
    reached += weight;
    if (2 * reached >= sum) return value;
  }
  return values.back().first;
}

}  // namespace

std::vector<std::optional<double>> kernel_paces(const Job& job) {
  std::map<std::string_view, std::vector<Mean>> means;
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (const KernelTime& kernel : job.ranks[rank].kernel_times) {
      if (kernel.count > 0)
        means[kernel.name].push_back(
            {rank, static_cast<double>(kernel.total) / static_cast<double>(kernel.count)});
    }
  }
  std::map<std::string_view, double> usual;
  for (const auto& [name, ranks] : means) {
    std::vector<double> times;
    for (const Mean& mean : ranks) times.push_back(mean.time);
    if (times.size() >= 2) usual[name] = median(std::move(times));
  }
  std::vector<std::optional<double>> paces(job.ranks.size());
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    std::vector<std::pair<double, Ns>> ratios;
    for (const KernelTime& kernel : job.ranks[rank].kernel_times) {
      const auto found = usual.find(kernel.name);
      if (kernel.count == 0 || found == usual.end() || found->second <= 0) continue;
      const double mean = static_cast<double>(kernel.total) / static_cast<double>(kernel.count);
      ratios.emplace_back(mean / found->second, kernel.total);
    }
    if (!ratios.empty()) paces[rank] = weighted_median(ratios);
  }
  return paces;
}

bool has_more_kernels(const Job& job, std::uint32_t rank,
                      const std::vector<std::uint32_t>& others) {
  if (others.empty()) return false;
  std::map<std::string_view, std::vector<double>> counts;  // of the others that have it
  for (const std::uint32_t other : others) {
    for (const KernelTime& kernel : job.ranks[other].kernel_times)
      counts[kernel.name].push_back(static_cast<double>(kernel.count));
  }
  double time = 0;
  double more = 0;
  for (const KernelTime& kernel : job.ranks[rank].kernel_times) {
    if (kernel.count == 0) continue;
    std::vector<double> theirs = counts[kernel.name];
    theirs.resize(others.size());  // 0 where a rank does not have it
    const auto own = static_cast<double>(kernel.count);
    const auto total = static_cast<double>(kernel.total);
    more += std::max(0.0, own - median(std::move(theirs))) * total / own;
    time += total;
  }
  return more > kMoreTime * time;
}

}  // namespace commlens
