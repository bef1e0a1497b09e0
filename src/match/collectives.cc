// The recipe of matching: which recordings take part, which groups of theirs are one, and then each
// group by itself, by the strongest means that it supports.
//
//   identifiers of operations  >  the group's counter, once checked  >  steps  >  alignment
//
// Point-to-point operations are matched by source and destination (pair_match), communication
// without any group by what ends together (inferred_groups).
#include "match/collectives.h"

#include <algorithm>

#include "match/group_identity.h"
#include "match/inferred_groups.h"
#include "match/operation_writer.h"
#include "match/pair_match.h"
#include "match/place_events.h"

namespace commlens {
namespace {

// What becomes of each communication.
enum class Route : std::uint8_t { group, pair, no_group, none };

bool point_to_point(const CommOp& op) {
  return op.peers > 0 || op.op == Op::send || op.op == Op::recv || op.op == Op::send_recv;
}

Route route_of(const CommOp& op) {
  if (op.peers > 0) return Route::pair;
  // What surely goes from one rank to another is of no group that could be inferred.
  const bool one_way = (op.op == Op::send || op.op == Op::recv) && !op.name_may_lie;
  if (op.group < 0) return one_way ? Route::pair : Route::no_group;
  if (op.op == Op::put_get || op.op == Op::copy) return Route::none;
  return point_to_point(op) ? Route::pair : Route::group;
}

class Recipe {
 public:
  explicit Recipe(const Job& job) : job_(job), reader_(job), writer_(job, matching_) {}

  Matching run() {
    choose();
    GroupIdentities identities = join_groups(job_, rows_);
    matching_.groups = std::move(identities.groups);
    sort_out(identities.places);
    for (std::size_t g = 0; g < members_.size(); ++g) match_group(g);
    match_pairs(job_, pairs_, reader_, matching_, writer_);
    match_inferred(job_, groupless_, reader_, matching_, writer_);
    writer_.finish();
    matching_.known = !matching_.ops.empty();
    return std::move(matching_);
  }

 private:
  // Of each rank its first recording, and of that the GPU that communicates most.
  void choose() {
    device_of_.resize(job_.ranks.size());
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
      const RankTimeline& rank = job_.ranks[row];
      const auto& devices = rank.devices;
      const auto most = std::max_element(devices.begin(), devices.end(),
                                         [](const DeviceTimeline& a, const DeviceTimeline& b) {
                                           return a.comm.size() < b.comm.size();
                                         });
      if (most == devices.end()) continue;
      if (rank.run == 0) rows_.push_back(row);
      device_of_[row] = static_cast<std::size_t>(most - devices.begin());
    }
    std::sort(rows_.begin(), rows_.end(), [this](std::size_t a, std::size_t b) {
      return job_.ranks[a].rank < job_.ranks[b].rank;
    });
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
      const RankTimeline& rank = job_.ranks[row];
      for (std::size_t d = 0; d < rank.devices.size(); ++d) {
        const auto count = static_cast<std::int64_t>(rank.devices[d].comm.size());
        if (count == 0 || (rank.run == 0 && d == device_of_[row])) continue;
        writer_.leave(
            {}, rank.rank, kUnknown, count,
            rank.run != 0 ? "another recording of this rank" : "another GPU of the same process");
      }
    }
  }

  void sort_out(const std::vector<std::vector<GroupPlace>>& places) {
    members_.resize(matching_.groups.size());
    for (const std::size_t row : rows_) {
      const RankTimeline& rank = job_.ranks[row];
      const std::size_t d = device_of_[row];
      const std::vector<CommOp>& comm = rank.devices[d].comm;
      for (std::uint32_t i = 0; i < comm.size(); ++i) {
        const Part part{static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(d), i};
        switch (route_of(comm[i])) {
          case Route::pair: pairs_.push_back(part); break;
          case Route::no_group: groupless_.push_back(part); break;
          case Route::none:
            writer_.leave(label_of(row, comm[i]), rank.rank, comm[i].seq, 1,
                          "a copy has no counterpart on another rank");
            break;
          case Route::group: add_to_group(part, places[row]); break;
        }
      }
    }
  }

  void add_to_group(const Part& part, const std::vector<GroupPlace>& places) {
    const CommOp& op = job_.ranks[part.rank].devices[part.device].comm[part.op];
    const GroupPlace& place = places[static_cast<std::size_t>(op.group)];
    if (place.group < 0) {
      writer_.leave(label_of(part.rank, op), job_.ranks[part.rank].rank, op.seq, 1, place.reason);
      return;
    }
    auto& parts = members_[static_cast<std::size_t>(place.group)];
    if (parts.empty() || parts.back().front().rank != part.rank) parts.emplace_back();
    parts.back().push_back(part);
  }

  std::string label_of(std::size_t row, const CommOp& op) const {
    if (op.group < 0) return {};
    return group_label(job_.ranks[row].groups[static_cast<std::size_t>(op.group)],
                       job_.ranks[row].rank);
  }

  void match_group(std::size_t group) {
    std::vector<Member> members;
    for (const std::vector<Part>& parts : members_[group]) {
      members.push_back(reader_.member(parts.front().rank, parts.front().device));
      for (const Part& part : parts)
        members.back().events.push_back(reader_.event(part.rank, part.device, part.op));
    }
    members_[group] = {};
    if (members.empty()) return;
    writer_.write_group(static_cast<std::int32_t>(group), members, place_events(members), true);
  }

  const Job& job_;
  Matching matching_;
  EventReader reader_;
  OperationWriter writer_;
  std::vector<std::size_t> rows_;                        // that take part, by rank
  std::vector<std::size_t> device_of_;                   // by row
  std::vector<std::vector<std::vector<Part>>> members_;  // by group, by member
  std::vector<Part> pairs_;                              // point-to-point, by rank
  std::vector<Part> groupless_;                          // without group, by rank
};

}  // namespace

Matching match_collectives(const Job& job) { return Recipe(job).run(); }

}  // namespace commlens
