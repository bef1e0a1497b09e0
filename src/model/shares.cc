#include "model/shares.h"

#include <algorithm>
#include <numeric>

namespace commlens {

std::vector<Ns> split_by_weight(Ns amount, const std::vector<Ns>& weights) {
  __extension__ using Wide = __int128;
  std::vector<Ns> parts(weights.size(), 0);
  const Wide sum = std::accumulate(weights.begin(), weights.end(), Wide{0});
  if (sum == 0) return parts;
  std::vector<Wide> remainders(weights.size());
  Ns left = amount;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Wide product = Wide{amount} * weights[i];
    parts[i] = static_cast<Ns>(product / sum);
    remainders[i] = product % sum;
    left -= parts[i];
  }
  // What is left is less than one for each: to the largest remainders, the first of equal ones.
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto larger = [&remainders](std::size_t a, std::size_t b) {
    return remainders[a] != remainders[b] ? remainders[a] > remainders[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(left), order.end(),
                    larger);
  for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i) ++parts[order[i]];
  return parts;
}

}  // namespace commlens
