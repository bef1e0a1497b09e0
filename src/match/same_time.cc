// Problem: host, process id, communicators and calls are alike in every run of one job, and
// containers give the same ids each time. When a line was written is what differs.
//
// Method: the dates of a file bound when its lines were written. If all lines that matter lie after
// a date that is behind the recording's last communication, or before one that is ahead of its
// first, they are of another time. A communicator may be set up days before it is recorded, so
// earlier dates say nothing against lines that only set up.
#include "match/same_time.h"

#include <optional>

namespace commlens {
namespace {

// First start to last end of the communications, since the epoch.
std::optional<Interval> communication_of(const RankTimeline& rank) {
  if (rank.recording.clock != ClockBase::epoch) return std::nullopt;
  std::optional<Interval> all;
  for (const DeviceTimeline& device : rank.devices) {
    if (device.comm.empty()) continue;
    const Interval own{device.comm.front().time.start, device.comm.back().time.end};
    all = all ? Interval{std::min(all->start, own.start), std::max(all->end, own.end)} : own;
  }
  if (all) {
    all->start += rank.recording.clock_base;
    all->end += rank.recording.clock_base;
  }
  return all;
}

std::string apart(Ns distance) {
  constexpr Ns kHour = Ns{3600} * 1'000'000'000;
  const Ns hours = distance / kHour;
  return hours < 48 ? std::to_string(hours) + " hours" : std::to_string(hours / 24) + " days";
}

}  // namespace

std::string why_other_time(const WrittenSpan& written, SpokenLines lines, const RankTimeline& rank,
                           Ns slack) {
  const std::optional<Interval> recorded = communication_of(rank);
  if (!recorded || !written.known()) return {};
  const bool first_is_dated = lines.first == 0 || written.first_line <= lines.first;
  if (first_is_dated && written.first > recorded->end + slack)
    return "it was written " + apart(written.first - recorded->end) +
           " after the recording: it is of another run, or of another part of this one";
  const bool last_is_dated = lines.last == 0 || written.last_line >= lines.last;
  if (lines.calls && last_is_dated && written.last < recorded->start - slack)
    return "its calls were written " + apart(recorded->start - written.last) +
           " before the recording: they are of another run, or of another part of this one";
  return {};
}

}  // namespace commlens
