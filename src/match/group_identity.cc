// Problem: a group's name is the process's own affair. Every rank may call its tensor-parallel
// group "3", and one group may be "3" here and "5" there.
//
//   rank 0:  "3" mesh_tp [0,1]     rank 2:  "3" mesh_tp [2,3]     one name, two groups
//   rank 0:  "3" undefined [0,2]   rank 2:  "5" undefined [0,2]   two names, one group
//
// Method: a group is its members and its description. Where a rank holds several of these alike,
// their names tell them apart: by name where the ranks use the same ones, else in the order of the
// names, which is that of making. Where the members are not known, ranks are joined by name,
// description and size, only where exactly as many ranks carry it as it has members, and no rank of
// the job is missing: otherwise two groups that merely look alike would be one. A communicator's
// identifier joins ranks without that.
// When it is wrong: two groups of unknown members and one name, whose ranks recorded only half of
// them each.
#include "match/group_identity.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace commlens {
namespace {

// One rank's group.
struct Carrier {
  std::size_t row = 0;
  std::size_t group = 0;
};

const GroupIdentity& identity(const Job& job, const Carrier& carrier) {
  return job.ranks[carrier.row].groups[carrier.group];
}

std::string described(const GroupIdentity& group) {
  return group.description == "undefined" ? std::string() : group.description;
}

// Names are numbers in order of making, or hashes: numbers first, by value.
bool name_before(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) != number(b)) return number(a);
  if (number(a) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

class Joiner {
 public:
  Joiner(const Job& job, const std::vector<std::size_t>& rows) : job_(job) {
    found_.places.resize(job.ranks.size());
    std::set<std::int64_t> ranks;
    for (const std::size_t row : rows) {
      ranks.insert(job.ranks[row].rank);
      found_.places[row].resize(job.ranks[row].groups.size());
    }
    all_here_ =
        job.missing_ranks.empty() && job.world_size <= static_cast<std::int64_t>(ranks.size());
    for (const std::size_t row : rows) sort_out(row);
  }

  GroupIdentities run() {
    for (const auto& [key, carriers] : known_) join_known(carriers);
    for (const auto& [key, carriers] : unknown_) join_unknown(carriers);
    name_apart();
    return std::move(found_);
  }

 private:
  void sort_out(std::size_t row) {
    const RankTimeline& rank = job_.ranks[row];
    for (std::size_t g = 0; g < rank.groups.size(); ++g) {
      const GroupIdentity& group = rank.groups[g];
      if (group.ranks.empty()) {
        unknown_[{group.name, described(group), group.size}].push_back({row, g});
      } else if (std::binary_search(group.ranks.begin(), group.ranks.end(), rank.rank)) {
        known_[{group.ranks, described(group)}].push_back({row, g});
      } else {
        found_.places[row][g].reason = "the rank is not one of the members that its group lists";
      }
    }
  }

  // Carriers of the same members and description: one group, unless a rank holds several.
  void join_known(const std::vector<Carrier>& carriers) {
    std::map<std::size_t, std::vector<Carrier>> by_row;
    for (const Carrier& carrier : carriers) by_row[carrier.row].push_back(carrier);
    std::size_t most = 0;
    for (auto& [row, own] : by_row) {
      std::sort(own.begin(), own.end(), [this](const Carrier& a, const Carrier& b) {
        return name_before(identity(job_, a).name, identity(job_, b).name);
      });
      most = std::max(most, own.size());
    }
    if (most == 1) {
      make_group(carriers);
    } else if (same_names(by_row, most)) {
      std::map<std::string, std::vector<Carrier>> by_name;
      for (const Carrier& carrier : carriers)
        by_name[identity(job_, carrier).name].push_back(carrier);
      for (const auto& [name, same] : by_name) make_group(same);
    } else {
      join_in_order(by_row, most);
    }
  }

  // No rank uses a name that the rank with most of them does not.
  bool same_names(const std::map<std::size_t, std::vector<Carrier>>& by_row,
                  std::size_t most) const {
    std::set<std::string> names;
    for (const auto& [row, own] : by_row) {
      if (own.size() != most || !names.empty()) continue;
      for (const Carrier& carrier : own) names.insert(identity(job_, carrier).name);
    }
    if (names.size() != most) return false;
    return std::all_of(by_row.begin(), by_row.end(), [&](const auto& entry) {
      return std::all_of(entry.second.begin(), entry.second.end(), [&](const Carrier& carrier) {
        return names.contains(identity(job_, carrier).name);
      });
    });
  }

  void join_in_order(const std::map<std::size_t, std::vector<Carrier>>& by_row, std::size_t most) {
    const bool alike = std::all_of(by_row.begin(), by_row.end(), [most](const auto& entry) {
      return entry.second.size() == most;
    });
    for (std::size_t n = 0; alike && n < most; ++n) {
      std::vector<Carrier> same;
      for (const auto& [row, own] : by_row) same.push_back(own[n]);
      make_group(same);
    }
    if (alike) return;
    for (const auto& [row, own] : by_row) {
      for (const Carrier& carrier : own)
        refuse(carrier, "several groups have these members, and ranks name them differently");
    }
  }

  void join_unknown(const std::vector<Carrier>& carriers) {
    const std::int64_t size = identity(job_, carriers.front()).size;
    std::set<std::size_t> rows;
    for (const Carrier& carrier : carriers) rows.insert(carrier.row);
    const auto count = static_cast<std::int64_t>(carriers.size());
    if (size > 0 && count == size && rows.size() == carriers.size() && all_here_) {
      make_group(carriers);
      return;
    }
    // NCCL's identifier of a communicator is the same on all ranks and on no other's: who carries
    // it belongs to it, however many others may.
    const bool identifier = identity(job_, carriers.front()).name.starts_with("0x");
    if (identifier && size == 0 && rows.size() == carriers.size()) {
      make_group(carriers);
      return;
    }
    std::string reason = "its members are not known";
    if (size > 0 && count != size) {
      reason += ", and " + std::to_string(count) + " ranks know a group of this name with " +
                std::to_string(size) + " members";
    } else if (size > 0 && !all_here_) {
      reason += ", and ranks of the job are missing";
    }
    for (const Carrier& carrier : carriers) refuse(carrier, reason);
  }

  void make_group(const std::vector<Carrier>& carriers) {
    const auto row = static_cast<std::int32_t>(found_.groups.size());
    GroupIdentity group = identity(job_, carriers.front());
    MatchGroup known{.label = {}, .description = group.description, .ranks = {}};
    known.ranks.assign(group.ranks.begin(), group.ranks.end());
    for (const Carrier& carrier : carriers) {
      found_.places[carrier.row][carrier.group].group = row;
      if (group.ranks.empty()) known.ranks.push_back(job_.ranks[carrier.row].rank);
    }
    std::sort(known.ranks.begin(), known.ranks.end());
    if (group.ranks.empty()) group.ranks.assign(known.ranks.begin(), known.ranks.end());
    known.label = group_label(group, job_.ranks[carriers.front().row].rank);
    names_.push_back(group.name);
    found_.groups.push_back(std::move(known));
  }

  void refuse(const Carrier& carrier, const std::string& reason) {
    found_.places[carrier.row][carrier.group].reason = reason;
  }

  // Labels of two groups with the same members and description: with their names.
  void name_apart() {
    std::map<std::string, int> seen;
    for (const MatchGroup& group : found_.groups) ++seen[group.label];
    for (std::size_t g = 0; g < found_.groups.size(); ++g) {
      if (seen[found_.groups[g].label] > 1) found_.groups[g].label += " (" + names_[g] + ")";
    }
  }

  const Job& job_;
  GroupIdentities found_;
  std::vector<std::string> names_;  // by group
  bool all_here_ = false;           // no rank of the job is missing
  std::map<std::pair<std::vector<int>, std::string>, std::vector<Carrier>> known_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::vector<Carrier>> unknown_;
};

}  // namespace

GroupIdentities join_groups(const Job& job, const std::vector<std::size_t>& rows) {
  return Joiner(job, rows).run();
}

}  // namespace commlens
