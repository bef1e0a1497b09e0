// Sends that bring another size or type than their receives take. NCCL does not compare; the pair
// hangs.
//
// A send is paired with a receive by their number. Each rank numbers its own sends and receives of
// a group, so that numbers of two ranks agree only where all of both are with each other; other
// pairs are not judged. Who of the two is wrong cannot be said.
#include <algorithm>
#include <map>

#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

// The rank that all sends and receives of a rank in a group are with; -1: several, or unknown.
std::int64_t only_peer(const JointGroup& group, const RankInGroup& rank) {
  std::int64_t peer = -1;
  for (const SeenCall& seen : rank.p2p) {
    const std::int64_t other = PendingCall{&group, seen}.peer();
    if (other < 0 || (peer >= 0 && other != peer)) return -1;
    peer = other;
  }
  return peer;
}

// By number; several of one number were launched together.
std::map<std::int64_t, std::vector<SeenCall>> calls_of(const RankInGroup& rank, Op op) {
  std::map<std::int64_t, std::vector<SeenCall>> calls;
  for (const SeenCall& seen : rank.p2p) {
    if (seen.call->op == op) calls[seen.call->number].push_back(seen);
  }
  return calls;
}

bool is_pending_pair(const SeenCall& send, const SeenCall& recv) {
  return send.call->state != CallState::completed || recv.call->state != CallState::completed;
}

bool sizes_differ(const SeenCall& send, const SeenCall& recv) {
  return send.call->in_elements >= 0 && recv.call->out_elements >= 0 &&
         send.call->in_elements != recv.call->out_elements;
}

std::string_view sent_dtype(const SeenCall& send) { return send.text(send.call->in_dtype); }
std::string_view received_dtype(const SeenCall& recv) { return recv.text(recv.call->out_dtype); }

bool dtypes_differ(const SeenCall& send, const SeenCall& recv) {
  return !sent_dtype(send).empty() && !received_dtype(recv).empty() &&
         sent_dtype(send) != received_dtype(recv);
}

DiagnosisFinding finding_for(const JointCalls& job, const JointGroup& group, const SeenCall& send,
                             const SeenCall& recv) {
  const bool of_sizes = sizes_differ(send, recv);
  DiagnosisFinding finding = group.finding(
      of_sizes ? DiagnosisKind::size_mismatch : DiagnosisKind::dtype_mismatch, send.call->number);
  finding.op = op_name(Op::send);
  finding.since_ns = std::min(send.call->created_ns, recv.call->created_ns);
  finding.held = {std::min(send.call->rank, recv.call->rank),
                  std::max(send.call->rank, recv.call->rank)};
  const std::string sent = of_sizes ? std::to_string(send.call->in_elements) + " elements"
                                    : std::string(sent_dtype(send));
  const std::string received =
      of_sizes ? std::to_string(recv.call->out_elements) : std::string(received_dtype(recv));
  finding.message = "rank " + std::to_string(send.call->rank) + " sends " + sent + " and rank " +
                    std::to_string(recv.call->rank) + " receives " + received + ", number " +
                    std::to_string(send.call->number) + " of group " + group.label() +
                    since_words(finding.since_ns) + "; it cannot be said who of them is wrong";
  finding.evidence = {evidence_line(send), evidence_line(recv)};
  finding.consequences = job.held_by(finding.held);
  finding.consequences.insert(finding.consequences.end(), finding.held.begin(), finding.held.end());
  std::sort(finding.consequences.begin(), finding.consequences.end());
  finding.confidence = Confidence::undecidable;
  finding.advice = of_sizes ? "send the shape first where it can change, or pad to one size"
                            : "cast to one type before the send, or make the receiving tensor of "
                              "the sender's type";
  return finding;
}

// The first pair of one direction that differs.
void look_at(const JointCalls& job, const JointGroup& group, const RankInGroup& from,
             const RankInGroup& to, std::vector<DiagnosisFinding>& findings) {
  const auto receives = calls_of(to, Op::recv);
  for (const auto& [number, sends] : calls_of(from, Op::send)) {
    const auto found = receives.find(number);
    if (found == receives.end() || found->second.size() != sends.size()) continue;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const SeenCall& recv = found->second[i];
      if (!is_pending_pair(sends[i], recv)) continue;
      if (!sizes_differ(sends[i], recv) && !dtypes_differ(sends[i], recv)) continue;
      findings.push_back(finding_for(job, group, sends[i], recv));
      return;
    }
  }
}

std::vector<DiagnosisFinding> find(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (const JointGroup& group : job.groups) {
      if (!group.has_p2p || group.numbers_mixed) continue;
      for (const auto& [rank, row] : group.ranks) {
        const auto peer = group.ranks.find(only_peer(group, row));
        if (peer != group.ranks.end() && only_peer(group, peer->second) == rank)
          look_at(job, group, row, peer->second, findings);
      }
    }
  }
  return findings;
}

}  // namespace

extern const Verdict kP2pSizes;
constinit const Verdict kP2pSizes{
    .name = "p2p_sizes",
    .summary = "Do sends bring what their receives take?",
    .find = find,
};

}  // namespace commlens
