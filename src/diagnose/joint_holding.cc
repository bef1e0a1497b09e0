#include "diagnose/joint_holding.h"

#include <algorithm>

#include "diagnose/joint_hangs.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

// What holds one step.
struct HoldingStep {
  const PendingCall* next = nullptr;  // null: nothing else
  bool is_free = false;               // somebody has not come and has nothing pending
};

HoldingStep step_from(const JointCalls& job, const JointGroup& group, std::int64_t number) {
  HoldingStep step;
  bool is_absent = false;  // the next one is of a rank that has not called it
  for (const auto& [rank, row] : group.ranks) {
    const Standing standing = row.at(number);
    if (standing == Standing::completed || standing == Standing::absent) continue;
    const auto pending = job.pending.find(rank);
    if (pending == job.pending.end()) {
      step.is_free |= standing == Standing::not_called;
      continue;
    }
    const PendingCall& oldest = pending->second.front();
    if (oldest.group == &group && !oldest.seen.call->p2p && oldest.seen.call->number == number)
      continue;
    const bool not_called = standing == Standing::not_called;
    if (step.next != nullptr && (is_absent || !not_called)) continue;
    step.next = &oldest;
    is_absent = not_called;
  }
  return step;
}

bool all_called(const HoldingCall& call) {
  return call.group->ranks_at(call.number, Standing::not_called).empty();
}

// Who of those who wait in it did so for longer than it may take.
bool any_timed_out(const JointCalls& job, const HoldingCall& call, const Ranks& waiting) {
  return std::any_of(waiting.begin(), waiting.end(), [&](std::int64_t rank) {
    const auto& calls = call.group->ranks.at(rank).calls;
    const auto found = calls.find(call.number);
    return found != calls.end() && timed_out(job, found->second.front());
  });
}

bool has_started(const JointCalls& job) {
  return std::any_of(job.pending.begin(), job.pending.end(), [](const auto& row) {
    return std::any_of(row.second.begin(), row.second.end(), [](const PendingCall& call) {
      return call.seen.call->state == CallState::started;
    });
  });
}

std::string advice_for_held(const JointCalls& job) {
  return std::string(
             "look at the network and at GPU errors of all members, and run again with "
             "NCCL_DEBUG=INFO") +
         (has_started(job) ? "" : " and TORCH_NCCL_ENABLE_TIMING=1");
}

// Who stands on the other side of a send or receive is held by it as well.
DiagnosisFinding held_pair_finding(const JointCalls& job, const HoldingCall& call) {
  const SeenCall& seen = call.p2p->seen;
  const std::int64_t peer = call.p2p->peer();
  DiagnosisFinding finding = call.group->finding(DiagnosisKind::timeout, call.number);
  finding.op = op_word(seen);
  finding.since_ns = seen.call->created_ns;
  finding.held = {seen.call->rank};
  finding.evidence = {evidence_line(seen)};
  finding.message = rank_words(finding.held) + " waits in " + finding.op + " " +
                    std::to_string(call.number) + " of group " + call.group->label();
  const bool paired = peer >= 0 && job.pending.contains(peer) && !job.lacks_other_side(*call.p2p);
  if (peer >= 0)
    finding.message +=
        std::string(seen.call->op == Op::recv ? " from" : " to") + " rank " + std::to_string(peer);
  finding.message += since_words(finding.since_ns);
  if (timed_out(job, seen)) finding.message += ", longer than its timeout";
  if (paired) {
    finding.held = merged_ranks(finding.held, {peer});
    finding.message += "; the other side has called its part";
    for (const PendingCall& other : job.pending.at(peer)) {
      if (!other.seen.call->p2p || other.peer() != seen.call->rank ||
          other.seen.call->op == seen.call->op)
        continue;
      finding.evidence.push_back(evidence_line(other.seen));
      break;
    }
  }
  return finding;
}

}  // namespace

std::optional<HoldingCall> find_holding_call(const JointCalls& job, const JointGroup& group,
                                             std::int64_t number) {
  std::vector<HoldingCall> path = {{.group = &group, .number = number}};
  for (;;) {
    const HoldingCall& at = path.back();
    const HoldingStep step = step_from(job, *at.group, at.number);
    if (step.is_free) return std::nullopt;
    if (step.next == nullptr) return at;
    const HoldingCall next{.group = step.next->group, .number = step.next->seen.call->number};
    if (step.next->seen.call->p2p)
      return HoldingCall{.group = next.group, .number = next.number, .p2p = step.next};
    const auto circle = std::find_if(path.begin(), path.end(), [&next](const HoldingCall& call) {
      return call.group == next.group && call.number == next.number;
    });
    if (circle == path.end()) {
      path.push_back(next);
      continue;
    }
    auto first = std::min_element(circle, path.end(), [](const auto& a, const auto& b) {
      if (all_called(a) != all_called(b)) return all_called(a);
      return a.group->since(a.number) < b.group->since(b.number);
    });
    first->is_head = false;
    return *first;
  }
}

DiagnosisFinding held_finding(const JointCalls& job, const HoldingCall& call) {
  DiagnosisFinding finding;
  if (call.p2p != nullptr) {
    finding = held_pair_finding(job, call);
  } else {
    const JointGroup& group = *call.group;
    finding = group.finding(DiagnosisKind::timeout, call.number);
    finding.held = group.ranks_at(call.number, Standing::waiting);
    finding.message = rank_words(finding.held) + (finding.held.size() == 1 ? " waits" : " wait") +
                      " in " + operation_words(group, call.number) + since_words(finding.since_ns);
    if (any_timed_out(job, call, finding.held)) finding.message += ", longer than its timeout";
    const Ranks out = group.ranks_at(call.number, Standing::not_called);
    const Ranks unknown = group.ranks_at(call.number, Standing::unknown);
    if (!out.empty())
      finding.message += "; " + rank_words(out) + (out.size() == 1 ? " has" : " have") +
                         " not called it, and " + std::string(is_or_are(out)) + " held elsewhere";
    else if (!unknown.empty())
      finding.message += "; whether " + rank_words(unknown) + " called it is not known";
    else
      finding.message += "; every member that was seen has called it";
    finding.evidence = evidence_lines(group, finding.held, call.number);
  }
  finding.reservation = ", so that nothing here tells who is behind it";
  finding.consequences = merged_ranks(finding.held, job.held_by(finding.held));
  finding.confidence = Confidence::undecidable;
  finding.advice = advice_for_held(job);
  return finding;
}

}  // namespace commlens
