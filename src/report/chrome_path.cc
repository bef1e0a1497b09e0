#include "report/chrome_path.h"

#include <algorithm>
#include <array>

namespace commlens {
namespace {

// By PathClass: its name and one of the viewer's colours.
struct ClassStyle {
  std::string_view name;
  std::string_view category;
  std::string_view colour;
};
constexpr std::array<ClassStyle, kPathClasses> kPathStyles{{
    {"\"compute\"", "\"critical path,compute\"", "\"good\""},
    {"\"transfer\"", "\"critical path,transfer\"", "\"terrible\""},
    {"\"host\"", "\"critical path,host\"", "\"bad\""},
    {"\"memory\"", "\"critical path,memory\"", "\"yellow\""},
    {"\"unexplained\"", "\"critical path,unexplained\"", "\"grey\""},
}};

const CommOp* communication_at(const RankTimeline& rank, std::uint32_t node) {
  const std::vector<CommNode>& comm = rank.work.comm;
  const auto found =
      std::lower_bound(comm.begin(), comm.end(), node,
                       [](const CommNode& row, std::uint32_t wanted) { return row.node < wanted; });
  if (found == comm.end() || found->node != node) return nullptr;
  return &rank.devices[found->device].comm[found->op];
}

// What runs in a segment: members of its arguments.
std::string arguments_of(const RankTimeline& rank, const PathSegment& segment, RankNames& names) {
  if (segment.node == kNoNode) return {};
  const CommOp* op =
      segment.kind == PathClass::transfer ? communication_at(rank, segment.node) : nullptr;
  if (op == nullptr) return "\"what\":" + names.name(rank.work.name[segment.node]);
  std::string text = "\"what\":\"" + std::string(op_name(op->op)) + "\"";
  if (op->group >= 0) text += names.group(op->group);
  return text;
}

}  // namespace

PathTracks::PathTracks(const Job& job)
    : job_(job), segments_(job.ranks.size()), tracks_(job.ranks.size()) {
  if (!job.path.known) return;
  for (std::size_t i = 0; i < job.path.segments.size(); ++i)
    segments_[job.path.segments[i].rank].push_back(static_cast<std::uint32_t>(i));
}

// The path is on the common clock, tracks are on each rank's own.
Ns PathTracks::own(const PathSegment& segment, Ns common) const {
  return job_.clocks.known ? job_.clocks.own(segment.rank, common) : common;
}

void PathTracks::write(std::size_t row, std::int64_t process, const Placement& place,
                       RankNames& names, TraceEvents& events) {
  if (segments_[row].empty() || !place.on_common_clock) return;
  const Track track{process, events.open_thread(process, "critical path"), &place};
  tracks_[row] = track;
  Ns behind = 0;  // a drift's rounding must not make neighbours overlap
  for (const std::uint32_t i : segments_[row]) {
    const PathSegment& segment = job_.path.segments[i];
    const ClassStyle& style = kPathStyles[static_cast<std::size_t>(segment.kind)];
    const Ns start = std::max(behind, place.at(own(segment, segment.time.start)));
    const Ns end = std::max(start, place.at(own(segment, segment.time.end)));
    behind = end;
    const std::string arguments = arguments_of(job_.ranks[row], segment, names);
    events.slice({.process = process,
                  .thread = track.thread,
                  .start = start,
                  .length = end - start,
                  .name = style.name,
                  .category = style.category,
                  .colour = style.colour,
                  .arguments = arguments});
  }
}

void PathTracks::write_arrows(TraceEvents& events) const {
  std::int64_t arrow = 0;
  for (std::size_t i = 1; i < job_.path.segments.size(); ++i) {
    const PathSegment& from = job_.path.segments[i - 1];
    const PathSegment& to = job_.path.segments[i];
    if (from.rank == to.rank || !tracks_[from.rank] || !tracks_[to.rank]) continue;
    const Track& source = *tracks_[from.rank];
    const Track& target = *tracks_[to.rank];
    // An arrow is tied to the slice that its end lies in: not to the one behind.
    const Ns last = source.place->at(own(from, from.time.end) - 1);
    events.arrow(++arrow, {source.process, source.thread, last},
                 {target.process, target.thread, target.place->at(own(to, to.time.start))});
  }
}

}  // namespace commlens
