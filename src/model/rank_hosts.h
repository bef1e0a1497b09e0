// Which hosts the members of a group are on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "model/job.h"

namespace commlens {

class RankHosts {
 public:
  explicit RankHosts(const Job& job) {
    for (const RankTimeline& rank : job.ranks) of_[rank.rank] = rank.host;
  }

  // How many they are; 0 where that of one rank is not known. `ranks`: any range of global ranks.
  template <class Ranks>
  std::int64_t count(const Ranks& ranks) const {
    std::set<std::string_view> found;
    for (const auto rank : ranks) {
      const auto host = of_.find(rank);
      if (host == of_.end() || host->second.empty()) return 0;
      found.insert(host->second);
    }
    return static_cast<std::int64_t>(found.size());
  }
  // Whether they are several; nothing where hosts or members are not known.
  template <class Ranks>
  std::optional<bool> crosses(const Ranks& ranks) const {
    const std::int64_t hosts = count(ranks);
    return hosts == 0 || ranks.size() < 2 ? std::nullopt : std::optional(hosts > 1);
  }

 private:
  std::map<std::int64_t, std::string_view> of_;  // views into the job
};

}  // namespace commlens
