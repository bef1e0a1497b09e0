// Problem: what to do about an exposed all-reduce depends on whether it sums gradients or halves of
// a layer. Method: the description says it ("mesh_tp", "DATA_PARALLEL_GROUP"); else what the group
// does, where that leaves no choice:
//
//   only sends and receives                                    pipeline
//   the only group that moves data; sums, or gathers and       data, unless it sums again and again
//   scatters sums, and nothing else of size                    what is of one size: parts of layers
//                                                              or buckets of gradients
//   all-to-all, beside another group that moves data           expert
//   all-reduces of one size or two among neighbours, several   tensor, and the other group, which
//   in each step before the other group first sums             takes one of each of them, data
//
//   step   [tp][tp][tp][tp][tp][tp][dp][tp][tp][dp]     layers first, then gradients
//
// When it is wrong: sequences that are split by all-to-all (Ulysses) look like experts where
// nothing describes the group. Everything else stays unknown.
#include "match/group_roles.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace commlens {
namespace {

// Activations are of one size, or of two where the last micro-batch is smaller.
constexpr std::size_t kFewSizes = 2;
// All-reduces of a step: fewer may be anything.
constexpr std::int64_t kManyOfAStep = 8;
constexpr std::int64_t kBeforeGradients = 4;

// Communications of a group, over all ranks, by what they do.
struct Deeds {
  std::int64_t pairs = 0;
  std::int64_t exchanges = 0;
  std::int64_t sums = 0;              // all-reduce, reduce-scatter
  std::int64_t reduces = 0;           // all-reduce alone
  std::int64_t shares = 0;            // all-gather
  std::int64_t others = 0;            // that are no part of any pattern
  std::set<std::int64_t> sizes = {};  // of all-reduces; no more than kFewSizes and one
  std::int64_t steps = 1;             // that its members were seen for
  bool moves_data() const { return pairs + exchanges + sums + shares + others > 0; }
  bool only_reduces() const {
    return reduces > 0 && pairs + exchanges + shares + others == 0 && reduces == sums;
  }
  bool of_few_sizes() const { return sizes.size() <= kFewSizes; }
};

void count(const CommOp& op, Deeds& deeds) {
  if (op.op == Op::all_reduce) {
    ++deeds.reduces;
    if (op.bytes && deeds.sizes.size() <= kFewSizes) deeds.sizes.insert(*op.bytes);
  }
  switch (op.op) {
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
  const bool may_be_layers =
      deeds.only_reduces() && deeds.of_few_sizes() && deeds.reduces >= kManyOfAStep * deeds.steps;
  return alone && deeds.sums > 0 && !may_be_layers ? GroupRole::data : GroupRole::unknown;
}

// Whether the ranks of a group lie so far apart from each other.
bool has_stride(const GroupIdentity& group, std::int64_t stride) {
  for (std::size_t i = 1; i < group.ranks.size(); ++i) {
    if (group.ranks[i] - group.ranks[i - 1] != stride) return false;
  }
  return group.ranks.size() > 1;
}

// Two groups of one rank, by row.
struct InnerOuter {
  std::size_t inner = 0;
  std::size_t outer = 0;
};

class RoleFinder {
 public:
  explicit RoleFinder(Job& job) : job_(job) {}

  void run() {
    for (const RankTimeline& rank : job_.ranks) look(rank);
    for (RankTimeline& rank : job_.ranks) assign(rank);
  }

 private:
  static std::string label_of(const RankTimeline& rank, std::size_t group) {
    return group_label(rank.groups[group], rank.rank);
  }

  const Deeds& deeds(const RankTimeline& rank, std::size_t group) const {
    return deeds_.at(label_of(rank, group));
  }

  void look(const RankTimeline& rank) {
    std::vector<Deeds> own(rank.groups.size());
    std::set<std::int64_t> steps;
    for (const DeviceTimeline& device : rank.devices) {
      for (const CommOp& op : device.comm) {
        steps.insert(op.step);
        if (op.group >= 0) count(op, own[static_cast<std::size_t>(op.group)]);
      }
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      Deeds& sum = deeds_.try_emplace(label_of(rank, i), Deeds{.steps = 0}).first->second;
      sum.pairs += own[i].pairs;
      sum.exchanges += own[i].exchanges;
      sum.sums += own[i].sums;
      sum.reduces += own[i].reduces;
      sum.shares += own[i].shares;
      sum.others += own[i].others;
      sum.steps += static_cast<std::int64_t>(steps.size());
      sum.sizes.insert(own[i].sizes.begin(), own[i].sizes.end());
    }
  }

  // Groups that sum, beside any number that only send or exchange: an inner one of neighbours and
  // an outer one that takes one of each of them.
  std::optional<InnerOuter> nested(const RankTimeline& rank) const {
    std::vector<std::size_t> sum;
    for (std::size_t i = 0; i < rank.groups.size(); ++i) {
      const Deeds& of = deeds(rank, i);
      if (of.others > 0) return std::nullopt;
      if (of.sums + of.shares > 0) sum.push_back(i);
    }
    if (sum.size() != 2) return std::nullopt;
    for (const auto& [inner, outer] : {std::pair(sum[0], sum[1]), std::pair(sum[1], sum[0])}) {
      const auto size = static_cast<std::int64_t>(rank.groups[inner].ranks.size());
      if (has_stride(rank.groups[inner], 1) && has_stride(rank.groups[outer], size) && size > 1)
        return InnerOuter{inner, outer};
    }
    return std::nullopt;
  }

  // In nearly each step that sums gradients, several of the layers' have begun before.
  static bool layers_come_first(const RankTimeline& rank, const InnerOuter& groups) {
    struct Step {
      std::int64_t before = 0;
      Ns gradients = std::numeric_limits<Ns>::max();
    };
    std::map<std::int64_t, Step> steps;
    const auto each = [&rank](auto visit) {
      for (const DeviceTimeline& device : rank.devices) {
        for (const CommOp& op : device.comm) visit(op);
      }
    };
    each([&](const CommOp& op) {
      const bool sums = op.op == Op::all_reduce || op.op == Op::reduce_scatter;
      if (op.group != static_cast<std::int32_t>(groups.outer) || !sums) return;
      Step& step = steps[op.step];
      step.gradients = std::min(step.gradients, op.time.start);
    });
    each([&](const CommOp& op) {
      const auto step = steps.find(op.step);
      if (op.group == static_cast<std::int32_t>(groups.inner) && step != steps.end() &&
          op.time.start < step->second.gradients)
        ++step->second.before;
    });
    const auto first = std::count_if(steps.begin(), steps.end(), [](const auto& step) {
      return step.second.before >= kBeforeGradients;
    });
    // A recording may begin and end in the middle of a step.
    return first > 0 && 4 * first >= 3 * static_cast<std::int64_t>(steps.size());
  }

  void assign(RankTimeline& rank) const {
    std::size_t at_work = 0;
    for (std::size_t i = 0; i < rank.groups.size(); ++i)
      at_work += deeds(rank, i).moves_data() ? 1 : 0;
    std::vector<GroupRole> roles;
    for (std::size_t i = 0; i < rank.groups.size(); ++i)
      roles.push_back(role_of(deeds(rank, i), at_work == 1));
    const auto both = nested(rank);
    if (both && deeds(rank, both->inner).only_reduces() &&
        deeds(rank, both->inner).of_few_sizes() && layers_come_first(rank, *both)) {
      roles[both->inner] = GroupRole::tensor;
      roles[both->outer] = GroupRole::data;
    }
    for (std::size_t i = 0; i < rank.groups.size(); ++i) {
      const auto described = group_role_from_description(rank.groups[i].description);
      rank.groups[i].role = described ? *described : roles[i];
    }
  }

  Job& job_;
  std::map<std::string, Deeds> deeds_;  // by label
};

}  // namespace

void assign_group_roles(Job& job) { RoleFinder(job).run(); }

}  // namespace commlens
