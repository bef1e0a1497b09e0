#include "base/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace commlens {
namespace {

// Levenshtein distance by one row of the usual table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view misspelled,
                              std::span<const std::string_view> candidates) {
  std::string_view best;
  misspelled =
      misspelled.substr(0, 64);  // no name is longer: bounds the work on a hostile argument
  std::size_t best_distance = std::max<std::size_t>(1, (misspelled.size() + 2) / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(misspelled, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace commlens
