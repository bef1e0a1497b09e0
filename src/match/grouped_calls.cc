// Problem: batch_isend_irecv makes one kernel of many sends and receives, launched when the group
// ends. The kernel links to no record, or to the last one only.
//
//   host thread  [send ->1][recv <-3][send ->3][recv <-1] [end of the group  ^ ]
//                                                            launch of the kernel
//
// Method: along a thread, records wait for a launch of a communication, which carries out all that
// wait: the one that it lies in, or several. Launches of other work change nothing. Where records
// of another operation or of another group wait too, it cannot be told; a launch whose kernel was
// not recorded ends the waiting all the same. Without sends and receives nothing is computed.
//
// When it is wrong: without recorded launches a grouped kernel looks like its last call.
#include "match/grouped_calls.h"

#include <algorithm>

#include "model/operation.h"

namespace commlens {

// What a launch started, as far as it was recorded.
enum class GroupedCalls::Started : std::uint8_t { nothing, other, communication };

// One thing that happened on a thread: a record began, or a launch.
struct GroupedCalls::Event {
  Ns at = 0;
  bool launch = false;
  bool point_to_point = false;
  std::uint32_t row = 0;  // of the host ranges, or of the launches
};

namespace {

bool is_record(const HostRange& range) {
  return range.kind == HostRangeKind::collective_record && range.meta.valid();
}

bool is_point_to_point(const Recording& recording, const HostRange& range) {
  const CollectiveMeta& meta = recording.metas[range.meta.index()];
  const auto op = op_from_collective_name(recording.strings.get(meta.collective));
  return op == Op::send || op == Op::recv;
}

bool one_group(const Recording& recording, const std::vector<std::uint32_t>& records) {
  const auto group = [&](std::uint32_t row) {
    return recording.metas[recording.host_ranges[row].meta.index()].group_name;
  };
  return std::all_of(records.begin(), records.end(),
                     [&](std::uint32_t row) { return group(row) == group(records.front()); });
}

}  // namespace

GroupedCalls::GroupedCalls(const RankTimeline& rank) {
  const Recording& recording = rank.recording;
  std::vector<std::vector<Event>> events(recording.threads.size());
  bool any = false;
  for (std::uint32_t row = 0; row < recording.host_ranges.size(); ++row) {
    const HostRange& range = recording.host_ranges[row];
    if (!is_record(range)) continue;
    const bool pair = is_point_to_point(recording, range);
    any = any || pair;
    events[range.thread.index()].push_back(
        {.at = range.start, .launch = false, .point_to_point = pair, .row = row});
  }
  if (!any) return;
  for (std::uint32_t row = 0; row < recording.launches.size(); ++row) {
    std::vector<Event>& mine = events[recording.launches.thread[row].index()];
    if (!mine.empty())
      mine.push_back({.at = recording.launches.start[row], .launch = true, .row = row});
  }
  std::vector<Started> started(recording.launches.size(), Started::nothing);
  for (std::size_t i = 0; i < recording.gpu.size(); ++i) {
    const auto launch = rank.launch_of(i);
    if (!launch) continue;
    const bool communicates = rank.classes[i] == ActivityClass::communication;
    started[*launch] =
        std::max(started[*launch], communicates ? Started::communication : Started::other);
  }
  for (std::vector<Event>& mine : events) {
    // A record comes before a launch at its own start.
    std::stable_sort(mine.begin(), mine.end(), [](const Event& a, const Event& b) {
      return a.at != b.at ? a.at < b.at : !a.launch && b.launch;
    });
    walk(recording, mine, started);
  }
}

// Along one thread: the calls that no launch has carried out yet.
void GroupedCalls::walk(const Recording& recording, const std::vector<Event>& events,
                        const std::vector<Started>& started) {
  std::vector<std::uint32_t> waiting;
  bool mixed = false;  // with calls of another kind
  for (const Event& event : events) {
    if (!event.launch) {
      mixed = mixed || !event.point_to_point;
      waiting.push_back(event.row);
      continue;
    }
    const Started what = started[event.row];
    if (what == Started::other) continue;
    if (what == Started::communication && !mixed && !waiting.empty() &&
        one_group(recording, waiting))
      keep(event.row, waiting);
    waiting.clear();
    mixed = false;
  }
}

void GroupedCalls::keep(std::size_t launch, const std::vector<std::uint32_t>& records) {
  const std::size_t first = records_.size();
  records_.insert(records_.end(), records.begin(), records.end());
  of_launch_.emplace(launch, std::pair{first, records_.size()});
}

std::span<const std::uint32_t> GroupedCalls::of_launch(std::size_t launch) const {
  const auto found = of_launch_.find(launch);
  if (found == of_launch_.end()) return {};
  const auto [first, last] = found->second;
  return std::span(records_).subspan(first, last - first);
}

}  // namespace commlens
