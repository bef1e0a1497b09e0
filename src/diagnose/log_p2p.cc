// Sends that bring other than their receives take (NCCL_DEBUG_SUBSYS=COLL or CALL). NCCL does not
// compare; the pair hangs, or takes half of the next message.
//
//   rank 0   Send: ... count 1024 datatype 7 ... root 1 comm 0x1       `root` is the peer
//   rank 1   Recv: ... count 512 datatype 7 ... root 0 comm 0x2
//
// Between two ranks of one communicator the k-th send meets the k-th receive, however they are
// grouped. Who of the two is wrong no line says, so that nobody is named.
//
// When it is wrong: a lost line shifts all behind it. So only where the log shows both from their
// initialisation on, and nothing that says that lines are lost: opCounts of a rank without a gap
// count its calls from 0 on. Traced calls have none: there, only a file of one process's own will
// do.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/log_misconfiguration.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

// One direction between two ranks of a communicator.
struct P2pStream {
  struct End {
    const LogMember* member = nullptr;
    std::vector<const LogCall*> calls;
  };
  End sends;
  End receives;
};
using StreamKey = std::tuple<const LogGroup*, std::int64_t, std::int64_t>;  // from, to

std::map<StreamKey, P2pStream> streams_of(const LogView& view) {
  std::map<std::pair<const Witness*, std::uint32_t>, std::pair<const LogGroup*, const LogMember*>>
      members;
  for (const LogGroup& group : view.groups) {
    if (!group.joined_by_id) continue;
    for (const LogMember& member : group.members) {
      if (member.rank_said)
        members.try_emplace({member.witness, member.comm.value}, &group, &member);
    }
  }
  std::map<StreamKey, P2pStream> streams;
  for (const Witness* witness : view.logs) {
    for (const LogCall& call : witness->log->calls) {
      if (call.op != Op::send && call.op != Op::recv) continue;
      const auto found = members.find({witness, call.comm.value});
      if (found == members.end()) continue;
      const auto& [group, member] = found->second;
      const bool sends = call.op == Op::send;
      P2pStream& stream =
          streams[{group, sends ? member->rank : call.root, sends ? call.root : member->rank}];
      P2pStream::End& end = sends ? stream.sends : stream.receives;
      end.member = member;
      end.calls.push_back(&call);
    }
  }
  return streams;
}

bool holds_all(const P2pStream::End& end) {
  if (end.member == nullptr) return false;
  const LogComm& comm = end.member->facts();
  const LogFacts& log = *end.member->witness->log;
  return comm.first_line > 0 && comm.first_line < end.calls.front()->line && log.cut == 0 &&
         log.lost == 0 && !log.ends_cut;
}

// Whether the op counts of a rank's calls in its communicator are all there, from 0 on.
class OpCounts {
 public:
  bool are_all_there(const LogMember& member) {
    const auto [found, is_new] = known_.try_emplace(&member);
    if (!is_new) return found->second;
    std::set<std::int64_t> counts;
    for (const LogCall& call : member.witness->log->calls) {
      if (call.comm != member.comm) continue;
      if (call.traced) return found->second = member.witness->log->processes.size() == 1;
      counts.insert(call.op_count);
    }
    const auto size = static_cast<std::int64_t>(counts.size());
    return found->second = size > 0 && *counts.begin() == 0 && *counts.rbegin() == size - 1;
  }

 private:
  std::map<const LogMember*, bool> known_;
};

// Types of the same number and size of elements are only bytes to both.
std::optional<DiagnosisKind> pair_difference(const LogCall& send, const LogCall& receive) {
  const auto bytes = [](const LogCall& call) {
    return call.count * log_datatype_bytes(call.datatype);
  };
  const bool known =
      log_datatype_bytes(send.datatype) > 0 && log_datatype_bytes(receive.datatype) > 0;
  if (known && bytes(send) == bytes(receive)) return std::nullopt;
  if (send.datatype != receive.datatype)
    return send.count == receive.count ? DiagnosisKind::dtype_mismatch
                                       : DiagnosisKind::size_mismatch;
  return send.count == receive.count ? std::nullopt : std::optional(DiagnosisKind::size_mismatch);
}

std::string amount_text(const LogCall& call) {
  const std::string_view type = log_datatype_name(call.datatype);
  return std::to_string(call.count) + " elements of " +
         (type.empty() ? "datatype " + std::to_string(call.datatype) : std::string(type));
}

std::string p2p_text(const LogCall& call, std::int64_t rank) {
  return "rank " + std::to_string(rank) + (call.op == Op::send ? " Send to " : " Recv from ") +
         std::to_string(call.root) + ": " + amount_text(call);
}

DiagnosisFinding pair_finding(DiagnosisKind kind, const StreamKey& key, const P2pStream& stream,
                              std::size_t number) {
  const auto& [group, from, to] = key;
  const LogCall& send = *stream.sends.calls[number];
  const LogCall& receive = *stream.receives.calls[number];
  DiagnosisFinding finding;
  finding.kind = kind;
  finding.group = group->name;
  finding.seq = static_cast<std::int64_t>(number);
  finding.op = op_name(Op::send);
  finding.held = {std::min(from, to), std::max(from, to)};
  finding.consequences = finding.held;
  finding.confidence = Confidence::undecidable;
  finding.message = "send " + std::to_string(number) + " of rank " + std::to_string(from) +
                    " to rank " + std::to_string(to) + " in " + group->name + " brings " +
                    amount_text(send) + ", and its receive takes " + amount_text(receive) +
                    "; it cannot be said who of them is wrong";
  finding.advice = "send the shape first where it can change, or pad to one size";
  add_log_evidence(finding, *stream.sends.member->witness, send.line, p2p_text(send, from));
  add_log_evidence(finding, *stream.receives.member->witness, receive.line, p2p_text(receive, to));
  return finding;
}

// The first pair of each communicator that differs.
std::vector<DiagnosisFinding> find_pairs(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  std::map<const LogGroup*, DiagnosisFinding> first;
  std::map<const LogGroup*, std::size_t> number_of;
  OpCounts op_counts;
  for (const auto& [key, stream] : streams_of(view)) {
    if (!holds_all(stream.sends) || !holds_all(stream.receives)) continue;
    const std::size_t pairs = std::min(stream.sends.calls.size(), stream.receives.calls.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      const auto kind = pair_difference(*stream.sends.calls[i], *stream.receives.calls[i]);
      if (!kind) continue;
      if (!op_counts.are_all_there(*stream.sends.member) ||
          !op_counts.are_all_there(*stream.receives.member))
        break;
      const LogGroup* group = std::get<0>(key);
      const auto known = number_of.find(group);
      if (known == number_of.end() || i < known->second) {
        number_of[group] = i;
        first.insert_or_assign(group, pair_finding(*kind, key, stream, i));
      }
      break;
    }
  }
  std::vector<DiagnosisFinding> findings;
  for (const LogGroup& group : view.groups) {
    if (const auto found = first.find(&group); found != first.end())
      findings.push_back(std::move(found->second));
  }
  return findings;
}

}  // namespace

extern constinit const Verdict kLogP2p{
    .name = "log_p2p",
    .summary = "sends that bring other than their receives take",
    .find = find_pairs,
};

}  // namespace commlens
