#include "match/host_links.h"

#include <algorithm>
#include <limits>

namespace commlens {
namespace {

// Microsecond traces round: a child may seem to end after its parent.
constexpr Ns kNestingTolerance = 1000;
// Ranges of communication nest a few deep; a hostile file must not make every launch look at all of
// them.
constexpr int kDeepestSearch = 256;

}  // namespace

HostLinks::HostLinks(const RankTimeline& rank) : rank_(rank), recording_(rank.recording) {
  const Recording& recording = rank.recording;
  by_thread_.resize(recording.threads.size());
  for (std::uint32_t row = 0; row < recording.host_ranges.size(); ++row) {
    const HostRange& range = recording.host_ranges[row];
    // Host backends launch nothing on the GPU, and their ranges last as long as the transfer: what
    // the thread launches meanwhile has nothing to do with them.
    const std::string_view backend = recording.strings.get(range.backend);
    const bool on_host = backend == "gloo" || backend == "mpi" || backend == "ucc";
    if (!on_host) by_thread_[range.thread.index()].rows.push_back(row);
    if (range.kind != HostRangeKind::collective_record || range.external_id == 0) continue;
    by_external_id_.try_emplace(range.external_id, row);
    external_ids_.add(range.external_id);
  }
  const auto& ranges = recording.host_ranges;
  for (auto& [rows, latest_end] : by_thread_) {
    std::stable_sort(rows.begin(), rows.end(), [&ranges](std::uint32_t a, std::uint32_t b) {
      return ranges[a].start < ranges[b].start;
    });
    Ns latest = std::numeric_limits<Ns>::min();
    for (const std::uint32_t row : rows)
      latest_end.push_back(latest = std::max(latest, ranges[row].end));
  }
  if (by_external_id_.empty()) return;
  for (std::size_t i = 0; i < recording.launches.size(); ++i) {
    const std::uint64_t id = recording.launches.external_id[i];
    if (id == 0 || !external_ids_.may_hold(id)) continue;
    const auto found = by_external_id_.find(id);
    if (found == by_external_id_.end()) continue;
    by_correlation_.try_emplace(recording.launches.correlation[i], found->second);
    correlations_.add(recording.launches.correlation[i]);
  }
}

Op HostLinks::op_of(const HostRange& range) const {
  const std::string_view name =
      range.kind == HostRangeKind::annotation ? recording_.strings.get(range.name)
      : range.meta.valid() ? recording_.strings.get(recording_.metas[range.meta.index()].collective)
                           : std::string_view();
  return op_from_collective_name(name).value_or(Op::unknown);
}

HostLink HostLinks::link_to(std::uint32_t row) const {
  const HostRange& range = recording_.host_ranges[row];
  return {.op = op_of(range),
          .meta = range.meta,
          .linked = true,
          .record = range.meta.valid() ? std::optional(row) : std::nullopt,
          .range = {}};
}

std::optional<HostLink> HostLinks::by_external_id(std::uint64_t external_id) const {
  if (external_id == 0 || !external_ids_.may_hold(external_id)) return std::nullopt;
  const auto found = by_external_id_.find(external_id);
  if (found == by_external_id_.end()) return std::nullopt;
  return link_to(found->second);
}

std::optional<HostLink> HostLinks::by_launch(std::uint64_t correlation) const {
  if (correlation == 0 || !correlations_.may_hold(correlation)) return std::nullopt;
  const auto found = by_correlation_.find(correlation);
  if (found == by_correlation_.end()) return std::nullopt;
  return link_to(found->second);
}

std::optional<HostLink> HostLinks::by_nesting(std::size_t activity) const {
  const auto launch = rank_.launch_of(activity);
  if (!launch) return std::nullopt;
  return around(recording_.launches.thread[*launch], recording_.launches.start[*launch]);
}

std::optional<HostLink> HostLinks::around(ThreadId thread, Ns at) const {
  const auto& ranges = recording_.host_ranges;
  const auto& [rows, latest_end] = by_thread_[thread.index()];
  auto row = std::partition_point(rows.begin(), rows.end(), [&](std::uint32_t r) {
    return ranges[r].start <= at + kNestingTolerance;
  });
  // From the latest start backwards: the first that still holds the launch is the innermost. Its
  // metadata may stand on a record further out that asks for the same operation.
  // What ended before one that surely holds the launch began is only near: the last call of a
  // group, before the group's end that launches.
  std::optional<HostLink> link;
  Ns holder = std::numeric_limits<Ns>::max();
  for (int looked = 0; row != rows.begin() && looked < kDeepestSearch; ++looked) {
    const HostRange& range = ranges[*--row];
    if (latest_end[static_cast<std::size_t>(row - rows.begin())] + kNestingTolerance < at) break;
    if (range.end + kNestingTolerance < at) continue;
    if (range.end < at && range.end <= holder && holder <= at) continue;
    if (range.start <= at && at <= range.end) holder = std::min(holder, range.start);
    const Op op = op_of(range);
    if (op == Op::unknown && !link) continue;
    if (!link) link = HostLink{.op = op, .meta = {}, .linked = false, .record = {}, .range = *row};
    if (range.meta.valid() && op == link->op) {
      link->meta = range.meta;
      link->record = *row;
      break;
    }
  }
  return link;
}

}  // namespace commlens
