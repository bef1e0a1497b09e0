#include "model/shares.h"

#include <algorithm>
#include <numeric>

namespace commlens {
namespace {

__extension__ using Wide = __int128;

// The usual case, of which there are millions: all goes to one.
bool give_to_only_one(Ns amount, std::span<const Ns> weights, std::span<Ns> parts) {
  std::size_t only = weights.size();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    parts[i] = 0;
    if (weights[i] == 0) continue;
    if (only != weights.size()) return false;
    only = i;
  }
  if (only != weights.size()) parts[only] = amount;
  return true;
}

}  // namespace

void split_by_weight(Ns amount, std::span<const Ns> weights, std::span<Ns> parts) {
  if (amount == 0) {
    std::fill(parts.begin(), parts.end(), Ns{0});
    return;
  }
  if (give_to_only_one(amount, weights, parts)) return;
  const Wide sum = std::accumulate(weights.begin(), weights.end(), Wide{0});
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
}

std::vector<Ns> split_by_weight(Ns amount, const std::vector<Ns>& weights) {
  std::vector<Ns> parts(weights.size());
  split_by_weight(amount, weights, parts);
  return parts;
}

}  // namespace commlens
