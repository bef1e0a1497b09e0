#include "match/mismatch_list.h"

#include <algorithm>

namespace commlens {
namespace {

constexpr std::size_t kMostRows = 1'000;

}  // namespace

void MismatchList::add(Mismatch one, bool by_ranks) {
  Key key{one.kind, one.group, one.reason, by_ranks ? one.ranks : std::vector<std::int64_t>()};
  const auto found = row_of_.find(key);
  if (found == row_of_.end()) {
    if (rows_.size() == kMostRows) {
      not_listed_ += one.count;
      return;
    }
    row_of_.emplace(std::move(key), rows_.size());
    rows_.push_back(std::move(one));
    return;
  }
  Mismatch& row = rows_[found->second];
  row.count += one.count;
  if (by_ranks) return;
  for (const std::int64_t rank : one.ranks) {
    const auto at = std::lower_bound(row.ranks.begin(), row.ranks.end(), rank);
    if (at == row.ranks.end() || *at != rank) row.ranks.insert(at, rank);
  }
}

std::vector<Mismatch> MismatchList::take() {
  if (not_listed_ > 0) {
    rows_.push_back({.kind = "not_listed",
                     .group = {},
                     .seq = -1,
                     .ranks = {},
                     .count = not_listed_,
                     .reason = "more reasons than are listed one by one"});
  }
  return std::move(rows_);
}

}  // namespace commlens
