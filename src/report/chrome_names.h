// The names that a rank's slices repeat a million times, as JSON: escaped once each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job.h"

namespace commlens {

class RankNames {
 public:
  explicit RankNames(const RankTimeline& rank);
  // A name in quotes, cut where it is very long; empty quotes where there is none.
  const std::string& name(StringId id);
  // What a group's operations say about it: members of a JSON object, each after a comma.
  const std::string& group(std::int32_t index) const {
    return groups_[static_cast<std::size_t>(index)];
  }

 private:
  const StringPool& strings_;
  std::vector<std::string> names_;  // by StringId; empty: not made yet
  std::vector<std::string> groups_;
};

}  // namespace commlens
