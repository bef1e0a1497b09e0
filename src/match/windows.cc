// Problem: "ProfilerStep#7" is a range on the host, and the GPU works on step 7 later. Cutting GPU
// time at the host's range charges one step's work to another.
//
//   host    |--- step 7 ---|--- step 8 ---|
//   GPU           |=== work launched in 7 ===|=== in 8 ===|
//   window        |<------- step 7 --------->|<- step 8 ->|
//
// Method: a step's window begins at the first GPU start that was launched inside its host range,
// and ends where the next step's begins; the last ends with the last GPU end launched in it.
// Without launch records the GPU copies of the step ranges are used, without those the host ranges;
// both are said. When it is wrong: work launched ahead of a step (prefetching) counts for the step
// in which it was launched.
#include "match/windows.h"

#include <algorithm>
#include <map>

#include "match/device_rows.h"

namespace commlens {
namespace {

struct StepStart {
  std::int64_t number = 0;
  Interval work;  // first start to last end of what it launched
  bool any = false;
};

// The position of the step whose host range holds `instant`; steps sorted by start of their host
// ranges.
std::optional<std::size_t> step_at(const std::vector<StepRange>& steps, Ns instant) {
  const auto after =
      std::partition_point(steps.begin(), steps.end(),
                           [instant](const StepRange& step) { return step.host.start <= instant; });
  if (after == steps.begin()) return std::nullopt;
  const auto step = after - 1;
  if (instant >= step->host.end) return std::nullopt;
  return static_cast<std::size_t>(step - steps.begin());
}

// Windows that tile: each ends where the next begins, the last with its own work.
void set_tiles(DeviceTimeline& device, const std::vector<StepStart>& starts) {
  Ns from = starts.front().work.start;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    from = std::max(from, starts[i].work.start);
    const Ns to = i + 1 < starts.size() ? std::max(from, starts[i + 1].work.start)
                                        : std::max(from, starts[i].work.end);
    device.steps.emplace_back(starts[i].number, Interval{from, to});
  }
}

std::vector<StepRange> by_host_time(const std::vector<StepRange>& steps) {
  std::vector<StepRange> sorted;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(sorted),
               [](const StepRange& step) { return step.host.length() > 0; });
  std::sort(sorted.begin(), sorted.end(),
            [](const StepRange& a, const StepRange& b) { return a.host.start < b.host.start; });
  return sorted;
}

// One note for each step that a device does not work in; the first of them is the example.
void note_steps_without_work(RankTimeline& rank, const std::vector<StepRange>& steps,
                             const std::map<std::size_t, StepStart>& work) {
  if (work.size() == steps.size()) return;
  std::size_t first = 0;
  while (work.contains(first)) ++first;
  rank.notes.add(Note::step_without_gpu_work, "step " + std::to_string(steps[first].number),
                 static_cast<std::int64_t>(steps.size() - work.size()));
}

// By launches. False when no step launched anything.
bool steps_by_launches(RankTimeline& rank) {
  const Recording& recording = rank.recording;
  const std::vector<StepRange> steps = by_host_time(recording.steps);
  if (steps.empty() || recording.launches.size() == 0) return false;
  const std::vector<std::size_t> device_of = device_of_stream(rank);
  // By device and step: a hostile file can have very many of both, but only so many of both that
  // work together as it has activities.
  std::vector<std::map<std::size_t, StepStart>> work(rank.devices.size());
  for (std::size_t i = 0; i < recording.gpu.size(); ++i) {
    const auto launch = rank.launch_of(i);
    if (!launch) continue;
    const auto step = step_at(steps, recording.launches.start[*launch]);
    if (!step) continue;
    StepStart& mine = work[device_of[recording.gpu.stream[i].index()]][*step];
    const Interval activity = recording.gpu.interval(i);
    mine.work = mine.any ? Interval{std::min(mine.work.start, activity.start),
                                    std::max(mine.work.end, activity.end)}
                         : activity;
    mine.any = true;
  }
  // Launches that have nothing to do with steps say nothing about them.
  const bool found =
      std::any_of(work.begin(), work.end(), [](const auto& rows) { return !rows.empty(); });
  if (!found) return false;
  for (std::size_t d = 0; d < rank.devices.size(); ++d) {
    note_steps_without_work(rank, steps, work[d]);
    std::vector<StepStart> starts;
    for (auto& [s, row] : work[d]) {
      row.number = steps[s].number;
      starts.push_back(row);
    }
    if (!starts.empty()) set_tiles(rank.devices[d], starts);
  }
  return true;
}

// By ranges that are known from elsewhere: the GPU copies of the steps, or the host's own.
template <class Range>
bool steps_by_ranges(RankTimeline& rank, Range range_of) {
  std::vector<StepStart> starts;
  for (const StepRange& step : rank.recording.steps) {
    if (const std::optional<Interval> range = range_of(step))
      starts.push_back({step.number, *range, true});
  }
  if (starts.empty()) return false;
  std::sort(starts.begin(), starts.end(),
            [](const StepStart& a, const StepStart& b) { return a.work.start < b.work.start; });
  for (DeviceTimeline& device : rank.devices) set_tiles(device, starts);
  return true;
}

void find_windows(RankTimeline& rank) {
  if (steps_by_launches(rank)) return;
  if (steps_by_ranges(rank, [](const StepRange& step) { return step.gpu_annotation; })) {
    rank.notes.add(Note::steps_from_annotations);
    return;
  }
  const auto host = [](const StepRange& step) {
    return step.host.length() > 0 ? std::optional(step.host) : std::nullopt;
  };
  if (!steps_by_ranges(rank, host)) return;
  // Where communication is on the host too, the host's range is the right one.
  if (rank.recording.gpu.size() > 0) rank.notes.add(Note::steps_from_host);
}

// The step whose window an instant on the GPU lies in.
std::int64_t step_of_window(const DeviceTimeline& device, Ns instant) {
  const auto after =
      std::partition_point(device.steps.begin(), device.steps.end(),
                           [instant](const auto& step) { return step.second.start <= instant; });
  if (after == device.steps.begin()) return kUnknown;
  const auto& [number, window] = *(after - 1);
  return instant < window.end ? number : kUnknown;
}

// The step that launched each communication; without its launch, the one in whose window it starts.
// Communication on the host is its own launch.
void name_steps_of_communications(RankTimeline& rank) {
  const Recording& recording = rank.recording;
  const std::vector<StepRange> steps = by_host_time(recording.steps);
  for (DeviceTimeline& device : rank.devices) {
    for (CommOp& op : device.comm) {
      std::optional<Ns> asked;
      if (!device.device) {
        asked = op.time.start;
      } else if (const auto launch = rank.launch_of(op.source)) {
        asked = recording.launches.start[*launch];
      }
      if (steps.empty() || !asked) {
        op.step = step_of_window(device, op.time.start);
      } else if (const auto step = step_at(steps, *asked)) {
        op.step = steps[*step].number;
      }
    }
  }
}

}  // namespace

void find_step_windows(RankTimeline& rank) {
  if (rank.devices.empty()) return;
  if (rank.recording.steps.empty()) return rank.notes.add(Note::no_steps);
  find_windows(rank);
  name_steps_of_communications(rank);
}

bool step_is_chosen(std::int64_t number, const WindowOptions& options) {
  return options.steps.empty() ||
         std::binary_search(options.steps.begin(), options.steps.end(), number);
}

std::optional<Interval> chosen_window(const DeviceTimeline& device, const WindowOptions& options) {
  if (options.steps.empty() && options.choice == WindowChoice::gpu) return device.extent;
  std::optional<Interval> window;
  for (const auto& [number, range] : device.steps) {
    if (!step_is_chosen(number, options)) continue;
    window = window
                 ? Interval{std::min(window->start, range.start), std::max(window->end, range.end)}
                 : range;
  }
  return window;
}

}  // namespace commlens
