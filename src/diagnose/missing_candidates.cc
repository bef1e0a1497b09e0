#include "diagnose/missing_candidates.h"

#include <algorithm>

#include "diagnose/joint_hangs.h"
#include "diagnose/joint_mismatch.h"

namespace commlens {
namespace {

class CandidateSearch {
 public:
  explicit CandidateSearch(const JointCalls& job) : job_(job) {}
  WaitCandidates run() {
    collect();
    collect_p2p();
    collect_stalled();
    return std::move(found_);
  }

 private:
  void collect();
  void collect_p2p();
  void collect_stalled();
  bool is_proven(const WaitCandidate& candidate) const;
  bool is_passing(const WaitCandidate& candidate) const;

  const JointCalls& job_;
  WaitCandidates found_;
};

void CandidateSearch::collect() {
  for (const JointGroup& group : job_.groups) {
    if (group.numbers_mixed) continue;
    const std::vector<CallMismatch> mismatches = first_mismatch(group);
    found_.mismatched |= !mismatches.empty();
    WaitCandidate unseen;
    for (const std::int64_t number : group.pending()) {
      // Behind a mismatch the numbers of a group mean nothing.
      if (!mismatches.empty() && number > mismatches.front().number) break;
      WaitCandidate candidate{.group = &group,
                              .number = number,
                              .waiting = group.ranks_at(number, Standing::waiting),
                              .not_called = group.ranks_at(number, Standing::not_called),
                              .unseen = group.ranks_at(number, Standing::unknown),
                              .absent = group.ranks_at(number, Standing::absent),
                              .since = group.since(number),
                              .p2p = nullptr,
                              .called = false,
                              .proven = false};
      candidate.unseen = merged_ranks(candidate.unseen, candidate.absent);
      if (!candidate.not_called.empty()) {
        candidate.proven = is_proven(candidate);
        if (is_passing(candidate)) break;
        found_.collectives.push_back(std::move(candidate));
        unseen = {};
        break;
      }
      if (unseen.group == nullptr && !candidate.unseen.empty()) unseen = std::move(candidate);
    }
    if (unseen.group != nullptr) found_.unseen.push_back(std::move(unseen));
  }
  const auto earlier = [](const WaitCandidate& a, const WaitCandidate& b) {
    return a.since < b.since;
  };
  std::stable_sort(found_.collectives.begin(), found_.collectives.end(), earlier);
  std::stable_sort(found_.unseen.begin(), found_.unseen.end(), earlier);
}

// A sign of a hang, either where the others wait or where those who have not called it are.
bool CandidateSearch::is_proven(const WaitCandidate& candidate) const {
  const JointGroup& group = *candidate.group;
  if (shows_hang(job_, group, candidate.number)) return true;
  return std::any_of(candidate.not_called.begin(), candidate.not_called.end(),
                     [&](std::int64_t rank) {
                       const auto pending = job_.pending.find(rank);
                       if (pending == job_.pending.end()) return false;
                       const PendingCall& oldest = pending->second.front();
                       return oldest.group == &group && !oldest.seen.call->p2p &&
                              shows_hang(job_, group, oldest.seen.call->number);
                     });
}

// Whether those who have not called it are only in calls that others have left: a dump that was
// written earlier looks like that, however many calls lie between. Who has nothing pending is asked
// about.
bool CandidateSearch::is_passing(const WaitCandidate& candidate) const {
  if (candidate.proven) return false;
  const Ranks& ranks = candidate.not_called;
  return std::any_of(ranks.begin(), ranks.end(),
                     [this](std::int64_t rank) { return is_stalled(job_, rank); }) &&
         std::none_of(ranks.begin(), ranks.end(),
                      [this](std::int64_t rank) { return job_.is_idle(rank) || lags(job_, rank); });
}

// A receive can be posted long before its turn: only a sign of a hang makes it one that lacks its
// sender.
void CandidateSearch::collect_p2p() {
  if (!job_.timed_out) return;
  for (const auto& [rank, calls] : job_.pending) {
    for (const PendingCall& call : calls) {
      if (!job_.lacks_other_side(call)) continue;
      found_.p2p.push_back({.group = call.group,
                            .number = call.seen.call->number,
                            .waiting = {rank},
                            .not_called = {call.peer()},
                            .unseen = {},
                            .absent = {},
                            .since = call.seen.call->created_ns,
                            .p2p = &call,
                            .called = false,
                            .proven = true});
      break;
    }
  }
  std::stable_sort(
      found_.p2p.begin(), found_.p2p.end(),
      [](const WaitCandidate& a, const WaitCandidate& b) { return a.since < b.since; });
}

// Members whose device is in a call that the others have completed, while those wait in a later one
// of the group.
void CandidateSearch::collect_stalled() {
  for (const JointGroup& group : job_.groups) {
    const std::vector<std::int64_t> pending = group.pending();
    if (pending.size() < 2 || group.numbers_mixed || !first_mismatch(group).empty()) continue;
    const Ranks behind = group.ranks_at(pending.front(), Standing::waiting);
    const Ranks done = group.ranks_at(pending.front(), Standing::completed);
    if (2 * behind.size() >= behind.size() + done.size()) continue;
    // Else it is only an older dump than those of the others.
    if (!shows_hang(job_, group, pending.front())) continue;
    if (!std::all_of(behind.begin(), behind.end(),
                     [this](std::int64_t rank) { return is_stalled(job_, rank); }))
      continue;
    for (const std::int64_t number : pending) {
      Ranks waiting = group.ranks_at(number, Standing::waiting);
      std::erase_if(waiting, [&done](std::int64_t rank) {
        return std::find(done.begin(), done.end(), rank) == done.end();
      });
      if (waiting.empty()) continue;
      found_.stalled.push_back({.group = &group,
                                .number = number,
                                .waiting = std::move(waiting),
                                .not_called = behind,
                                .unseen = {},
                                .absent = {},
                                .since = group.since(number),
                                .p2p = nullptr,
                                .called = true,
                                .proven = true});
      break;
    }
  }
  std::stable_sort(
      found_.stalled.begin(), found_.stalled.end(),
      [](const WaitCandidate& a, const WaitCandidate& b) { return a.since < b.since; });
}

bool others_completed(const PendingCall& call) {
  if (call.seen.call->p2p) return false;
  const std::int64_t number = call.seen.call->number;
  const std::size_t completed = call.group->ranks_at(number, Standing::completed).size();
  return completed > 0 && completed >= call.group->ranks_at(number, Standing::waiting).size();
}

}  // namespace

WaitCandidates find_candidates(const JointCalls& job) { return CandidateSearch(job).run(); }

bool is_stalled(const JointCalls& job, std::int64_t rank) {
  const auto pending = job.pending.find(rank);
  return pending != job.pending.end() && others_completed(pending->second.front());
}

bool lags(const JointCalls& job, std::int64_t rank) {
  const auto pending = job.pending.find(rank);
  if (pending == job.pending.end()) return false;
  const std::vector<PendingCall>& calls = pending->second;
  const PendingCall& oldest = calls.front();
  if (!oldest.seen.witness->only_pending || !others_completed(oldest)) return false;
  const auto next = std::find_if(calls.begin(), calls.end(), [&oldest](const PendingCall& call) {
    return call.group == oldest.group && !call.seen.call->p2p &&
           call.seen.call->number != oldest.seen.call->number;
  });
  return next != calls.end() && others_completed(*next);
}

}  // namespace commlens
