#include "diagnose/joint_calls.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "diagnose/joint_hangs.h"

namespace commlens {
namespace {

bool is_completed(const SeenCall& seen) { return seen.call->state == CallState::completed; }

bool is_open(const SeenCall& seen) {
  return seen.call->state == CallState::scheduled || seen.call->state == CallState::started ||
         seen.call->gave_up;
}

// Groups that different witnesses mean: by name and members, since disjoint groups can share a
// name. Where a witness does not know the members, the name must do.
class Joiner {
 public:
  JointCalls join(const std::vector<const Witness*>& witnesses);

 private:
  using Key = std::pair<std::string, std::vector<int>>;
  JointGroup& group_of(const WitnessGroup& group);
  JointGroup& find_group(const WitnessGroup& group);
  const std::vector<int>& sorted(const std::vector<int>& members);
  void add_members(const Witness& witness);
  void add_calls(const Witness& witness);
  void give_witnesses(const JointCalls& joint);
  void believe_counters(const std::vector<const Witness*>& witnesses);
  void conclude();

  std::map<Key, JointGroup> groups_;
  // Looked up once for each file, not for each call, and sorted once for all files that say the
  // same: in a job of thousands each file lists thousands.
  std::map<const WitnessGroup*, JointGroup*> known_;
  std::unordered_map<std::string, std::vector<int>> sorted_;  // by the bytes of the list
};

const std::vector<int>& Joiner::sorted(const std::vector<int>& members) {
  const auto [at, is_new] = sorted_.try_emplace(
      std::string(reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int)));
  if (is_new) {
    at->second = members;
    std::sort(at->second.begin(), at->second.end());
  }
  return at->second;
}

JointGroup& Joiner::group_of(const WitnessGroup& group) {
  JointGroup*& known = known_[&group];
  if (known == nullptr) known = &find_group(group);
  return *known;
}

JointGroup& Joiner::find_group(const WitnessGroup& group) {
  const std::vector<int>& members = sorted(group.members);
  if (members.empty()) {
    // The only one of this name, if there is one.
    const auto at = groups_.lower_bound({group.name, {}});
    const bool found = at != groups_.end() && at->first.first == group.name;
    const auto next = found ? std::next(at) : at;
    if (found && (next == groups_.end() || next->first.first != group.name)) return at->second;
  }
  JointGroup& joint = groups_[{group.name, members}];
  joint.name = group.name;
  if (joint.description.empty()) joint.description = group.description;
  if (joint.members.empty()) {
    joint.members = group.members;
    for (const int member : members) joint.ranks[member];
  }
  return joint;
}

void Joiner::add_members(const Witness& witness) {
  for (const WitnessGroup& group : witness.groups) {
    if (group.members.empty()) continue;
    JointGroup& joint = group_of(group);
    if (joint.ranks.contains(witness.rank)) joint.ranks[witness.rank].witness = &witness;
  }
}

void Joiner::add_calls(const Witness& witness) {
  for (const WitnessCall& call : witness.calls) {
    if (call.rank < 0) continue;
    JointGroup& joint = group_of(witness.groups[call.group]);
    RankInGroup& rank = joint.ranks[call.rank];
    rank.witness = &witness;
    if (call.p2p) {
      rank.p2p.push_back({&witness, &call});
      joint.has_p2p = true;
      joint.numbers_mixed |= witness.version.starts_with("1.");
    } else {
      rank.calls[call.number].push_back({&witness, &call});
    }
  }
}

// A member whose witness does not name the group has one all the same.
void Joiner::give_witnesses(const JointCalls& joint) {
  for (auto& [key, group] : groups_) {
    for (auto& [number, rank] : group.ranks) {
      const auto found = joint.witnesses.find(number);
      if (rank.witness == nullptr && found != joint.witnesses.end()) rank.witness = found->second;
    }
  }
}

// A counter is that of the group's last call, which can have been a send. Where sends were seen, or
// where it is not the last collective of a rank that has that one in its list, none of the group's
// is believed.
void Joiner::believe_counters(const std::vector<const Witness*>& witnesses) {
  std::set<const JointGroup*> doubtful;
  for (const Witness* witness : witnesses) {
    for (const WitnessProgress& row : witness->progress) {
      if (row.rank < 0 || row.enqueued == WitnessProgress::kNotSaid) continue;
      JointGroup& group = group_of(witness->groups[row.group]);
      RankInGroup& rank = group.ranks[row.rank];
      if (rank.witness == nullptr) rank.witness = witness;
      rank.counter = &row;
      const bool whole = !rank.calls.empty() && !witness->damaged;
      if (group.has_p2p || (whole && rank.calls.rbegin()->first != row.enqueued))
        doubtful.insert(&group);
    }
  }
  for (auto& [key, group] : groups_) {
    if (!doubtful.contains(&group)) continue;
    for (auto& [number, rank] : group.ranks) rank.counter = nullptr;
  }
}

// Records are numbered from 0: a witness that has the first holds all of the rank's calls.
bool holds_everything(const Witness& witness) {
  return !witness.only_pending &&
         std::all_of(witness.calls.begin(), witness.calls.begin() + (witness.calls.empty() ? 0 : 1),
                     [](const WitnessCall& call) { return call.record == 0; });
}

bool names_group(const Witness& witness, const std::string& name) {
  return witness.groups.empty() ||
         std::any_of(witness.groups.begin(), witness.groups.end(),
                     [&name](const WitnessGroup& group) { return group.name == name; });
}

void conclude_rank(RankInGroup& rank, const JointGroup& group) {
  if (rank.witness == nullptr) return;
  for (const auto& [number, calls] : rank.calls) {
    if (std::all_of(calls.begin(), calls.end(), is_completed))
      rank.completed = std::max(rank.completed, number);
  }
  if (rank.counter != nullptr) {
    rank.called = rank.counter->enqueued;
    rank.completed = std::max(rank.completed, rank.counter->completed);
    rank.inferred = !rank.witness->lists_pending;
    return;
  }
  // Entries alone: what was called last stands in them, if anything of the group does.
  if (!rank.witness->lists_pending || rank.witness->damaged) return;
  if (!rank.calls.empty()) {
    rank.called = rank.calls.rbegin()->first;
  } else if (names_group(*rank.witness, group.name) && holds_everything(*rank.witness)) {
    rank.called = -1;
    rank.inferred = rank.witness->calls.empty();
  }
}

void Joiner::conclude() {
  for (auto& [key, group] : groups_) {
    for (auto& [number, rank] : group.ranks) conclude_rank(rank, group);
  }
}

void find_pending(JointCalls& joint) {
  for (const JointGroup& group : joint.groups) {
    for (const auto& [number, rank] : group.ranks) {
      std::vector<PendingCall>& pending = joint.pending[number];
      for (const auto& [seq, calls] : rank.calls) {
        for (const SeenCall& seen : calls) {
          if (is_open(seen) && seq > rank.completed) pending.push_back({&group, seen});
        }
      }
      for (const SeenCall& seen : rank.p2p) {
        if (is_open(seen)) pending.push_back({&group, seen});
      }
    }
  }
  std::erase_if(joint.pending, [](const auto& row) { return row.second.empty(); });
  for (auto& [rank, pending] : joint.pending) {
    std::stable_sort(pending.begin(), pending.end(),
                     [](const PendingCall& a, const PendingCall& b) {
                       return a.seen.call->record < b.seen.call->record;
                     });
  }
}

JointCalls Joiner::join(const std::vector<const Witness*>& witnesses) {
  JointCalls joint;
  for (const Witness* witness : witnesses) {
    if (witness->rank >= 0) joint.witnesses[witness->rank] = witness;
  }
  for (const Witness* witness : witnesses) add_members(*witness);
  for (const Witness* witness : witnesses) add_calls(*witness);
  give_witnesses(joint);
  believe_counters(witnesses);
  conclude();
  for (auto& [key, group] : groups_) joint.groups.push_back(std::move(group));
  find_pending(joint);
  return joint;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

// One witness for each rank; those of many ranks are kept.
std::vector<const Witness*> one_each(const std::vector<const Witness*>& witnesses) {
  std::map<std::int64_t, const Witness*> best;
  for (const Witness* witness : witnesses) {
    if (witness->rank < 0) continue;
    const Witness*& held = best[witness->rank];
    if (held == nullptr || witness->calls.size() > held->calls.size()) held = witness;
  }
  std::vector<const Witness*> kept;
  for (const Witness* witness : witnesses) {
    if (witness->rank < 0 || best[witness->rank] == witness) kept.push_back(witness);
  }
  return kept;
}

std::vector<std::vector<const Witness*>> split_jobs(const std::vector<Witness>& witnesses) {
  std::map<std::int64_t, std::set<std::string>> folders_of_rank;
  for (const Witness& witness : witnesses) {
    if (witness.rank >= 0) folders_of_rank[witness.rank].insert(folder_of(witness.path));
  }
  const bool several = std::any_of(folders_of_rank.begin(), folders_of_rank.end(),
                                   [](const auto& row) { return row.second.size() > 1; });
  std::map<std::string, std::vector<const Witness*>> jobs;
  for (const Witness& witness : witnesses)
    jobs[several ? folder_of(witness.path) : std::string()].push_back(&witness);
  std::vector<std::vector<const Witness*>> lists;
  for (auto& [folder, list] : jobs) lists.push_back(one_each(list));
  return lists;
}

}  // namespace

Standing RankInGroup::at(std::int64_t number) const {
  if (witness == nullptr) return Standing::absent;
  if (number <= completed) return Standing::completed;
  if (const auto found = calls.find(number); found != calls.end()) {
    if (std::all_of(found->second.begin(), found->second.end(), is_completed))
      return Standing::completed;
    return std::any_of(found->second.begin(), found->second.end(), is_open) ? Standing::waiting
                                                                            : Standing::unknown;
  }
  if (called == kUnknown) return Standing::unknown;
  if (number > called) return Standing::not_called;
  // Called, and not in the list of what is pending.
  const bool whole = witness->lists_pending && !witness->damaged;
  const bool overwritten =
      !calls.empty() && number < calls.begin()->first && !witness->only_pending;
  return whole && !overwritten ? Standing::completed : Standing::unknown;
}

std::string JointGroup::label() const {
  return description.empty() ? name : name + " (" + description + ")";
}

std::vector<std::int64_t> JointGroup::ranks_at(std::int64_t number, Standing standing) const {
  std::vector<std::int64_t> found;
  for (const auto& [rank, row] : ranks) {
    if (row.at(number) == standing) found.push_back(rank);
  }
  return found;
}

std::int64_t JointGroup::since(std::int64_t number) const {
  std::int64_t first = 0;
  for (const auto& [rank, row] : ranks) {
    const auto found = row.calls.find(number);
    if (found == row.calls.end()) continue;
    const std::int64_t created = found->second.front().call->created_ns;
    if (created > 0 && (first == 0 || created < first)) first = created;
  }
  return first;
}

std::string JointGroup::op(std::int64_t number) const {
  std::map<std::string, int> votes;
  for (const auto& [rank, row] : ranks) {
    const auto found = row.calls.find(number);
    if (found != row.calls.end()) ++votes[op_word(found->second.front())];
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? std::string() : most->first;
}

std::vector<std::int64_t> JointGroup::pending() const {
  std::set<std::int64_t> numbers;
  for (const auto& [rank, row] : ranks) {
    for (const auto& [number, calls] : row.calls) {
      if (row.at(number) == Standing::waiting) numbers.insert(number);
    }
  }
  return {numbers.begin(), numbers.end()};
}

DiagnosisFinding JointGroup::finding(DiagnosisKind kind, std::int64_t number) const {
  DiagnosisFinding finding;
  finding.kind = kind;
  finding.group = name;
  finding.group_description = description;
  finding.group_ranks = members;
  std::sort(finding.group_ranks.begin(), finding.group_ranks.end());
  finding.seq = number;
  finding.op = op(number);
  finding.since_ns = since(number);
  return finding;
}

std::int64_t PendingCall::peer() const {
  const std::int64_t at = seen.call->peer;
  if (!seen.call->p2p || at < 0 || at >= static_cast<std::int64_t>(group->members.size()))
    return -1;
  return group->members[static_cast<std::size_t>(at)];
}

// Breadth first over "has a call pending together with".
std::vector<std::int64_t> JointCalls::held_by(const std::vector<std::int64_t>& ranks) const {
  const std::set<std::int64_t> culprits(ranks.begin(), ranks.end());
  std::set<std::int64_t> reached = culprits;
  const auto touches = [&reached](const PendingCall& call) {
    if (call.seen.call->p2p) return reached.contains(call.peer());
    return std::any_of(call.group->ranks.begin(), call.group->ranks.end(),
                       [&](const auto& row) { return reached.contains(row.first); });
  };
  for (bool more = true; more;) {
    more = false;
    for (const auto& [rank, calls] : pending) {
      if (reached.contains(rank) || std::none_of(calls.begin(), calls.end(), touches)) continue;
      reached.insert(rank);
      more = true;
    }
  }
  std::vector<std::int64_t> held;
  std::set_difference(reached.begin(), reached.end(), culprits.begin(), culprits.end(),
                      std::back_inserter(held));
  return held;
}

bool JointCalls::lacks_other_side(const PendingCall& call) const {
  const std::int64_t peer = call.peer();
  const std::int64_t rank = call.seen.call->rank;
  const auto witness = witnesses.find(peer);
  if (!call.seen.call->p2p || peer == rank || witness == witnesses.end()) return false;
  if (!witness->second->lists_pending || witness->second->damaged) return false;
  const auto theirs = pending.find(peer);
  return theirs == pending.end() ||
         std::none_of(theirs->second.begin(), theirs->second.end(), [&](const PendingCall& other) {
           return other.seen.call->p2p && other.peer() == rank &&
                  other.seen.call->op != call.seen.call->op;
         });
}

std::set<std::int64_t> repeated_ranks(const std::vector<Witness>& witnesses) {
  std::set<std::pair<std::string, std::int64_t>> seen;
  std::set<std::int64_t> repeated;
  for (const Witness& witness : witnesses) {
    if (witness.rank >= 0 && !seen.insert({folder_of(witness.path), witness.rank}).second)
      repeated.insert(witness.rank);
  }
  return repeated;
}

std::vector<JointCalls> join_calls(const std::vector<Witness>& witnesses) {
  const auto lists = split_jobs(witnesses);
  std::vector<JointCalls> jobs;
  jobs.reserve(lists.size());  // pending calls point into their job
  const bool others_say = others_show_hang(witnesses);
  for (const auto& job : lists) {
    jobs.push_back(Joiner().join(job));
    find_hang_signs(jobs.back(), others_say);
  }
  return jobs;
}

Ranks merged_ranks(Ranks a, const Ranks& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

std::string op_word(const SeenCall& seen) {
  return seen.call->op == Op::unknown ? std::string(seen.text(seen.call->op_text))
                                      : std::string(op_name(seen.call->op));
}

}  // namespace commlens
