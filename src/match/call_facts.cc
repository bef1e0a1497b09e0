// Problem: the sequence number, the root and the peers of one call stand on the kernel, on the
// host's record of the call, in the name of a range ("nccl:send 0->1"), or nowhere; a recorder
// writes some of them in each place. Method: for each communication the kernel's own values, then
// those of the record that it is linked to or nested in, if that asks for the same operation; for
// point-to-point then the range's name. Ranks inside a group become global ones by its members, so
// they are known only where those are. When it is wrong: torch lists a group's members in
// ascending order; a group listed otherwise would have its roots misnamed.
#include "match/call_facts.h"

#include <algorithm>
#include <limits>

#include "base/decimal.h"
#include "model/bandwidth.h"

namespace commlens {
namespace {

bool has_root(Op op) {
  return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter;
}

bool is_point_to_point(Op op) { return op == Op::send || op == Op::recv || op == Op::send_recv; }

// The second rank of "send 0->1" or "recv 0<-1", as ranks of the group; -1 for other text.
std::int32_t other_rank_in_name(std::string_view name) {
  const std::size_t arrow = std::min(name.find("->"), name.find("<-"));
  if (arrow == std::string_view::npos) return -1;
  const auto rank = parse_int(name.substr(arrow + 2));
  return rank && *rank >= 0 && *rank < std::numeric_limits<std::int32_t>::max()
             ? static_cast<std::int32_t>(*rank)
             : -1;
}

}  // namespace

CallFacts::CallFacts(RankTimeline& rank, const HostLinks& links, GroupTable& groups)
    : rank_(rank), links_(links), groups_(groups), grouped_(rank) {}

void CallFacts::describe(CommOp& op) {
  const Recording& recording = rank_.recording;
  const bool pair = is_point_to_point(op.op);
  if (pair && take_grouped_calls(op)) return;
  const CallKey own = recording.calls.find(op.source);
  const bool asks_host = pair || !recording.host_calls.empty();
  const std::optional<HostLink> link = asks_host ? link_of(op) : std::nullopt;
  const CallKey of_record =
      link && link->record ? recording.host_calls.find(*link->record) : CallKey{};
  take(own, of_record, op);
  if (!pair) return;
  take_peer(own, of_record, op);
  if (op.peers > 0) return;
  const auto nested = links_.by_nesting(op.source);
  if (nested && nested->op == op.op && nested->range) take_peer_by_name(*nested->range, op);
}

void CallFacts::describe_range(CommOp& op, std::optional<std::uint32_t> record) {
  const CallKey key = record ? rank_.recording.host_calls.find(*record) : CallKey{};
  take(key, {}, op);
  if (!is_point_to_point(op.op)) return;
  take_peer(key, {}, op);
  if (op.peers == 0) take_peer_by_name(static_cast<std::uint32_t>(op.source), op);
}

// What the host says about the communication, if it speaks of the same operation.
std::optional<HostLink> CallFacts::link_of(const CommOp& op) const {
  const GpuActivities& gpu = rank_.recording.gpu;
  auto link = links_.by_external_id(gpu.external_id[op.source]);
  if (!link) link = links_.by_launch(gpu.correlation[op.source]);
  if (!link || !link->record) link = links_.by_nesting(op.source);
  return link && link->op == op.op ? link : std::nullopt;
}

void CallFacts::take(const CallKey& own, const CallKey& of_record, CommOp& op) const {
  op.seq = own.seq >= 0 ? own.seq : of_record.seq;
  op.comms_id = own.comms_id != 0 ? own.comms_id : of_record.comms_id;
  op.zero_split = op.op == Op::all_to_all && (own.zero_split || of_record.zero_split);
  if (has_root(op.op)) op.root = member(op, own.rank >= 0 ? own.rank : of_record.rank);
}

// The global rank of a place in the group; -1 where that is not known.
std::int32_t CallFacts::member(const CommOp& op, std::int32_t place) const {
  if (op.group < 0 || place < 0) return -1;
  const std::vector<int>& ranks = rank_.groups[static_cast<std::size_t>(op.group)].ranks;
  const auto index = static_cast<std::size_t>(place);
  return index < ranks.size() ? ranks[index] : -1;
}

// A kernel that carried out several calls has no number: each of them has its own.
bool CallFacts::take_grouped_calls(CommOp& op) {
  const Recording& recording = rank_.recording;
  const auto launch = rank_.launch_of(op.source);
  if (!launch) return false;
  const auto records = grouped_.of_launch(*launch);
  if (records.size() < 2) return false;
  if (op.group < 0) {
    op.group = groups_.row_of(recording.host_ranges[records.front()].meta);
    if (op.group >= 0) op.group_size = rank_.groups[static_cast<std::size_t>(op.group)].size;
  }
  std::vector<Peer> peers;
  for (const std::uint32_t row : records) {
    const CollectiveMeta& meta = recording.metas[recording.host_ranges[row].meta.index()];
    const Op what =
        op_from_collective_name(recording.strings.get(meta.collective)).value_or(Op::unknown);
    Peer peer{.rank = peer_by_key(recording.host_calls.find(row), what, op),
              .sends = what == Op::send,
              .bytes = {}};
    if (const auto size = element_bytes(recording.strings.get(meta.dtype)))
      peer.bytes = message_bytes(what, meta.in_elements, meta.out_elements, *size);
    peers.push_back(peer);
  }
  // All of them or none: a set that lacks some would be matched wrongly.
  const bool known =
      std::all_of(peers.begin(), peers.end(), [](const Peer& peer) { return peer.rank >= 0; });
  if (known) add_peers(peers, op);
  return true;
}

void CallFacts::take_peer(const CallKey& own, const CallKey& of_record, CommOp& op) {
  if (op.op == Op::send_recv) return;  // a set of calls, or a direction that nothing tells
  std::int32_t peer = peer_by_key(own, op.op, op);
  if (peer < 0) peer = peer_by_key(of_record, op.op, op);
  if (peer >= 0) add_peers({{.rank = peer, .sends = op.op == Op::send, .bytes = op.bytes}}, op);
}

void CallFacts::take_peer_by_name(std::uint32_t range, CommOp& op) {
  if (op.op == Op::send_recv) return;
  const StringId name = rank_.recording.host_ranges[range].name;
  const std::int32_t peer = member(op, other_rank_in_name(rank_.recording.strings.get(name)));
  if (peer >= 0) add_peers({{.rank = peer, .sends = op.op == Op::send, .bytes = op.bytes}}, op);
}

std::int32_t CallFacts::peer_by_key(const CallKey& call, Op what, const CommOp& op) const {
  const std::int32_t named = what == Op::send ? call.destination : call.source;
  return named >= 0 ? named : member(op, call.rank);
}

void CallFacts::add_peers(const std::vector<Peer>& peers, CommOp& op) {
  op.first_peer = static_cast<std::uint32_t>(rank_.peers.size());
  op.peers = static_cast<std::uint32_t>(peers.size());
  rank_.peers.insert(rank_.peers.end(), peers.begin(), peers.end());
}

}  // namespace commlens
