// Ranks that others wait for.
//
// Problem: when one rank stops, soon most of the job stands in some operation that lacks a member,
// and most of the members lacking are themselves held by another operation. Example: rank 3 sleeps;
//
//   rank 0   all_reduce 7 of tp0 [0,1]      both called it: it only waits for its turn
//   rank 1   all_reduce 7 of tp0 [0,1]
//   rank 2   all_reduce 7 of tp1 [2,3]      rank 3 has not called it
//   rank 3   nothing pending
//   rank 0   ... and all_gather 4 of dp [0,2]: rank 2 has not called it, since it is held in tp1
//
// Method: each group has at most one candidate, its lowest pending number that some member has not
// called. A member that has not come is a root cause only where it is free to come: it has nothing
// pending, or its own oldest pending call was completed by others, so that it is its own device
// that does not move. Others who are missing are held elsewhere. WaitCandidates without a root
// cause follow from those that have one; where nobody has one the ranks wait for each other in a
// circle, or something holds them that these files do not show. Where all members have called
// everything, those whose device is still in a call that others have left behind are missing from
// the next. Sends and receives are weaker evidence (they can be posted long before the other side's
// turn) and are only asked where collectives say nothing, and something shows a hang.
//
// Dumps are also written while all is well, one after the other. Without a sign of a hang a rank
// that has nothing pending is named at most as undecided, and one that is in a call which others
// have left is an open question (remarks.cc).
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "diagnose/joint_hangs.h"
#include "diagnose/joint_holding.h"
#include "diagnose/missing_candidates.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

bool all_in(const Ranks& some, const Ranks& all) {
  return std::all_of(some.begin(), some.end(), [&all](std::int64_t rank) {
    return std::find(all.begin(), all.end(), rank) != all.end();
  });
}

bool any_in(const Ranks& some, const Ranks& all) {
  return std::any_of(some.begin(), some.end(), [&all](std::int64_t rank) {
    return std::find(all.begin(), all.end(), rank) != all.end();
  });
}

class Search {
 public:
  explicit Search(const JointCalls& job) : job_(job), found_(find_candidates(job)) {}
  std::vector<DiagnosisFinding> run();

 private:
  bool is_free(std::int64_t rank) const;
  bool only_receives(std::int64_t rank) const;
  Ranks roots_of(const WaitCandidate& candidate, bool patient) const;
  bool only_behind(std::int64_t rank, const WaitCandidate& candidate) const;
  bool is_ahead(const WaitCandidate& candidate) const;
  void take(const WaitCandidate& candidate, const Ranks& roots, bool ahead);
  void take_roots(std::vector<WaitCandidate>& candidates, bool patient);
  void take_circle(const std::vector<WaitCandidate>& candidates);
  void take_held(bool unseen_too);
  bool is_proven_wait(const WaitCandidate& candidate) const;
  void take_unseen();
  void take_unseen_peers();
  void add_evidence(DiagnosisFinding& finding, const WaitCandidate& candidate,
                    const Ranks& named) const;

  const JointCalls& job_;
  WaitCandidates found_;
  std::vector<DiagnosisFinding> findings_;
};

bool Search::is_free(std::int64_t rank) const {
  return job_.is_idle(rank) || is_stalled(job_, rank);
}

// Receives are posted ahead of time by programs that do other things meanwhile.
bool Search::only_receives(std::int64_t rank) const {
  const auto pending = job_.pending.find(rank);
  return pending != job_.pending.end() &&
         std::all_of(pending->second.begin(), pending->second.end(),
                     [](const PendingCall& call) { return call.seen.call->op == Op::recv; });
}

Ranks Search::roots_of(const WaitCandidate& candidate, bool patient) const {
  Ranks roots;
  for (const std::int64_t rank : candidate.not_called) {
    const bool root = candidate.proven ? is_free(rank) || (patient && only_receives(rank))
                                       : job_.is_idle(rank) || lags(job_, rank);
    if (root) roots.push_back(rank);
  }
  return roots;
}

// Has nothing else to do than to come to the candidate: nothing pending, or an earlier call of the
// group that those who wait have left behind.
bool Search::only_behind(std::int64_t rank, const WaitCandidate& candidate) const {
  const auto pending = job_.pending.find(rank);
  if (pending == job_.pending.end()) return true;
  const PendingCall& oldest = pending->second.front();
  const std::int64_t number = oldest.seen.call->number;
  return oldest.group == candidate.group && !oldest.seen.call->p2p && number < candidate.number &&
         all_in(candidate.waiting, candidate.group->ranks_at(number, Standing::completed));
}

// Most of the group has not called it, and nothing else holds them: those who wait are ahead.
bool Search::is_ahead(const WaitCandidate& candidate) const {
  const std::size_t members =
      std::max(candidate.group->members.size(), candidate.group->ranks.size());
  return candidate.p2p == nullptr && 2 * candidate.not_called.size() > members &&
         std::all_of(candidate.not_called.begin(), candidate.not_called.end(),
                     [&](std::int64_t rank) {
                       return candidate.proven ? only_behind(rank, candidate) : job_.is_idle(rank);
                     });
}

void Search::add_evidence(DiagnosisFinding& finding, const WaitCandidate& candidate,
                          const Ranks& named) const {
  const JointGroup& group = *candidate.group;
  const auto add = [&](const Ranks& ranks, std::size_t most) {
    const Ranks shown(ranks.begin(),
                      ranks.begin() + static_cast<std::ptrdiff_t>(std::min(most, ranks.size())));
    for (std::string& line : evidence_lines(group, shown, candidate.number))
      finding.evidence.push_back(std::move(line));
  };
  if (candidate.p2p != nullptr) {
    finding.evidence.push_back(evidence_line(candidate.p2p->seen));
  } else if (finding.kind == DiagnosisKind::rank_ahead) {
    add(candidate.waiting, 8);
    add(named, 2);
  } else {
    add(named, 8);
    add(candidate.waiting, 1);
  }
  Ranks idle;
  for (const std::int64_t rank : named) {
    const auto witness = job_.witnesses.find(rank);
    if (job_.is_idle(rank) && witness != job_.witnesses.end() && witness->second->lists_pending)
      idle.push_back(rank);
  }
  if (!idle.empty())
    finding.evidence.push_back(rank_words(idle) + (idle.size() == 1 ? " has" : " have") +
                               " nothing pending in any group: the program did not get here");
  for (const std::int64_t rank : named) {
    if (!is_stalled(job_, rank)) continue;
    finding.evidence.push_back(
        evidence_line(job_.pending.at(rank).front().seen) +
        "; others have completed it: " + (candidate.proven ? "" : "if the job hangs, ") +
        "the GPU of rank " + std::to_string(rank) + " stands still");
  }
}

std::string words_of(const WaitCandidate& candidate) {
  if (candidate.p2p == nullptr) return operation_words(*candidate.group, candidate.number);
  return op_word(candidate.p2p->seen) + " " + std::to_string(candidate.number) + " of group " +
         candidate.group->label();
}

// "rank 1 has not sent to rank 0, which waits in recv 1 of group 0": the other side of an operation
// is another one.
std::string lacking_words(const WaitCandidate& candidate, const Ranks& roots) {
  const char* waits = candidate.waiting.size() == 1 ? " waits" : " wait";
  if (candidate.p2p != nullptr)
    return rank_words(roots) + " has not " +
           (candidate.p2p->seen.call->op == Op::recv ? "sent to " : "received from ") +
           rank_words(candidate.waiting) + ", which" + waits + " in " + words_of(candidate);
  return rank_words(roots) + (roots.size() == 1 ? " has" : " have") +
         (candidate.called ? " not come to " : " not called ") + words_of(candidate) +
         ", in which " + rank_words(candidate.waiting) + waits;
}

std::string unseen_words(const WaitCandidate& candidate) {
  if (candidate.unseen.empty()) return {};
  return "; nothing is known of " + rank_words(candidate.unseen);
}

std::string_view advice_for_missing(bool stalled) {
  return stalled
             ? "look for GPU errors on these ranks (Xid in the kernel's log, nvidia-smi -q) and "
               "for a kernel that does not end"
             : "look at the stack of these ranks' processes (py-spy dump --pid PID): data "
               "loading, a checkpoint, a lock, or a branch that skips this call";
}

void Search::take(const WaitCandidate& candidate, const Ranks& roots, bool ahead) {
  const JointGroup& group = *candidate.group;
  DiagnosisFinding finding = group.finding(
      ahead ? DiagnosisKind::rank_ahead : DiagnosisKind::missing_rank, candidate.number);
  finding.since_ns = candidate.since;
  if (candidate.p2p != nullptr) finding.op = op_word(candidate.p2p->seen);
  const std::string since = since_words(candidate.since);
  bool inferred = candidate.p2p != nullptr || candidate.called;
  for (const std::int64_t rank : ahead ? candidate.not_called : roots)
    inferred |= candidate.p2p == nullptr && group.ranks.at(rank).inferred;
  if (ahead) {
    for (const std::int64_t rank : candidate.waiting)
      finding.differing.push_back(
          {rank, "seq", std::to_string(candidate.number), std::to_string(candidate.number - 1)});
    finding.message = rank_words(candidate.waiting) + " called " + words_of(candidate) + since +
                      ", " + rank_words(candidate.not_called) + " did not" +
                      (inferred ? "" : " and are held by nothing else") + ": " +
                      (candidate.waiting.size() == 1 ? "it is ahead" : "they are ahead");
    finding.advice =
        "look for a call that only these ranks make: a longer loop, one more batch, a "
        "condition on the rank";
    finding.consequences = job_.held_by(candidate.waiting);
    add_evidence(finding, candidate, candidate.not_called);
  } else {
    finding.missing_ranks = roots;
    finding.message = lacking_words(candidate, roots) + since;
    finding.advice = advice_for_missing(std::any_of(
        roots.begin(), roots.end(), [this](std::int64_t rank) { return is_stalled(job_, rank); }));
    finding.consequences = merged_ranks(job_.held_by(roots), {});
    add_evidence(finding, candidate, roots);
  }
  finding.message += unseen_words(candidate);
  finding.held = candidate.waiting;
  const bool majority = ahead || candidate.waiting.size() > candidate.not_called.size();
  const bool sure = !inferred && candidate.unseen.empty() && majority;
  finding.confidence = sure ? Confidence::certain : Confidence::likely;
  if (!candidate.proven) {
    // That the others wait for it is seen; that it never comes is not.
    finding.message += "; nothing in these dumps proves that the job hangs";
    const bool seen = sure && !ahead && candidate.waiting.size() > 2;
    finding.confidence = seen ? Confidence::likely : Confidence::undecidable;
  }
  findings_.push_back(std::move(finding));
}

// First those who are missing, then those who are ahead: a rank that is missing elsewhere makes
// nobody who waits for it ahead. What adds no new root cause only adds a line.
void Search::take_roots(std::vector<WaitCandidate>& candidates, bool patient) {
  // What lacks only root causes is nearer to them than what also lacks ranks that they hold.
  std::stable_partition(candidates.begin(), candidates.end(), [&](const WaitCandidate& candidate) {
    return roots_of(candidate, patient) == candidate.not_called;
  });
  for (const bool ahead : {false, true}) {
    for (const WaitCandidate& candidate : candidates) {
      if (is_ahead(candidate) != ahead) continue;
      const Ranks roots = ahead ? candidate.not_called : roots_of(candidate, patient);
      if (roots.empty()) continue;
      const auto known =
          std::find_if(findings_.begin(), findings_.end(), [&](const DiagnosisFinding& finding) {
            return all_in(roots, finding.missing_ranks) ||
                   (ahead && any_in(candidate.not_called, finding.missing_ranks));
          });
      if (known == findings_.end()) {
        take(candidate, roots, ahead);
        continue;
      }
      if (candidate.p2p == nullptr && !candidate.called)
        known->evidence.push_back("also missing: " + rank_words(roots) + " from " +
                                  operation_words(*candidate.group, candidate.number));
    }
  }
}

std::string_view circle_advice(const std::vector<const WaitCandidate*>& path) {
  const bool one_group = std::all_of(path.begin(), path.end(), [&path](const WaitCandidate* step) {
    return step->p2p != nullptr && step->group == path.front()->group;
  });
  return one_group
             ? "pair each send with a receive of the other side: let one rank send first where "
               "the other one receives first, or post both at once by batch_isend_irecv"
             : "make all ranks call these groups in the same order";
}

// Everyone who is missing is held by something: by each other, if it closes.
void Search::take_circle(const std::vector<WaitCandidate>& candidates) {
  std::map<std::int64_t, const WaitCandidate*> waits_in;  // the candidate that holds a rank
  for (const WaitCandidate& candidate : candidates) {
    for (const std::int64_t rank : candidate.waiting) waits_in.emplace(rank, &candidate);
  }
  for (const WaitCandidate& start : candidates) {
    std::vector<const WaitCandidate*> path;
    const WaitCandidate* at = &start;
    while (at != nullptr && std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      const auto next = std::find_if(at->not_called.begin(), at->not_called.end(),
                                     [&](std::int64_t rank) { return waits_in.contains(rank); });
      at = next == at->not_called.end() ? nullptr : waits_in.at(*next);
    }
    if (at != &start || path.size() < 2) continue;
    DiagnosisFinding finding = start.group->finding(DiagnosisKind::order_mismatch, start.number);
    finding.message = "ranks wait for each other in a circle:";
    for (const WaitCandidate* step : path) {
      finding.message += (step == path.front() ? " " : "; ") + rank_words(step->waiting) + " in " +
                         words_of(*step) + " for " + rank_words(step->not_called);
      finding.held = merged_ranks(finding.held, step->waiting);
      if (step->p2p != nullptr) {
        finding.evidence.push_back(evidence_line(step->p2p->seen));
        continue;
      }
      for (std::string& line : evidence_lines(*step->group, step->waiting, step->number))
        finding.evidence.push_back(std::move(line));
    }
    if (start.p2p != nullptr) finding.op = op_word(start.p2p->seen);
    finding.message += since_words(start.since);
    finding.consequences = merged_ranks(finding.held, job_.held_by(finding.held));
    finding.confidence = Confidence::likely;
    finding.advice = circle_advice(path);
    findings_.push_back(std::move(finding));
    return;
  }
}

// Everyone who is missing stands in another operation: that one is the cause, and nobody is
// accused. Where it lacks members who were not seen, these are asked first.
void Search::take_held(bool unseen_too) {
  const auto proven = std::find_if(found_.collectives.begin(), found_.collectives.end(),
                                   [](const WaitCandidate& candidate) { return candidate.proven; });
  if (proven == found_.collectives.end()) return;
  const WaitCandidate& first = *proven;
  const HoldingCall here{
      .group = first.group, .number = first.number, .p2p = nullptr, .is_head = false};
  const HoldingCall holding = find_holding_call(job_, *first.group, first.number).value_or(here);
  const bool unseen = holding.p2p == nullptr &&
                      !(holding.group->ranks_at(holding.number, Standing::unknown).empty() &&
                        holding.group->ranks_at(holding.number, Standing::absent).empty());
  if (unseen && !unseen_too) return;
  DiagnosisFinding finding = held_finding(job_, holding);
  if (holding.group != first.group || holding.number != first.number || holding.p2p != nullptr)
    finding.evidence.push_back("follows from it: " + lacking_words(first, first.not_called) +
                               since_words(first.since));
  findings_.push_back(std::move(finding));
}

Ranks seen_but_silent(const WaitCandidate& candidate) {
  Ranks silent;
  std::set_difference(candidate.unseen.begin(), candidate.unseen.end(), candidate.absent.begin(),
                      candidate.absent.end(), std::back_inserter(silent));
  return silent;
}

std::string unseen_reason(const WaitCandidate& candidate) {
  const Ranks silent = seen_but_silent(candidate);
  std::string text;
  if (!candidate.absent.empty())
    text = "there is no usable dump of " + (silent.empty()
                                                ? (candidate.absent.size() == 1 ? "it" : "them")
                                                : rank_words(candidate.absent));
  if (!silent.empty())
    text += (text.empty() ? "" : ", and ") + std::string("the ") +
            (silent.size() == 1 ? "dump of " : "dumps of ") +
            (candidate.absent.empty() ? (silent.size() == 1 ? "it" : "them") : rank_words(silent)) +
            (silent.size() == 1 ? " does" : " do") +
            " not tell whether it was never called or has completed";
  return text;
}

std::string unseen_advice(const WaitCandidate& candidate) {
  const Ranks silent = seen_but_silent(candidate);
  std::string text;
  if (!candidate.absent.empty())
    text = "add the dumps of " + rank_words(candidate.absent) +
           "; if they wrote none, look at what became of their processes";
  if (!silent.empty())
    text += (text.empty() ? "" : "; ") + std::string("dump ") + rank_words(silent) +
            " again, with completed calls, and look at the stack of " +
            (silent.size() == 1 ? "its process" : "their processes") + " (py-spy dump --pid PID)";
  return text;
}

// Something shows that the job hangs; an absent dump counts as such, since most ranks wrote theirs.
bool Search::is_proven_wait(const WaitCandidate& candidate) const {
  return !candidate.absent.empty() || job_.witnesses.empty() ||
         shows_hang(job_, *candidate.group, candidate.number);
}

// Only members of whom nothing is known can be behind it. They are named where they are few, and
// never as certain: their files may only not be here.
void Search::take_unseen() {
  for (const WaitCandidate& candidate : found_.unseen) {
    const bool explained =
        std::any_of(findings_.begin(), findings_.end(), [&](const DiagnosisFinding& finding) {
          return all_in(candidate.waiting, merged_ranks(finding.consequences, finding.held)) ||
                 (finding.confidence == Confidence::undecidable &&
                  all_in(candidate.unseen, finding.missing_ranks));
        });
    if (explained || !candidate.group->ranks_at(candidate.number, Standing::completed).empty())
      continue;
    // Who has something pending is held there: an open question where nothing shows a hang.
    Ranks suspects = candidate.unseen;
    std::erase_if(suspects, [this](std::int64_t rank) { return !job_.is_idle(rank); });
    const JointGroup& group = *candidate.group;
    if (suspects.empty() && (!findings_.empty() || !is_proven_wait(candidate))) continue;
    DiagnosisFinding finding = group.finding(DiagnosisKind::missing_rank, candidate.number);
    const std::size_t members = std::max(group.members.size(), group.ranks.size());
    if (2 * candidate.unseen.size() < members) finding.missing_ranks = suspects;
    finding.message = rank_words(candidate.waiting) +
                      (candidate.waiting.size() == 1 ? " waits" : " wait") + " in " +
                      operation_words(group, candidate.number) + since_words(candidate.since) +
                      "; it cannot be decided whether " + rank_words(candidate.unseen) +
                      " called it: " + unseen_reason(candidate);
    finding.advice = unseen_advice(candidate);
    finding.held = candidate.waiting;
    finding.consequences = job_.held_by(candidate.unseen);
    finding.evidence = evidence_lines(group, candidate.waiting, candidate.number);
    finding.confidence = Confidence::undecidable;
    findings_.push_back(std::move(finding));
  }
}

// Nothing but sends and receives with ranks of whom nothing is known.
void Search::take_unseen_peers() {
  const PendingCall* first = nullptr;
  Ranks waiting;
  Ranks peers;
  for (const auto& [rank, calls] : job_.pending) {
    for (const PendingCall& call : calls) {
      const std::int64_t peer = call.peer();
      if (peer < 0 || peer == rank || job_.witnesses.contains(peer)) continue;
      waiting = merged_ranks(waiting, {rank});
      peers = merged_ranks(peers, {peer});
      if (first == nullptr || call.seen.call->created_ns < first->seen.call->created_ns)
        first = &call;
    }
  }
  if (first == nullptr) return;
  DiagnosisFinding finding =
      first->group->finding(DiagnosisKind::missing_rank, first->seen.call->number);
  finding.op = op_word(first->seen);
  finding.since_ns = first->seen.call->created_ns;
  finding.message = rank_words(waiting) + (waiting.size() == 1 ? " waits" : " wait") +
                    " in sends and receives with " + rank_words(peers) +
                    since_words(finding.since_ns) + "; there is no usable dump of " +
                    (peers.size() == 1 ? "it" : "them") + ", so that nothing can be decided";
  finding.evidence.push_back(evidence_line(first->seen));
  finding.held = waiting;
  finding.consequences = job_.held_by(peers);
  finding.confidence = Confidence::undecidable;
  finding.advice = "add the dumps of " + rank_words(peers);
  findings_.push_back(std::move(finding));
}

std::vector<DiagnosisFinding> Search::run() {
  take_roots(found_.collectives, false);
  if (findings_.empty()) take_roots(found_.collectives, true);
  if (findings_.empty()) take_circle(found_.collectives);
  take_roots(found_.stalled, false);
  if (found_.collectives.empty() || !findings_.empty()) take_roots(found_.p2p, false);
  if (findings_.empty() && !found_.mismatched) take_circle(found_.p2p);
  if (findings_.empty() && !found_.mismatched) take_held(false);
  take_unseen();
  if (findings_.empty() && !found_.mismatched) take_held(true);
  if (findings_.empty() && !found_.mismatched) take_unseen_peers();
  return std::move(findings_);
}

std::vector<DiagnosisFinding> find_missing_ranks(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (DiagnosisFinding& finding : Search(job).run()) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Verdict kMissingRanks;
constinit const Verdict kMissingRanks{
    .name = "missing_ranks",
    .summary = "Who has not come to an operation in which others wait, or came to one too many?",
    .find = find_missing_ranks,
};

}  // namespace commlens
