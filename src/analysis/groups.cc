// What each process group costs, and with which operations.
//
// Groups of two ranks are one group where the members are known to be the same and the description
// agrees. Where the members are not known, nothing proves that two ranks' groups of one name are
// the same: they stay apart.
#include <algorithm>
#include <map>

#include "analysis/analysis.h"
#include "model/comm_stats.h"

namespace commlens {
namespace {

struct GroupSums {
  const GroupIdentity* group = nullptr;  // null: no group is recorded
  CommStats all;
  std::map<Op, CommStats> by_op;
};

std::vector<Cell> row_of(const std::string& id, GroupSums& sums) {
  std::vector<Cell> cells(5);
  if (const GroupIdentity* group = sums.group) {
    cells[0] = id;
    if (!group->description.empty()) cells[1] = group->description;
    if (!group->ranks.empty())
      cells[2] = std::vector<std::int64_t>(group->ranks.begin(), group->ranks.end());
    if (group->size > 0) cells[3] = group->size;
    const std::string_view role = group_role_name(group->role);
    if (!role.empty()) cells[4] = std::string(role);
  }
  sums.all.append_cells(cells);
  cells.emplace_back(std::vector<Table>{ops_table(sums.by_op, {})});
  return cells;
}

Result run_groups(const Job& job, const AnalysisOptions&) {
  std::map<std::string, GroupSums> groups;  // by label; operations without a group have none
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (std::size_t i = 0; i < device.comm.size(); ++i) {
        if (!device.exposures[i].in_window) continue;
        const std::int32_t row = device.comm[i].group;
        const GroupIdentity* group =
            row < 0 ? nullptr : &rank.groups[static_cast<std::size_t>(row)];
        GroupSums& sums = groups[group == nullptr ? std::string() : group_label(*group, rank.rank)];
        if (sums.group == nullptr) sums.group = group;
        const auto transfer = transfer_of(job, rank, device, i);
        sums.all.add(device.comm[i], device.exposures[i], transfer);
        sums.by_op[device.comm[i].op].add(device.comm[i], device.exposures[i], transfer);
      }
    }
  }
  std::vector<std::pair<std::string, GroupSums*>> sorted;
  for (auto& [id, sums] : groups) sorted.emplace_back(id, &sums);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->all.exclusive() > b.second->all.exclusive();
  });

  const bool any_known = std::any_of(sorted.begin(), sorted.end(),
                                     [](const auto& row) { return row.second->group != nullptr; });
  Table table{.name = "groups",
              .section = {},
              .title = any_known ? "Process groups" : "",
              .columns = {},
              .rows = {},
              .text_rows = 8};
  table.columns = {{"id", Unit::none, "group"},
                   {"description", Unit::none, ""},
                   {"ranks", Unit::none, ""},
                   {"size", Unit::none, "size"},
                   {"role", Unit::none, "role"}};
  CommStats::append_columns(table.columns);
  table.columns.push_back({"ops", Unit::none, ""});
  for (const auto& [id, sums] : sorted) table.rows.push_back(row_of(id, *sums));
  Result result;
  table.known = has_timelines(job);
  table.footnote = kCommFootnote;
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

extern const Analysis kGroups;
constinit const Analysis kGroups{
    .name = "groups",
    .summary = "What each process group costs, and with which operations",
    .run = run_groups,
};

}  // namespace commlens
