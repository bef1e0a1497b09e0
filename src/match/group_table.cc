// Problem: a group's members stand in the file's own list of groups, on the event (cut after 30),
// as start and stride on the host's records, or nowhere; a name alone says little, since two ranks
// may call different groups "3". Method: the first of these that fits the group's size. When it is
// wrong: a process that makes two groups of one name and size, one after the other, and records the
// members of the first only.
#include "match/group_table.h"

#include "model/rank_list.h"

namespace commlens {

GroupTable::GroupTable(RankTimeline& rank)
    : rank_(rank), rows_(rank.recording.metas.size(), kNotAsked) {
  find_strided_groups();
}

std::int32_t GroupTable::row_of(MetaId id) {
  std::int32_t& known = rows_[id.index()];
  if (known != kNotAsked) return known;
  GroupIdentity group = identify(rank_.recording.metas[id.index()]);
  const bool nothing = group.name.empty() && group.ranks.empty() && group.size == 0;
  if (nothing) return known = -1;
  if (group.ranks.size() > members_left_) group.ranks.clear();
  members_left_ -= group.ranks.size();
  const auto [found, inserted] =
      row_of_group_.try_emplace(group, static_cast<std::int32_t>(rank_.groups.size()));
  if (inserted) rank_.groups.push_back(std::move(group));
  return known = found->second;
}

// Members by the file's own list of groups, which is never cut; else by the text on the event; else
// by start and stride; else, for a group as large as the job, all ranks. A list of another length
// than the group's size is not believed.
GroupIdentity GroupTable::identify(const CollectiveMeta& meta) const {
  const Recording& recording = rank_.recording;
  GroupIdentity group{.name = std::string(recording.strings.get(meta.group_name)),
                      .description = std::string(recording.strings.get(meta.group_description)),
                      .size = meta.group_size,
                      .ranks = {}};
  const auto fits = [&group](const std::vector<int>& ranks) {
    return !ranks.empty() &&
           (group.size == 0 || static_cast<std::int64_t>(ranks.size()) == group.size);
  };
  for (const ProcessGroup& listed : recording.groups) {
    if (listed.name != group.name || group.name.empty()) continue;
    if (group.description.empty()) group.description = listed.description;
    if (group.size == 0) group.size = listed.size;
    if (fits(listed.ranks) && listed.ranks.size() <= members_left_) group.ranks = listed.ranks;
  }
  if (group.ranks.empty()) {
    std::vector<int> ranks = parse_rank_list(recording.strings.get(meta.group_ranks));
    if (fits(ranks)) group.ranks = std::move(ranks);
  }
  if (group.ranks.empty()) group.ranks = strided_members(meta.group_name, group.size);
  if (group.ranks.empty() && group.size > 0 && group.size == recording.world_size &&
      group.size <= kMostMembers) {
    for (int rank = 0; rank < group.size; ++rank) group.ranks.push_back(rank);
  }
  if (group.size == 0) group.size = static_cast<std::int64_t>(group.ranks.size());
  return group;
}

// Only the host's records say it: what they say holds for the kernels that name the same group.
void GroupTable::find_strided_groups() {
  for (const CollectiveMeta& meta : rank_.recording.metas) {
    const bool said = meta.group_start >= 0 && meta.group_stride > 0;
    if (!said || !meta.group_name.valid() || meta.group_size <= 0) continue;
    const Strided group{.start = meta.group_start,
                        .stride = meta.group_stride,
                        .size = meta.group_size,
                        .contradicted = false};
    const auto [found, inserted] = strided_.try_emplace(meta.group_name, group);
    Strided& known = found->second;
    known.contradicted = known.contradicted || known.start != group.start ||
                         known.stride != group.stride || known.size != group.size;
  }
}

std::vector<int> GroupTable::strided_members(StringId name, std::int64_t size) const {
  const auto found = strided_.find(name);
  if (found == strided_.end() || found->second.contradicted) return {};
  const Strided& group = found->second;
  if (size != group.size || size > kMostRanks || group.start >= kMostRanks ||
      group.stride > kMostRanks || group.start + group.stride * (size - 1) >= kMostRanks)
    return {};
  std::vector<int> ranks;
  for (std::int64_t i = 0; i < size; ++i)
    ranks.push_back(static_cast<int>(group.start + i * group.stride));
  return ranks;
}

}  // namespace commlens
