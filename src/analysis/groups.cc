// What each process group costs, and with which operations.
//
// Groups of two ranks are one group where the members are known to be the same and the description
// agrees. Where the members are not known, nothing proves that two ranks' groups of one name are
// the same: they stay apart.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/analysis.h"
#include "model/comm_stats.h"
#include "model/measured_stats.h"

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

Table group_table(bool measured) {
  Table table{
      .name = "groups", .section = {}, .title = {}, .columns = {}, .rows = {}, .text_rows = 8};
  table.columns = {{"id", Unit::none, "group"},
                   {"description", Unit::none, ""},
                   {"ranks", Unit::none, ""},
                   {"size", Unit::none, "size"},
                   {"role", Unit::none, measured ? "" : "role"}};
  if (measured) {
    append_measured_columns(table.columns);
  } else {
    CommStats::append_columns(table.columns);
  }
  table.columns.push_back({"ops", Unit::none, ""});
  table.footnote = measured ? kMeasuredFootnote : kCommFootnote;
  return table;
}

// Of inputs that are no timelines: groups that are named alike, are as large, and have the same
// members as far as that is told, are one.
struct MeasuredSums {
  MeasuredStats all;
  std::map<Op, MeasuredStats> by_op;
};

std::vector<Cell> measured_row(const MeasuredGroup& group, MeasuredSums& sums) {
  std::vector<Cell> cells(5);
  if (!group.id.empty() || !group.name.empty()) cells[0] = group.id.empty() ? group.name : group.id;
  if (!group.name.empty()) cells[1] = group.name;
  if (!group.ranks.empty()) cells[2] = group.ranks;
  if (group.size > 0) cells[3] = group.size;
  sums.all.append_cells(cells);
  cells.emplace_back(std::vector<Table>{measured_ops_table(sums.by_op, {})});
  return cells;
}

Result measured_groups(const Job& job) {
  std::map<std::tuple<std::string, std::string, std::int64_t, std::vector<std::int64_t>>,
           std::pair<MeasuredGroup, MeasuredSums>>
      groups;
  for (const Measured& file : job.measured.files) {
    std::vector<MeasuredSums*> sums;
    for (const MeasuredGroup& group : file.groups) {
      auto& [first, sum] = groups[{group.id, group.name, group.size, group.ranks}];
      first = group;
      sums.push_back(&sum);
    }
    for (const MeasuredCall& call : file.calls) {
      const std::int64_t size = file.groups[call.group].size;
      sums[call.group]->all.add(call, size);
      sums[call.group]->by_op[call.op].add(call, size);
    }
  }
  std::vector<std::pair<MeasuredGroup, MeasuredSums>*> sorted;
  for (auto& [key, row] : groups) sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->second.all.time() > b->second.all.time();
  });
  Table table = group_table(true);
  const bool told = std::any_of(sorted.begin(), sorted.end(), [](const auto* row) {
    return !row->first.id.empty() || !row->first.name.empty();
  });
  if (told) table.title = "Communicators";
  for (auto* row : sorted) table.rows.push_back(measured_row(row->first, row->second));
  table.known = !sorted.empty();
  Result result;
  result.tables.push_back(std::move(table));
  return result;
}

Result run_groups(const Job& job, const AnalysisOptions&) {
  if (only_measured(job)) return measured_groups(job);
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
  Table table = group_table(false);
  if (any_known) table.title = "Process groups";
  for (const auto& [id, sums] : sorted) table.rows.push_back(row_of(id, *sums));
  Result result;
  table.known = has_timelines(job);
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
