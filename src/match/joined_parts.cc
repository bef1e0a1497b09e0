// Problem: a witness speaks of a rank's calls in one communicator. What of the rank's timeline is
// to be laid beside them, as a whole?
//
// Method: the rank's collectives of each group, by start; where the timeline names no group, those
// of each stream. Beside them its sends, receives and exchanges of each group, each as the calls
// that made it. Exchanges are in both: some witnesses have a line for them, some only sends and
// receives.
#include "match/joined_parts.h"

#include <algorithm>

#include "match/comm_numbers.h"
#include "match/comm_sequence.h"

namespace commlens {
namespace {

// What was called for an operation between pairs; nothing where that is not known. Peers of a call
// are ranks in the communicator.
std::vector<PairCall> pair_calls(const RankTimeline& rank, const GroupIdentity& group,
                                 const CommOp& op) {
  std::vector<PairCall> calls;
  if (op.op == Op::all_to_all && op.peers == 0) {
    if (!op.zero_split && !op.name_may_lie)
      calls.push_back({.op = op.op, .peer = kUnknown, .bytes = op.bytes.value_or(kUnknown)});
    return calls;
  }
  for (std::uint32_t i = 0; i < op.peers; ++i) {
    const Peer& peer = rank.peers[op.first_peer + i];
    const auto place = std::lower_bound(group.ranks.begin(), group.ranks.end(), peer.rank);
    if (place == group.ranks.end() || *place != peer.rank) return {};
    calls.push_back({.op = peer.sends ? Op::send : Op::recv,
                     .peer = place - group.ranks.begin(),
                     .bytes = peer.bytes.value_or(kUnknown)});
  }
  return calls;
}

class JoinedPartFinder {
 public:
  explicit JoinedPartFinder(const Job& job) : job_(job) { find_inferred(); }

  JoinedParts run() {
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) add_rank(row);
    return std::move(found_);
  }

 private:
  // Of one rank.
  struct Places {
    std::map<std::int32_t, std::vector<Part>> groups;
    std::map<std::pair<std::uint32_t, StreamId>, std::vector<Part>> streams;  // without a group
    std::map<std::int32_t, std::vector<Part>> pairs;
  };

  // Which streams' operations end together.
  void find_inferred() {
    for (const MatchedOp& op : job_.matching.ops) {
      if (op.group < 0 || !job_.matching.groups[static_cast<std::size_t>(op.group)].inferred)
        continue;
      for (std::uint32_t i = 0; i < op.count; ++i)
        inferred_.emplace(job_.matching.parts[op.first + i], op.group);
    }
  }

  void add_rank(std::size_t row) {
    Places places = places_of(row);
    for (auto& [group, own] : places.groups) add_group(row, group, std::move(own));
    for (auto& [stream, own] : places.streams) add_stream(row, std::move(own));
    for (auto& [group, own] : places.pairs) add_pairs(row, group, std::move(own));
  }

  Places places_of(std::size_t row) const {
    const RankTimeline& rank = job_.ranks[row];
    Places places;
    for (std::uint32_t d = 0; d < rank.devices.size(); ++d) {
      for (std::uint32_t i = 0; i < rank.devices[d].comm.size(); ++i) {
        const CommOp& op = rank.devices[d].comm[i];
        const Part place{static_cast<std::uint32_t>(row), d, i};
        if (op.group >= 0 && (is_joined_pair(op) || op.op == Op::all_to_all))
          places.pairs[op.group].push_back(place);
        if (!is_joined_collective(op)) continue;
        (op.group >= 0 ? places.groups[op.group] : places.streams[{d, op.stream}]).push_back(place);
      }
    }
    for (auto* const groups : {&places.groups, &places.pairs}) {
      for (auto& [group, own] : *groups) {
        std::stable_sort(own.begin(), own.end(), [this](const Part& a, const Part& b) {
          return comm_of(job_, a).time.start < comm_of(job_, b).time.start;
        });
      }
    }
    return places;
  }

  std::string label_of(std::size_t row, std::int32_t group) const {
    const RankTimeline& rank = job_.ranks[row];
    return group_label(rank.groups[static_cast<std::size_t>(group)], rank.rank);
  }

  void add_group(std::size_t row, std::int32_t group, std::vector<Part> places) {
    found_.collectives_of[{row, group}] = found_.collectives.size();
    found_.collectives.push_back(
        {.row = row, .group = group, .label = label_of(row, group), .places = std::move(places)});
  }

  void add_stream(std::size_t row, std::vector<Part> places) {
    std::int32_t inferred = -1;
    for (const Part& place : places) {
      const auto known = inferred_.find(place);
      if (known == inferred_.end()) continue;
      inferred = known->second;
      break;
    }
    found_.collectives.push_back(
        {.row = row, .inferred = inferred, .label = {}, .places = std::move(places)});
  }

  void add_pairs(std::size_t row, std::int32_t group, std::vector<Part> places) {
    const RankTimeline& rank = job_.ranks[row];
    PairPart part{.row = row,
                  .group = group,
                  .label = label_of(row, group),
                  .places = std::move(places),
                  .ops = {}};
    for (const Part& place : part.places) {
      const CommOp& op = comm_of(job_, place);
      PairOp pair{.op = op.op,
                  .start = reader_.event(row, place.device, place.op).start,
                  .calls = pair_calls(rank, rank.groups[static_cast<std::size_t>(group)], op)};
      if (op.peers == 1) pair.seq = op.seq;
      part.ops.push_back(std::move(pair));
    }
    found_.pairs_of[{row, group}] = found_.pairs.size();
    found_.pairs.push_back(std::move(part));
  }

  const Job& job_;
  EventReader reader_{job_};
  std::map<Part, std::int32_t> inferred_;  // row of Matching::groups
  JoinedParts found_;
};

}  // namespace

bool is_joined_collective(const CommOp& op) {
  return op.peers == 0 && op.op != Op::send && op.op != Op::recv && op.op != Op::send_recv &&
         op.op != Op::put_get && op.op != Op::copy;
}

bool is_joined_pair(const CommOp& op) {
  return op.peers > 0 || op.op == Op::send || op.op == Op::recv || op.op == Op::send_recv;
}

JoinedParts find_joined_parts(const Job& job) { return JoinedPartFinder(job).run(); }

}  // namespace commlens
