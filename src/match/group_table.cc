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
  find_listed_groups();
  find_strided_groups();
}

std::int32_t GroupTable::row_of(MetaId id) {
  std::int32_t& row = rows_[id.index()];
  if (row == kNotAsked) row = find(rank_.recording.metas[id.index()]);
  return row;
}

std::int32_t GroupTable::find(const CollectiveMeta& meta) {
  const Said said{meta.group_name, meta.group_description, meta.group_ranks, meta.group_size};
  const auto [known, asked_first] = row_of_said_.try_emplace(said, -1);
  if (!asked_first) return known->second;
  GroupIdentity group = identify(meta);
  const bool nothing = group.name.empty() && group.ranks.empty() && group.size == 0;
  if (nothing) return -1;
  members_left_ -= static_cast<std::int64_t>(group.ranks.size());
  const auto [found, inserted] =
      row_of_group_.try_emplace(group, static_cast<std::int32_t>(rank_.groups.size()));
  if (inserted) rank_.groups.push_back(std::move(group));
  return known->second = found->second;
}

// Members by the file's own list of groups, which is never cut; else by the text on the event; else
// by start and stride; else, for a group as large as the job, all ranks. A list of another length
// than the group's size is not believed.
GroupIdentity GroupTable::identify(const CollectiveMeta& meta) {
  const Recording& recording = rank_.recording;
  GroupIdentity group{.name = std::string(recording.strings.get(meta.group_name)),
                      .description = std::string(recording.strings.get(meta.group_description)),
                      .size = meta.group_size,
                      .ranks = {}};
  const auto fits = [&](const std::vector<int>& ranks) {
    const auto size = static_cast<std::int64_t>(ranks.size());
    return size > 0 && (group.size == 0 || size == group.size) && may_list(size);
  };
  if (const auto listed = listed_.find(group.name); listed != listed_.end()) {
    for (const std::size_t row : listed->second) {
      const ProcessGroup& row_group = recording.groups[row];
      if (group.description.empty()) group.description = row_group.description;
      if (group.size == 0) group.size = row_group.size;
      if (fits(row_group.ranks)) group.ranks = row_group.ranks;
    }
  }
  if (group.ranks.empty() && fits(written_members(meta.group_ranks)))
    group.ranks = written_members(meta.group_ranks);
  if (group.ranks.empty()) group.ranks = strided_members(meta.group_name, group.size);
  const bool whole_job = group.size > 0 && group.size == recording.world_size;
  if (group.ranks.empty() && whole_job && may_list(group.size)) {
    for (int rank = 0; rank < group.size; ++rank) group.ranks.push_back(rank);
  }
  if (group.size == 0) group.size = static_cast<std::int64_t>(group.ranks.size());
  return group;
}

bool GroupTable::may_list(std::int64_t members) const { return members <= members_left_; }

void GroupTable::find_listed_groups() {
  const std::vector<ProcessGroup>& groups = rank_.recording.groups;
  for (std::size_t row = 0; row < groups.size(); ++row) {
    if (groups[row].name.empty()) continue;
    std::vector<std::size_t>& rows = listed_[groups[row].name];
    if (rows.size() < kMostOfOneName) rows.push_back(row);
  }
}

const std::vector<int>& GroupTable::written_members(StringId ranks) {
  const auto [found, inserted] = written_.try_emplace(ranks);
  if (inserted) found->second = parse_rank_list(rank_.recording.strings.get(ranks));
  return found->second;
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
  if (size != group.size || !may_list(size) || group.start >= kMostRanks ||
      group.stride > kMostRanks || group.start + group.stride * (size - 1) >= kMostRanks)
    return {};
  std::vector<int> ranks;
  for (std::int64_t i = 0; i < size; ++i)
    ranks.push_back(static_cast<int>(group.start + i * group.stride));
  return ranks;
}

}  // namespace commlens
