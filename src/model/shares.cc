#include "model/shares.h"

#include <algorithm>
#include <array>
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

constexpr std::size_t kFew = 8;

void add_to_largest(Ns left, std::span<const Wide> remainders, std::span<Ns> parts) {
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto larger = [&remainders](std::size_t a, std::size_t b) {
    return remainders[a] != remainders[b] ? remainders[a] > remainders[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(left), order.end(),
                    larger);
  for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i) ++parts[order[i]];
}

}  // namespace

void split_by_weight(Ns amount, std::span<const Ns> weights, std::span<Ns> parts) {
  if (amount == 0) {
    std::fill(parts.begin(), parts.end(), Ns{0});
    return;
  }
  if (give_to_only_one(amount, weights, parts)) return;
  const Wide sum = std::accumulate(weights.begin(), weights.end(), Wide{0});
  // Few parts, of which there are millions, need no memory of their own.
  std::array<Wide, kFew> few;
  std::vector<Wide> many(weights.size() > kFew ? weights.size() : 0);
  const std::span<Wide> remainders =
      weights.size() > kFew ? std::span<Wide>(many) : std::span<Wide>(few).first(weights.size());
  Ns left = amount;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Wide product = Wide{amount} * weights[i];
    parts[i] = static_cast<Ns>(product / sum);
    remainders[i] = product % sum;
    left -= parts[i];
  }
  if (weights.size() > kFew) return add_to_largest(left, remainders, parts);
  // What is left is less than one for each: to the largest remainders, the first of equal ones.
  for (; left > 0; --left) {
    const auto largest = std::max_element(remainders.begin(), remainders.end());
    ++parts[static_cast<std::size_t>(largest - remainders.begin())];
    *largest = -1;
  }
}

std::vector<Ns> split_by_weight(Ns amount, const std::vector<Ns>& weights) {
  std::vector<Ns> parts(weights.size());
  split_by_weight(amount, weights, parts);
  return parts;
}

}  // namespace commlens
