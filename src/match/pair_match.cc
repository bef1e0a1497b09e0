// Problem: a pipeline's ranks send to their neighbours, and grouped calls send and receive in one
// kernel. A group's order says nothing: each pair of ranks has an order of its own.
//
//   rank 0    send>1      send>1           pair 0->1   send  send
//   rank 1    recv<0  sendrecv(<0 >2)                  recv  sendrecv
//   rank 2            recv<1               pair 1->2   sendrecv
//                                                      recv
//
// Method: for each source and destination the sends of one and the receives of the other are two
// sequences, matched as those of a group of two.
// When it is wrong: ends of small sends are earlier than those of their receives, so that alignment
// by time has a larger scatter than that of collectives.
#include "match/pair_match.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "match/place_events.h"

namespace commlens {
namespace {

// One direction of one kernel.
struct Half {
  std::int64_t source = 0;
  std::int64_t destination = 0;
  std::uint32_t part = 0;  // index of the kernel
  std::int64_t bytes = kUnknown;
  bool sends = false;
};

class PairMatcher {
 public:
  PairMatcher(const Job& job, const std::vector<Part>& parts, EventReader& reader,
              Matching& matching, OperationWriter& writer)
      : job_(job), parts_(parts), reader_(reader), matching_(matching), writer_(writer) {}

  void run() {
    for (const RankTimeline& rank : job_.ranks) {
      if (rank.run == 0) traced_.push_back(rank.rank);
    }
    std::sort(traced_.begin(), traced_.end());
    paired_.assign(parts_.size(), 0);
    collect();
    for (std::size_t first = 0; first < halves_.size();) {
      std::size_t last = first;
      while (last < halves_.size() && halves_[last].source == halves_[first].source &&
             halves_[last].destination == halves_[first].destination)
        ++last;
      match_direction(first, last);
      first = last;
    }
    count_unmatched();
  }

 private:
  const CommOp& comm(std::uint32_t part) const {
    const Part& at = parts_[part];
    return job_.ranks[at.rank].devices[at.device].comm[at.op];
  }

  void collect() {
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      const RankTimeline& rank = job_.ranks[parts_[p].rank];
      const CommOp& op = comm(p);
      for (std::uint32_t i = 0; i < op.peers; ++i) {
        const Peer& peer = rank.peers[op.first_peer + i];
        if (peer.rank == rank.rank) continue;  // to itself: no one waits
        const std::int64_t source = peer.sends ? rank.rank : peer.rank;
        const std::int64_t destination = peer.sends ? peer.rank : rank.rank;
        halves_.push_back({source, destination, p, peer.bytes.value_or(kUnknown), peer.sends});
      }
    }
    // Sends before receives; within each in the order of the kernels.
    std::stable_sort(halves_.begin(), halves_.end(), [](const Half& a, const Half& b) {
      return std::tuple(a.source, a.destination, !a.sends) <
             std::tuple(b.source, b.destination, !b.sends);
    });
  }

  CommEvent event_of(const Half& half) {
    const Part& part = parts_[half.part];
    CommEvent event = reader_.event(part.rank, part.device, part.op);
    event.op = Op::send_recv;
    event.any_op = false;
    event.dtype = 0;
    event.bytes = half.bytes;
    return event;
  }

  // Halves [first, last) are those of one source and destination.
  void match_direction(std::size_t first, std::size_t last) {
    std::vector<Member> members;
    std::vector<std::size_t> starts;
    for (std::size_t i = first; i < last; ++i) {
      if (i == first || halves_[i].sends != halves_[i - 1].sends) {
        const Part& part = parts_[halves_[i].part];
        members.push_back(reader_.member(part.rank, part.device));
        starts.push_back(i);
      }
      members.back().events.push_back(event_of(halves_[i]));
    }
    const std::int64_t source = halves_[first].source;
    const std::int64_t destination = halves_[first].destination;
    const std::string label = std::to_string(source) + "->" + std::to_string(destination);
    if (members.size() < 2) {
      const std::int64_t other = halves_[first].sends ? destination : source;
      leave(label, other, first, last);
      return;
    }
    const auto group = static_cast<std::int32_t>(matching_.groups.size());
    matching_.groups.push_back(
        {.label = label, .description = {}, .ranks = {source, destination}, .pair = true});
    write(group, label, members, starts, place_events(members));
  }

  void write(std::int32_t group, const std::string& label, const std::vector<Member>& members,
             const std::vector<std::size_t>& starts, const Slots& slots) {
    constexpr std::uint32_t kNone = 0xFFFFFFFF;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> events(slots.slots.size(), {kNone, kNone});
    for (std::uint32_t e = 0; e < slots.of[0].size(); ++e)
      events[static_cast<std::size_t>(slots.of[0][e])].first = e;
    for (std::uint32_t e = 0; e < slots.of[1].size(); ++e)
      events[static_cast<std::size_t>(slots.of[1][e])].second = e;
    std::vector<std::uint32_t> order(slots.slots.size());
    for (std::uint32_t s = 0; s < order.size(); ++s) order[s] = s;
    std::stable_sort(order.begin(), order.end(), [&slots](std::uint32_t a, std::uint32_t b) {
      return slots.slots[a].order < slots.slots[b].order;
    });
    for (const std::uint32_t s : order) {
      const auto [send, receive] = events[s];
      if (send == kNone || receive == kNone) {
        const std::size_t at = send != kNone ? starts[0] + send : starts[1] + receive;
        if (send != kNone || receive != kNone)
          leave(label, members[send != kNone ? 1 : 0].rank, at, at + 1);
        continue;
      }
      const Half& from = halves_[starts[0] + send];
      const Half& to = halves_[starts[1] + receive];
      const bool sure =
          slots.slots[s].sure && slots.doubtful[0][send] == 0 && slots.doubtful[1][receive] == 0;
      paired_[from.part] = paired_[to.part] = 1;
      writer_.write_pair(group, parts_[from.part], parts_[to.part], members[0].events[send],
                         members[1].events[receive], slots.slots[s].by, sure);
    }
  }

  // Halves without a counterpart on `other`.
  void leave(const std::string& label, std::int64_t other, std::size_t first, std::size_t last) {
    const bool traced = std::binary_search(traced_.begin(), traced_.end(), other);
    const std::string rank = "rank " + std::to_string(other);
    writer_.list().add({.kind = traced ? "missing_member" : "missing_rank",
                        .group = label,
                        .seq = comm(halves_[first].part).seq,
                        .ranks = {other},
                        .count = static_cast<std::int64_t>(last - first),
                        .reason = traced ? "the trace of " + rank + " does not hold the other half"
                                         : rank + " has no trace here"},
                       true);
  }

  void count_unmatched() {
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      if (paired_[p] != 0) continue;
      const CommOp& op = comm(p);
      const std::int64_t rank = job_.ranks[parts_[p].rank].rank;
      if (op.peers > 0) {
        ++matching_.unmatched;
        continue;
      }
      const auto& groups = job_.ranks[parts_[p].rank].groups;
      const std::string label = op.group < 0
                                    ? std::string()
                                    : group_label(groups[static_cast<std::size_t>(op.group)], rank);
      writer_.leave(label, rank, op.seq, 1, "the peers of point-to-point operations are not known");
    }
  }

  const Job& job_;
  const std::vector<Part>& parts_;
  EventReader& reader_;
  Matching& matching_;
  OperationWriter& writer_;
  std::vector<std::int64_t> traced_;
  std::vector<Half> halves_;
  std::vector<char> paired_;  // by part: some half of it found its counterpart
};

}  // namespace

void match_pairs(const Job& job, const std::vector<Part>& parts, EventReader& reader,
                 Matching& matching, OperationWriter& writer) {
  PairMatcher(job, parts, reader, matching, writer).run();
}

}  // namespace commlens
