// The rows of Matching::mismatches: equal reasons of one group are one row.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/matching.h"

namespace commlens {

class MismatchList {
 public:
  // One event, or one operation, for `reason`. Rows that differ only in the ranks are one with all
  // of them, unless the ranks are what is told (`by_ranks`).
  void add(Mismatch one, bool by_ranks);

  // In order of their first; beyond a bound only a row that counts the rest.
  std::vector<Mismatch> take();

 private:
  using Key = std::tuple<std::string_view, std::string, std::string, std::vector<std::int64_t>>;
  std::map<Key, std::size_t> row_of_;
  std::vector<Mismatch> rows_;
  std::int64_t not_listed_ = 0;
};

}  // namespace commlens
