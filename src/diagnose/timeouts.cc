// Operations that timed out although all members called them: the last resort, where nothing tells
// who is behind it. Needs proof that it hung: dumps are also written on request, while all is well.
#include <algorithm>

#include "diagnose/joint_hangs.h"
#include "diagnose/joint_holding.h"
#include "diagnose/joint_mismatch.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

class TimeoutSearch {
 public:
  explicit TimeoutSearch(const JointCalls& job) : job_(job) {}
  std::vector<DiagnosisFinding> run();

 private:
  void look_at(const JointGroup& group);
  void look_at_pairs();
  void add(const HoldingCall& call, const DiagnosisFinding* behind);

  const JointCalls& job_;
  std::vector<DiagnosisFinding> findings_;
};

// Each operation once; `behind`: one that waits for it.
void TimeoutSearch::add(const HoldingCall& call, const DiagnosisFinding* behind) {
  DiagnosisFinding finding = held_finding(job_, call);
  const auto known =
      std::find_if(findings_.begin(), findings_.end(), [&](const DiagnosisFinding& earlier) {
        return earlier.group == finding.group && earlier.group_ranks == finding.group_ranks &&
               earlier.seq == finding.seq && earlier.message == finding.message;
      });
  DiagnosisFinding& added =
      known == findings_.end() ? findings_.emplace_back(std::move(finding)) : *known;
  if (behind != nullptr) added.evidence.push_back("follows from it: " + behind->message);
}

void TimeoutSearch::look_at(const JointGroup& group) {
  const std::vector<std::int64_t> pending = group.pending();
  if (pending.empty() || !first_mismatch(group).empty()) return;
  const HoldingCall here{.group = &group, .number = pending.front()};
  if (!group.ranks_at(here.number, Standing::not_called).empty()) return;
  const bool late = std::any_of(group.ranks.begin(), group.ranks.end(), [&](const auto& entry) {
    const auto calls = entry.second.calls.find(here.number);
    return entry.second.at(here.number) == Standing::waiting && calls != entry.second.calls.end() &&
           timed_out(job_, calls->second.front());
  });
  if (!late) return;
  // Members who are still in another operation, if that is what holds this one.
  const auto holding = find_holding_call(job_, group, here.number);
  if (!holding || !holding->is_head ||
      (holding->group == here.group && holding->number == here.number))
    return add(here, nullptr);
  const DiagnosisFinding behind = held_finding(job_, here);
  add(*holding, &behind);
}

// Sends and receives whose other side has called its part. Who lacks one is asked about by
// missing_ranks.cc.
void TimeoutSearch::look_at_pairs() {
  for (const auto& [rank, calls] : job_.pending) {
    const auto late = std::find_if(calls.begin(), calls.end(), [&](const PendingCall& call) {
      const std::int64_t peer = call.peer();
      return call.seen.call->p2p && timed_out(job_, call.seen) && peer >= 0 && peer != rank &&
             job_.pending.contains(peer) && !job_.lacks_other_side(call);
    });
    if (late == calls.end()) continue;
    const Ranks both = merged_ranks({rank}, {late->peer()});
    const bool known =
        std::any_of(findings_.begin(), findings_.end(), [&both](const DiagnosisFinding& finding) {
          return std::includes(finding.held.begin(), finding.held.end(), both.begin(), both.end());
        });
    if (!known)
      add({.group = late->group, .number = late->seen.call->number, .p2p = &*late}, nullptr);
  }
}

std::vector<DiagnosisFinding> TimeoutSearch::run() {
  for (const JointGroup& group : job_.groups) look_at(group);
  look_at_pairs();
  return std::move(findings_);
}

std::vector<DiagnosisFinding> find_timeouts(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (DiagnosisFinding& finding : TimeoutSearch(job).run())
      findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Verdict kTimeouts;
constinit const Verdict kTimeouts{
    .name = "timeouts",
    .summary = "Which operation timed out although all members called it?",
    .find = find_timeouts,
};

}  // namespace commlens
