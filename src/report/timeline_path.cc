#include "report/timeline_path.h"

#include <algorithm>
#include <array>

#include "model/comm_at.h"

namespace commlens {
namespace {

// By PathClass: its name and one of the viewer's colours.
struct ClassStyle {
  std::string_view name;
  std::string_view category;
  std::string_view colour;
};
constexpr std::array<ClassStyle, kPathClasses> kPathStyles{{
    {"compute", "critical path,compute", "good"},
    {"transfer", "critical path,transfer", "terrible"},
    {"host", "critical path,host", "bad"},
    {"memory", "critical path,memory", "yellow"},
    {"unexplained", "critical path,unexplained", "grey"},
}};

// What runs in a segment.
std::vector<Argument> arguments_of(const RankTimeline& rank, const PathSegment& segment,
                                   RankNames& names, TimelineTexts& texts) {
  if (segment.node == kNoNode) return {};
  const TextId what = texts.id("what");
  const CommOp* op = segment.kind == PathClass::transfer ? comm_at(rank, segment.node) : nullptr;
  if (op == nullptr) return {{what, names.name(rank.work.name[segment.node])}};
  std::vector<Argument> arguments{{what, texts.id(op_name(op->op))}};
  if (op->group >= 0) {
    const auto group = names.group(op->group);
    arguments.insert(arguments.end(), group.begin(), group.end());
  }
  return arguments;
}

}  // namespace

PathTracks::PathTracks(const Job& job, const Placements& places)
    : job_(job),
      places_(places),
      segments_(job.ranks.size()),
      arrows_(job.path.known ? job.path.segments.size() + 1 : 0) {
  if (!job.path.known) return;
  for (std::size_t i = 0; i < job.path.segments.size(); ++i)
    segments_[job.path.segments[i].rank].push_back(static_cast<std::uint32_t>(i));
  number_arrows();
}

bool PathTracks::has_track(std::size_t row) const {
  return !segments_[row].empty() && places_.ranks[row].on_common_clock &&
         !job_.ranks[row].devices.empty();
}

void PathTracks::number_arrows() {
  std::int64_t arrow = 0;
  for (std::size_t i = 1; i < job_.path.segments.size(); ++i) {
    const std::size_t from = job_.path.segments[i - 1].rank;
    const std::size_t to = job_.path.segments[i].rank;
    if (from != to && has_track(from) && has_track(to)) arrows_[i] = ++arrow;
  }
}

// The path is on the common clock, tracks are on each rank's own.
Ns PathTracks::own(const PathSegment& segment, Ns common) const {
  return job_.clocks.known ? job_.clocks.own(segment.rank, common) : common;
}

void PathTracks::write(std::size_t row, std::int64_t process, RankNames& names,
                       TimelineOut& out) const {
  if (!has_track(row)) return;
  const Placement& place = places_.ranks[row];
  const std::int64_t thread = out.open_thread(process, "critical path");
  Ns behind = 0;  // a drift's rounding must not make neighbours overlap
  for (const std::uint32_t i : segments_[row]) {
    const PathSegment& segment = job_.path.segments[i];
    const ClassStyle& style = kPathStyles[static_cast<std::size_t>(segment.kind)];
    const Ns start = std::max(behind, place.at(own(segment, segment.time.start)));
    const Ns end = std::max(start, place.at(own(segment, segment.time.end)));
    behind = end;
    const std::vector<Argument> arguments =
        arguments_of(job_.ranks[row], segment, names, out.texts());
    out.slice({.process = process,
               .thread = thread,
               .start = start,
               .length = end - start,
               .name = {.before = out.texts().id(style.name)},
               .category = out.texts().id(style.category),
               .colour = style.colour,
               .arguments = arguments,
               .arrow_in = arrows_[i],
               .arrow_out = arrows_[i + 1]});
  }
}

}  // namespace commlens
