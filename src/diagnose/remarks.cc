#include "diagnose/remarks.h"

#include <algorithm>
#include <set>

#include "diagnose/joint_calls.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

std::vector<std::int64_t> absent_ranks(const JointCalls& job) {
  std::set<std::int64_t> absent;
  for (const JointGroup& group : job.groups) {
    for (const auto& [rank, row] : group.ranks) {
      if (row.witness == nullptr) absent.insert(rank);
    }
  }
  return {absent.begin(), absent.end()};
}

void add_in_flight(const JointCalls& job, std::vector<std::string>& remarks) {
  constexpr std::size_t kMost = 8;
  std::size_t shown = 0;
  for (const JointGroup& group : job.groups) {
    const auto pending = group.pending();
    if (pending.empty() || ++shown > kMost) continue;
    remarks.push_back(operation_words(group, pending.front()) + " was in flight on " +
                      rank_words(group.ranks_at(pending.front(), Standing::waiting)) +
                      " when the dumps were written, and nothing tells whether it hangs; if it "
                      "does, look at the network and the GPUs of these ranks");
  }
}

// The oldest send or receive that is pending somewhere.
void add_p2p_in_flight(const JointCalls& job, std::vector<std::string>& remarks) {
  const PendingCall* oldest = nullptr;
  std::vector<std::int64_t> ranks;
  for (const auto& [rank, calls] : job.pending) {
    for (const PendingCall& call : calls) {
      if (!call.seen.call->p2p) continue;
      if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
      if (oldest == nullptr || call.seen.call->created_ns < oldest->seen.call->created_ns)
        oldest = &call;
    }
  }
  if (oldest == nullptr) return;
  remarks.push_back(
      "sends and receives were in flight on " + rank_words(ranks) +
      " when the dumps were written, and nothing tells whether they hang; the oldest: " +
      evidence_line(oldest->seen));
}

// Ranks of which there are several dumps.
void add_repeated(const std::vector<Witness>& witnesses, const std::vector<JointCalls>& jobs,
                  std::vector<std::string>& remarks) {
  if (jobs.size() > 1)
    remarks.push_back("some ranks have dumps in several folders: each of the " +
                      std::to_string(jobs.size()) + " folders was taken for a job of its own");
  const auto dumps = std::count_if(witnesses.begin(), witnesses.end(),
                                   [](const Witness& witness) { return witness.rank >= 0; });
  std::size_t used = 0;
  for (const JointCalls& job : jobs) used += job.witnesses.size();
  const std::size_t left = static_cast<std::size_t>(dumps) - used;
  if (left > 0)
    remarks.push_back(std::to_string(left) + (left == 1 ? " dump was" : " dumps were") +
                      " left out: another one of the same rank holds as many entries or more; "
                      "give those of one hang only");
}

}  // namespace

std::vector<std::string> find_remarks(const std::vector<Witness>& witnesses, bool anything_found) {
  std::vector<std::string> remarks;
  const std::vector<JointCalls> jobs = join_calls(witnesses);
  add_repeated(witnesses, jobs, remarks);
  for (const JointCalls& job : jobs) {
    const auto absent = absent_ranks(job);
    if (!absent.empty() && !job.witnesses.empty())
      remarks.push_back("there is no usable dump of " + rank_words(absent) +
                        "; add theirs to know what these ranks did");
    if (anything_found) continue;
    add_in_flight(job, remarks);
    add_p2p_in_flight(job, remarks);
  }
  return remarks;
}

}  // namespace commlens
