// Ranks whose device is behind: everyone called the operation, others have completed or begun it.
//
// A difference alone is no fault, since dumps are written one after the other: something must prove
// that the job hangs, else it is an open question (remarks.cc). It counts where the rank's oldest
// pending call is the one that others are done with, so that nothing else holds it.
#include <algorithm>
#include <map>

#include "diagnose/joint_hangs.h"
#include "diagnose/joint_mismatch.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

using Ranks = std::vector<std::int64_t>;

// "scheduled", "started", "completed" of each rank that called it.
std::map<CallState, Ranks> states_at(const JointGroup& group, std::int64_t number) {
  std::map<CallState, Ranks> states;
  for (const auto& [rank, row] : group.ranks) {
    const Standing standing = row.at(number);
    if (standing == Standing::completed) states[CallState::completed].push_back(rank);
    if (standing != Standing::waiting) continue;
    states[row.calls.at(number).front().call->state].push_back(rank);
  }
  return states;
}

bool is_oldest_of(const JointCalls& job, std::int64_t rank, const JointGroup& group,
                  std::int64_t number) {
  const auto pending = job.pending.find(rank);
  return pending != job.pending.end() && pending->second.front().group == &group &&
         pending->second.front().seen.call->number == number;
}

void add(const JointCalls& job, const JointGroup& group, std::int64_t number,
         std::vector<DiagnosisFinding>& findings) {
  const auto states = states_at(group, number);
  if (states.size() < 2) return;
  const auto most = std::max_element(
      states.begin(), states.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::size_t seen = 0;
  for (const auto& [state, ranks] : states) seen += ranks.size();
  const Ranks& behind = states.begin()->second;
  if (std::none_of(behind.begin(), behind.end(),
                   [&](std::int64_t rank) { return is_oldest_of(job, rank, group, number); }))
    return;
  DiagnosisFinding finding = group.finding(DiagnosisKind::state_mismatch, number);
  const bool majority = 2 * most->second.size() > seen;
  std::string sides;
  for (const auto& [state, ranks] : states) {
    sides +=
        (sides.empty() ? "" : ", ") + rank_words(ranks) + ": " + std::string(state_name(state));
    if (!majority || state == most->first) continue;
    for (const std::int64_t rank : ranks)
      finding.differing.push_back(
          {rank, "state", std::string(state_name(state)), std::string(state_name(most->first))});
  }
  std::sort(finding.differing.begin(), finding.differing.end(),
            [](const DifferingRank& a, const DifferingRank& b) { return a.rank < b.rank; });
  finding.message = "all who were seen called " + operation_words(group, number) +
                    since_words(group.since(number)) +
                    ", and do not stand at the same point: " + sides;
  if (!majority) finding.message += "; there is no majority to tell who is off";
  finding.evidence = evidence_lines(group, behind, number);
  finding.held = group.ranks_at(number, Standing::waiting);
  finding.consequences = job.held_by(behind);
  // Who is ahead of most is odd, and held by nobody: those behind are to be looked at.
  const bool minority_behind = majority && most->first != states.begin()->first;
  if (majority && !minority_behind)
    finding.message +=
        "; most are behind, and the devices of any of them can be what holds the rest";
  finding.confidence = minority_behind ? Confidence::likely : Confidence::undecidable;
  finding.advice = "look for GPU errors on " + rank_words(behind) +
                   " (Xid in the kernel's log) and for a kernel before this call that does not end";
  findings.push_back(std::move(finding));
}

// Where the group stands: its lowest pending number, if no member is missing from it.
void look_at(const JointCalls& job, const JointGroup& group,
             std::vector<DiagnosisFinding>& findings) {
  const std::vector<std::int64_t> pending = group.pending();
  if (pending.empty() || group.numbers_mixed || !first_mismatch(group).empty()) return;
  if (!group.ranks_at(pending.front(), Standing::not_called).empty()) return;
  if (shows_hang(job, group, pending.front())) add(job, group, pending.front(), findings);
}

std::vector<DiagnosisFinding> find_states(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (const JointGroup& group : job.groups) look_at(job, group, findings);
  }
  return findings;
}

}  // namespace

extern const Verdict kStates;
constinit const Verdict kStates{
    .name = "states",
    .summary = "Whose device is behind in an operation that all have called?",
    .find = find_states,
};

}  // namespace commlens
