// What tells a communication from the group's other operations: its number, its root, its peers.
#pragma once

#include "match/group_table.h"
#include "match/grouped_calls.h"
#include "match/host_links.h"
#include "model/job.h"

namespace commlens {

class CallFacts {
 public:
  CallFacts(RankTimeline& rank, const HostLinks& links, GroupTable& groups);

  // Fills seq, comms_id, root, zero_split and peers of a communication whose `source` is a row of
  // the GPU activities. Its operation and group must be known already.
  void describe(CommOp& op);
  // The same for a range on the host; `record` is its call's record.
  void describe_range(CommOp& op, std::optional<std::uint32_t> record);

 private:
  std::optional<HostLink> link_of(const CommOp& op) const;
  void take(const CallKey& own, const CallKey& of_record, CommOp& op) const;
  std::int32_t member(const CommOp& op, std::int32_t place) const;
  bool take_grouped_calls(CommOp& op);
  void take_peer(const CallKey& own, const CallKey& of_record, CommOp& op);
  void take_peer_by_name(std::uint32_t range, CommOp& op);
  std::int32_t peer_by_key(const CallKey& call, Op what, const CommOp& op) const;
  void add_peers(const std::vector<Peer>& peers, CommOp& op);

  RankTimeline& rank_;
  const HostLinks& links_;
  GroupTable& groups_;
  GroupedCalls grouped_;
};

}  // namespace commlens
