// Problem: what to do about an exposed all-reduce depends on whether it sums gradients or halves of
// a layer. Method: the description says it ("mesh_tp", "DATA_PARALLEL_GROUP"); else what the group
// does, where that leaves no choice:
//
//   only sends and receives                                    pipeline
//   the only group that moves data; sums, or gathers and       data
//   scatters sums, and nothing else of size
//   all-to-all, beside another group that moves data           expert
//
// When it is wrong: sequences that are split by all-to-all (Ulysses) look like experts where
// nothing describes the group. Everything else stays unknown: a group of neighbours that sums may
// be tensor or data parallel.
#include "match/group_roles.h"

#include <map>
#include <string>

namespace commlens {
namespace {

// Communications of a group, over all ranks, by what they do.
struct Deeds {
  std::int64_t pairs = 0;
  std::int64_t exchanges = 0;
  std::int64_t sums = 0;    // all-reduce, reduce-scatter
  std::int64_t shares = 0;  // all-gather
  std::int64_t others = 0;  // that are no part of any pattern
  bool moves_data() const { return pairs + exchanges + sums + shares + others > 0; }
};

void count(Op op, Deeds& deeds) {
  switch (op) {
    case Op::send:
    case Op::recv:
    case Op::send_recv: ++deeds.pairs; return;
    case Op::all_to_all:
    case Op::moe_dispatch:
    case Op::moe_combine: ++deeds.exchanges; return;
    case Op::all_reduce:
    case Op::reduce_scatter: ++deeds.sums; return;
    case Op::all_gather: ++deeds.shares; return;
    case Op::broadcast:
    case Op::barrier: return;  // of any group, now and then
    default: ++deeds.others; return;
  }
}

GroupRole role_of(const Deeds& deeds, bool alone) {
  if (deeds.others > 0) return GroupRole::unknown;
  if (deeds.pairs > 0)
    return deeds.exchanges + deeds.sums + deeds.shares == 0 ? GroupRole::pipeline
                                                            : GroupRole::unknown;
  if (deeds.exchanges > 0)
    return !alone && deeds.sums + deeds.shares == 0 ? GroupRole::expert : GroupRole::unknown;
  return alone && deeds.sums > 0 ? GroupRole::data : GroupRole::unknown;
}

}  // namespace

void assign_group_roles(Job& job) {
  std::map<std::string, Deeds> deeds;  // by label
  const auto label_of = [](const RankTimeline& rank, const GroupIdentity& group) {
    return group_label(group, rank.rank);
  };
  for (const RankTimeline& rank : job.ranks) {
    std::vector<Deeds> of_rank(rank.groups.size());
    for (const DeviceTimeline& device : rank.devices) {
      for (const CommOp& op : device.comm) {
        if (op.group >= 0) count(op.op, of_rank[static_cast<std::size_t>(op.group)]);
      }
    }
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      Deeds& sum = deeds[label_of(rank, rank.groups[i])];
      sum.pairs += of_rank[i].pairs;
      sum.exchanges += of_rank[i].exchanges;
      sum.sums += of_rank[i].sums;
      sum.shares += of_rank[i].shares;
      sum.others += of_rank[i].others;
    }
  }
  for (RankTimeline& rank : job.ranks) {
    std::size_t at_work = 0;
    for (const GroupIdentity& group : rank.groups)
      at_work += deeds[label_of(rank, group)].moves_data() ? 1 : 0;
    for (GroupIdentity& group : rank.groups) {
      const auto described = group_role_from_description(group.description);
      group.role = described ? *described : role_of(deeds[label_of(rank, group)], at_work == 1);
    }
  }
}

}  // namespace commlens
