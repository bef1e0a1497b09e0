// Problem: to say why one rank was later than another, both have to start from the same place in
// their program at the same time. Leaving an operation together is such a place only if their
// compute waited for it:
//
//   rank 0  compute [=a=======b=======c=======]     gradients leave under the compute: when they
//           network      [A  w  w|A][B  w  w|B]     arrive, rank 0 is far ahead of rank 1
//   rank 1  compute [====a=========b==========c=]
//           network              [A][    ][B]
//
// After A both have left A, but rank 0 is at c and rank 1 at b: counting from there would call
// rank 1's work its lateness. So operations under whose end anybody computes are passed over.
//
// Two ranks share a few groups, and each is looked through by itself: an operation of one group may
// have hundreds of another behind it. Some jobs make a group for every operation; then all of a
// rank's operations are looked through as one list, backwards, and not each group for each wait.
// When it is wrong: of ranks with so many groups in common, what lies further back is not found.
#include "match/common_op.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace commlens {
namespace {

// No compute in the last of an operation: its rank's compute waited for it.
constexpr Ns kLast = 3'000;

// How many operations are looked at, backwards, for one that both took part in: events get lost,
// but not that many in a row.
constexpr int kFurthestBack = 16;

// More groups than this that two ranks share are looked through as one, and so far back.
constexpr std::size_t kManyGroups = 64;
constexpr int kFurthestBackInAny = 1'024;

std::uint64_t key_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32U | b; }

// The part of a rank, by its row; null where it has none. Parts stand by rank, except a pair's.
const Part* part_of(const Matching& matching, const MatchedOp& op, std::uint32_t rank) {
  const Part* const first = matching.parts.data() + op.first;
  const Part* const last = first + op.count;
  const Part* const found =
      op.pair ? std::find_if(first, last, [rank](const Part& part) { return part.rank == rank; })
              : std::lower_bound(first, last, rank, [](const Part& part, std::uint32_t row) {
                  return part.rank < row;
                });
  return found != last && found->rank == rank ? found : nullptr;
}

bool synchronises_everyone(Op op) {
  return op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter ||
         op == Op::all_to_all || op == Op::barrier;
}

}  // namespace

CommonOps::CommonOps(const Job& job)
    : job_(job), held_(job.matching.parts.size()), groups_(job.ranks.size()) {
  const Matching& matching = job.matching;
  for (std::uint32_t row = 0; row < matching.ops.size(); ++row) {
    const MatchedOp& op = matching.ops[row];
    if (!op.agreed) continue;
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const Part& part = matching.parts[op.first + i];
      if (!held_compute(part)) continue;
      held_[op.first + i] = true;
      List& attended = lists_[key_of(part.rank, static_cast<std::uint32_t>(op.group))];
      if (attended.empty()) groups_[part.rank].push_back(op.group);
      attended.push_back({comm_of(job, part).time.end, row, op.first + i});
    }
  }
  for (auto& groups : groups_) std::sort(groups.begin(), groups.end());
  all_.resize(groups_.size());
  for (std::uint32_t rank = 0; rank < groups_.size(); ++rank) {
    if (groups_[rank].size() <= kManyGroups) continue;
    for (const std::int32_t group : groups_[rank])
      all_[rank].insert(all_[rank].end(), list(rank, group)->begin(), list(rank, group)->end());
    std::stable_sort(all_[rank].begin(), all_[rank].end(),
                     [](const Attended& a, const Attended& b) { return a.end < b.end; });
  }
}

const CommonOps::List* CommonOps::list(std::uint32_t rank, std::int32_t group) const {
  const auto found = lists_.find(key_of(rank, static_cast<std::uint32_t>(group)));
  return found == lists_.end() ? nullptr : &found->second;
}

const std::vector<std::int32_t>& CommonOps::common_groups(std::uint32_t a, std::uint32_t b,
                                                          Cache& cache) const {
  const auto [found, inserted] = cache.groups.try_emplace(key_of(std::min(a, b), std::max(a, b)));
  if (inserted) {
    std::set_intersection(groups_[a].begin(), groups_[a].end(), groups_[b].begin(),
                          groups_[b].end(), std::back_inserter(found->second));
  }
  return found->second;
}

bool CommonOps::held_compute(const Part& part) const {
  const DeviceTimeline& device = device_of(job_, part);
  const Interval time = device.comm[part.op].time;
  const auto compute = device.compute_under_comm.parts();
  const std::size_t first =
      device.compute_under_comm.first_ending_after(std::max(time.start, time.end - kLast));
  return first == compute.size() || compute[first].start >= time.end;
}

bool CommonOps::together(const MatchedOp& op, const Part& a, const Part& b, Ns tolerance) const {
  if (synchronises_everyone(op.op)) return true;
  const Ns end_a = job_.clocks.common(a.rank, comm_of(job_, a).time.end);
  const Ns end_b = job_.clocks.common(b.rank, comm_of(job_, b).time.end);
  return std::abs(end_a - end_b) <= tolerance;
}

std::size_t CommonOps::left_before(const List& attended, const Part& a) const {
  const Ns enters = comm_of(job_, a).time.start;
  const auto behind =
      std::partition_point(attended.begin(), attended.end(),
                           [enters](const Attended& row) { return row.end <= enters; });
  return static_cast<std::size_t>(behind - attended.begin());
}

const CommonOps::Cache::Left& CommonOps::left_in(std::int32_t group, const Part& a,
                                                 Cache& cache) const {
  if (cache.late != a) {
    cache.late = a;
    cache.left.clear();
  }
  for (const Cache::Left& left : cache.left) {
    if (left.group == group) return left;
  }
  const List& attended = *list(a.rank, group);
  return cache.left.emplace_back(
      Cache::Left{.group = group, .attended = &attended, .count = left_before(attended, a)});
}

std::optional<CommonOps::Found> CommonOps::before_in(std::int32_t group, const Part& a,
                                                     const Part& b, Ns tolerance,
                                                     Cache& cache) const {
  const Cache::Left& left = left_in(group, a, cache);
  return last_of(*left.attended, left.count, kFurthestBack, a, b, tolerance);
}

std::optional<CommonOps::Found> CommonOps::before_in_any(const Part& a, const Part& b,
                                                         Ns tolerance) const {
  const List& of_a = all_[a.rank];
  return last_of(of_a, left_before(of_a, a), kFurthestBackInAny, a, b, tolerance);
}

std::optional<CommonOps::Found> CommonOps::last_of(const List& attended, std::size_t behind,
                                                   int most, const Part& a, const Part& b,
                                                   Ns tolerance) const {
  const Ns enters_b = comm_of(job_, b).time.start;
  for (int looked = 0; behind > 0 && looked < most; ++looked) {
    const Attended& candidate = attended[--behind];
    const MatchedOp& op = job_.matching.ops[candidate.op];
    const Part& part_a = job_.matching.parts[candidate.part];
    const Part* const part_b = part_of(job_.matching, op, b.rank);
    if (part_b == nullptr) continue;
    if (part_a.device != a.device || part_b->device != b.device) continue;
    if (!held_[static_cast<std::size_t>(part_b - job_.matching.parts.data())]) continue;
    if (comm_of(job_, *part_b).time.end > enters_b) continue;
    if (together(op, part_a, *part_b, tolerance)) return Found{part_a, *part_b};
  }
  return std::nullopt;
}

std::optional<CommonOps::Found> CommonOps::before(const Part& a, const Part& b, Ns tolerance,
                                                  Cache& cache) const {
  const std::vector<std::int32_t>& common = common_groups(a.rank, b.rank, cache);
  if (common.size() > kManyGroups) return before_in_any(a, b, tolerance);
  std::optional<Found> last;
  for (const std::int32_t group : common) {
    const auto found = before_in(group, a, b, tolerance, cache);
    if (!found) continue;
    if (!last || comm_of(job_, found->a).time.end > comm_of(job_, last->a).time.end) last = found;
  }
  return last;
}

}  // namespace commlens
