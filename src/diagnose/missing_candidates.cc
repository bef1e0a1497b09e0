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
                              .called = false};
      candidate.unseen = merged_ranks(candidate.unseen, candidate.absent);
      if (is_passing(candidate)) break;
      if (!candidate.not_called.empty()) {
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

// Whether those who have not called it are only in the call before it, which those who wait have
// left: a dump that was written a moment earlier looks like that. One of pending calls alone is of
// a job that hung, mostly; who is further behind, or has nothing pending, is asked about.
bool CandidateSearch::is_passing(const WaitCandidate& candidate) const {
  const JointGroup& group = *candidate.group;
  const std::int64_t before = candidate.number - 1;
  if (candidate.not_called.empty()) return false;
  const bool close =
      std::all_of(candidate.not_called.begin(), candidate.not_called.end(), [&](std::int64_t rank) {
        const RankInGroup& row = group.ranks.at(rank);
        const auto pending = job_.pending.find(rank);
        return row.at(before) == Standing::waiting && !row.witness->only_pending &&
               pending != job_.pending.end() && pending->second.front().group == &group &&
               pending->second.front().seen.call->number == before;
      });
  return close &&
         std::all_of(candidate.waiting.begin(), candidate.waiting.end(),
                     [&](std::int64_t rank) {
                       return group.ranks.at(rank).at(before) == Standing::completed;
                     }) &&
         !shows_hang(job_, group, before);
}

// Sends and receives whose other side tells all that it has pending, and has no counterpart there.
void CandidateSearch::collect_p2p() {
  const auto has_counterpart = [this](std::int64_t rank, const PendingCall& call) {
    const std::int64_t peer = call.peer();
    const auto theirs = job_.pending.find(peer);
    if (theirs == job_.pending.end()) return false;
    return std::any_of(theirs->second.begin(), theirs->second.end(), [&](const PendingCall& other) {
      return other.seen.call->p2p && other.peer() == rank &&
             other.seen.call->op != call.seen.call->op;
    });
  };
  for (const auto& [rank, calls] : job_.pending) {
    for (const PendingCall& call : calls) {
      const auto peer = job_.witnesses.find(call.peer());
      if (!call.seen.call->p2p || call.peer() == rank || peer == job_.witnesses.end()) continue;
      if (!peer->second->lists_pending || peer->second->damaged) continue;
      if (has_counterpart(rank, call)) continue;
      found_.p2p.push_back({.group = call.group,
                            .number = call.seen.call->number,
                            .waiting = {rank},
                            .not_called = {call.peer()},
                            .unseen = {},
                            .absent = {},
                            .since = call.seen.call->created_ns,
                            .p2p = &call,
                            .called = false});
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
                                .called = true});
      break;
    }
  }
  std::stable_sort(
      found_.stalled.begin(), found_.stalled.end(),
      [](const WaitCandidate& a, const WaitCandidate& b) { return a.since < b.since; });
}

}  // namespace

WaitCandidates find_candidates(const JointCalls& job) { return CandidateSearch(job).run(); }

bool is_stalled(const JointCalls& job, std::int64_t rank) {
  const auto pending = job.pending.find(rank);
  if (pending == job.pending.end()) return false;
  const PendingCall& oldest = pending->second.front();
  if (oldest.seen.call->p2p) return false;
  const std::int64_t number = oldest.seen.call->number;
  const std::size_t completed = oldest.group->ranks_at(number, Standing::completed).size();
  return completed > 0 && completed >= oldest.group->ranks_at(number, Standing::waiting).size();
}

Ranks merged_ranks(Ranks a, const Ranks& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

}  // namespace commlens
