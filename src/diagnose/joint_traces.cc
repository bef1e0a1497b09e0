#include "diagnose/joint_traces.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/utf8.h"
#include "model/witness_trace.h"

namespace commlens {
namespace {

struct SeenGroup {
  const Witness* witness = nullptr;
  const TraceGroup* group = nullptr;
  const TraceFacts& facts() const { return *witness->trace; }
};

// Whether what is absent from it was not there.
bool tells_all(const TraceFacts& facts) {
  return !facts.cut && facts.calls_known && facts.clock_known;
}

bool stands_open(const SeenGroup& seen) {
  return tells_all(seen.facts()) && seen.group->called > seen.group->ended &&
         seen.facts().last - seen.group->called_at >= kLongOpen;
}

std::string last_words(const SeenGroup& seen, std::int64_t rank) {
  const auto number = [](std::int64_t value) {
    return value < 0 ? std::string("none") : std::to_string(value);
  };
  const Ns open = (seen.facts().last - seen.group->called_at) / 1'000'000;
  return printable(seen.witness->path + ": rank " + std::to_string(rank) + " last called " +
                   number(seen.group->called) + ", last ended " + number(seen.group->ended) +
                   "; its recording goes on for " + std::to_string(open) + " ms after that call");
}

class TraceJoiner {
 public:
  explicit TraceJoiner(const std::vector<Witness>& witnesses) {
    for (const Witness& witness : witnesses) {
      if (witness.trace == nullptr || witness.trace->rank < 0) continue;
      // Of a rank that was recorded twice the longer recording counts.
      const Witness*& known = traces_[witness.trace->rank];
      if (known == nullptr || known->trace->last < witness.trace->last) known = &witness;
    }
    for (const auto& [rank, witness] : traces_) {
      for (const TraceGroup& group : witness->trace->groups) {
        // A name alone may mean another group on another rank.
        if (group.members.empty()) continue;
        groups_[{group.members, group.description}][rank] = {witness, &group};
        // However short: who may be held by another operation is not accused.
        if (group.called > group.ended) pending_.insert(rank);
      }
    }
  }

  std::vector<TraceWait> run() const {
    std::vector<TraceWait> waits;
    for (const auto& [key, ranks] : groups_) {
      TraceWait wait = wait_in(key.first, ranks);
      if (!wait.waiting.empty()) waits.push_back(std::move(wait));
    }
    std::stable_sort(waits.begin(), waits.end(),
                     [](const TraceWait& a, const TraceWait& b) { return a.since < b.since; });
    return waits;
  }

 private:
  using Ranks = std::map<std::int64_t, SeenGroup>;

  TraceWait wait_in(const std::vector<int>& members, const Ranks& ranks) const {
    TraceWait wait;
    wait.members = members;
    for (const auto& [rank, seen] : ranks) wait.number = std::max(wait.number, seen.group->called);
    for (const auto& [rank, seen] : ranks) {
      if (seen.group->ended >= wait.number) return {};  // somebody has left it: all had called it
      if (seen.group->called != wait.number || !stands_open(seen)) continue;
      wait.waiting.push_back(rank);
      wait.since = std::max(wait.since, seen.group->called_at);
      wait.op = seen.group->op;
      wait.group = seen.group->name;
      wait.description = seen.group->description;
    }
    if (wait.waiting.empty()) return {};
    wait.open = traces_.at(wait.waiting.front())->trace->last - wait.since;
    for (const std::int64_t rank : wait.waiting)
      wait.open = std::min(wait.open, traces_.at(rank)->trace->last - wait.since);
    for (const int member : members) place(member, ranks, wait);
    add_evidence(ranks, wait);
    return wait;
  }

  void place(std::int64_t rank, const Ranks& ranks, TraceWait& wait) const {
    if (std::find(wait.waiting.begin(), wait.waiting.end(), rank) != wait.waiting.end()) return;
    const auto trace = traces_.find(rank);
    const auto seen = ranks.find(rank);
    const bool recorded = trace != traces_.end() && tells_all(*trace->second->trace) &&
                          trace->second->trace->last - wait.since >= kLongOpen &&
                          trace->second->trace->first <= wait.since;
    const bool called = seen != ranks.end() && seen->second.group->called >= wait.number;
    if (!recorded || called) {
      wait.unseen.push_back(rank);
    } else if (pending_.contains(rank)) {
      wait.elsewhere.push_back(rank);
    } else {
      wait.missing.push_back(rank);
    }
  }

  static void add_evidence(const Ranks& ranks, TraceWait& wait) {
    constexpr std::size_t kMost = 8;
    for (const auto* list : {&wait.missing, &wait.waiting}) {
      for (const std::int64_t rank : *list) {
        const auto seen = ranks.find(rank);
        if (seen != ranks.end() && wait.evidence.size() < kMost)
          wait.evidence.push_back(last_words(seen->second, rank));
      }
    }
  }

  std::map<std::int64_t, const Witness*> traces_;  // by rank
  std::map<std::pair<std::vector<int>, std::string>, Ranks> groups_;
  std::set<std::int64_t> pending_;  // ranks with an operation whose end is not recorded
};

}  // namespace

std::vector<TraceWait> find_trace_waits(const std::vector<Witness>& witnesses) {
  return TraceJoiner(witnesses).run();
}

}  // namespace commlens
