// Problem: a rank can be late because its GPU is slow (heat, clocks) or because it has more to do.
// Method: kernels of one name are compared by their mean time; the weighted median of these ratios
// over the names is the rank's pace, which a few kernels with other shapes do not move. When it is
// wrong: where one name stands for other shapes on every rank, shapes are taken for pace.
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

}  // namespace commlens
