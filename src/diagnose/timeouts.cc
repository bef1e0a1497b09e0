// Operations that timed out although all members called them: the last resort, where nothing tells
// who is behind it. Needs proof that it hung: dumps are also written on request, while all is well.
#include <algorithm>

#include "diagnose/joint_hangs.h"
#include "diagnose/joint_mismatch.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

void add(const JointGroup& group, std::int64_t number, std::vector<DiagnosisFinding>& findings) {
  DiagnosisFinding finding = group.finding(DiagnosisKind::timeout, number);
  finding.held = group.ranks_at(number, Standing::waiting);
  finding.consequences = finding.held;
  finding.message = rank_words(finding.held) + (finding.held.size() == 1 ? " waits" : " wait") +
                    " in " + operation_words(group, number) + since_words(finding.since_ns) +
                    ", longer than its timeout; every member that was seen has called it, so that "
                    "nothing here tells who is behind it";
  finding.evidence = evidence_lines(group, finding.held, number);
  finding.confidence = Confidence::undecidable;
  finding.advice =
      "look at the network and at GPU errors of all members, and run again with "
      "NCCL_DEBUG=INFO and TORCH_NCCL_ENABLE_TIMING=1";
  findings.push_back(std::move(finding));
}

void look_for_timeout(const JointCalls& job, const JointGroup& group,
                      std::vector<DiagnosisFinding>& findings) {
  const std::vector<std::int64_t> pending = group.pending();
  if (pending.empty() || !first_mismatch(group).empty()) return;
  const std::int64_t number = pending.front();
  if (!group.ranks_at(number, Standing::not_called).empty()) return;
  for (const auto& [rank, row] : group.ranks) {
    const auto calls = row.calls.find(number);
    if (row.at(number) != Standing::waiting || calls == row.calls.end()) continue;
    if (!timed_out(job, calls->second.front())) continue;
    return add(group, number, findings);
  }
}

std::vector<DiagnosisFinding> find_timeouts(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (const JointGroup& group : job.groups) look_for_timeout(job, group, findings);
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
