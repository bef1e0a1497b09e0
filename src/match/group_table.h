// The process groups of one recording: who is in the group that a collective's metadata names.
#pragma once

#include <map>
#include <vector>

#include "model/job.h"

namespace commlens {

// Fills RankTimeline::groups, one row for each distinct group, as they are asked for.
class GroupTable {
 public:
  explicit GroupTable(RankTimeline& rank);

  // Row of `groups`; -1 where the metadata names none. Resolved once per distinct metadata.
  std::int32_t row_of(MetaId id);

 private:
  // A group whose members lie at equal distances, as records print it.
  struct Strided {
    std::int64_t start = kUnknown;
    std::int64_t stride = kUnknown;
    std::int64_t size = 0;
    bool contradicted = false;  // two groups have the name
  };

  GroupIdentity identify(const CollectiveMeta& meta) const;
  void find_strided_groups();
  std::vector<int> strided_members(StringId name, std::int64_t size) const;

  // Members of all groups together: more than any job has, and no more than fits. Groups beyond
  // have unknown members.
  static constexpr std::int64_t kMostMembers = 4'000'000;
  static constexpr std::int32_t kNotAsked = -2;

  RankTimeline& rank_;
  std::size_t members_left_ = kMostMembers;
  std::vector<std::int32_t> rows_;  // by MetaId
  std::map<GroupIdentity, std::int32_t> row_of_group_;
  std::map<StringId, Strided> strided_;  // by name
};

}  // namespace commlens
