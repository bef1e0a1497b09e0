// The process groups of one recording: who is in the group that a collective's metadata names.
#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/job.h"

namespace commlens {

// Fills RankTimeline::groups, one row for each distinct group, as they are asked for.
class GroupTable {
 public:
  explicit GroupTable(RankTimeline& rank);

  // Row of `groups`; -1 where the metadata names none. Resolved once for all metadata that says the
  // same of its group.
  std::int32_t row_of(MetaId id);

 private:
  // A group whose members lie at equal distances, as records print it.
  struct Strided {
    std::int64_t start = kUnknown;
    std::int64_t stride = kUnknown;
    std::int64_t size = 0;
    bool contradicted = false;  // two groups have the name
  };

  // All that metadata says of its group.
  using Said = std::tuple<StringId, StringId, StringId, std::int64_t>;  // name, description, ranks,
                                                                        // size
  std::int32_t find(const CollectiveMeta& meta);
  GroupIdentity identify(const CollectiveMeta& meta);
  void find_listed_groups();
  void find_strided_groups();
  const std::vector<int>& written_members(StringId ranks);
  std::vector<int> strided_members(StringId name, std::int64_t size) const;
  bool may_list(std::int64_t members) const;

  // Members of all groups together: more than any job has, and no more than fits. Groups beyond
  // have unknown members.
  static constexpr std::int64_t kMostMembers = 4'000'000;
  // Groups of one name in the file's own list; those beyond are not looked at.
  static constexpr std::size_t kMostOfOneName = 64;
  static constexpr std::int32_t kNotAsked = -2;

  RankTimeline& rank_;
  std::int64_t members_left_ = kMostMembers;
  std::vector<std::int32_t> rows_;  // by MetaId
  std::map<Said, std::int32_t> row_of_said_;
  std::map<GroupIdentity, std::int32_t> row_of_group_;
  std::map<std::string_view, std::vector<std::size_t>> listed_;  // rows of the file's list, by name
  std::map<StringId, Strided> strided_;                          // by name
  std::map<StringId, std::vector<int>> written_;                 // by the text on the event
};

}  // namespace commlens
