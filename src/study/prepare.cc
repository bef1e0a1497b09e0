#include "study/prepare.h"

#include <algorithm>

#include "base/parallel.h"
#include "match/classify.h"
#include "match/dependencies.h"
#include "match/exposure.h"
#include "match/merge.h"
#include "match/own_time.h"

namespace commlens {
namespace {

WiderSets wider_sets(const DeviceTimeline& device, const IntervalSet& host_idle) {
  std::vector<Interval> comm;
  comm.reserve(device.comm.size());
  for (const CommOp& op : device.comm) comm.push_back(op.time);
  return {.compute = device.compute,
          .memory_only = set_difference(set_difference(device.memory, IntervalSet(std::move(comm))),
                                        device.compute),
          .host_idle = host_idle};
}

// Figures of the chosen window and of every chosen step. `host_idle`: by device, when nothing was
// queued.
void compute_figures(RankTimeline& rank, const std::vector<IntervalSet>& host_idle,
                     const WindowOptions& options) {
  for (std::size_t d = 0; d < rank.devices.size(); ++d) {
    DeviceTimeline& device = rank.devices[d];
    const std::optional<Interval> window = chosen_window(device, options);
    WindowFigures figures =
        window_figures(device, window.value_or(Interval{device.extent.start, device.extent.start}));
    device.breakdown = figures.breakdown;
    device.breakdown.host_idle = host_idle[d].overlap(device.breakdown.window);
    device.exposures = std::move(figures.exposures);
    if (options.choice != WindowChoice::gpu || !options.steps.empty())
      device.wider = wider_sets(device, host_idle[d]);
    const ExposureFigures exposure(device);
    for (const auto& [number, range] : device.steps) {
      if (!step_is_chosen(number, options)) continue;
      device.step_figures.push_back(exposure.of(number, range));
      device.step_figures.back().breakdown.host_idle = host_idle[d].overlap(range);
    }
  }
}

}  // namespace

void prepare(RankTimeline& rank, const Settings& settings, unsigned threads) {
  // Standard input cannot be read again, should its recording be a piece of another.
  const bool keep = settings.keep_activities || rank.recording.path == "-";
  timed(Stage::classify, [&] { classify(rank, settings.rules, keep); });
  timed(Stage::windows, [&] { find_step_windows(rank); });
  const auto has_no_window = [&settings](const DeviceTimeline& device) {
    return !chosen_window(device, settings.windows);
  };
  const auto find_figures = [&] {
    std::vector<IntervalSet> host_idle;
    timed(Stage::own_times, [&] { host_idle = find_own_times(rank); });
    timed(Stage::figures, [&] { compute_figures(rank, host_idle, settings.windows); });
  };
  // Fills `work` alone, from devices, of which only figures are filled meanwhile.
  const auto find_work = [&] {
    if (settings.room != nullptr && settings.room->take(rank.recording.gpu.size()))
      timed(Stage::dependencies, [&] { find_dependencies(rank); });
  };
  // A device without any of the chosen steps has no window to speak of. Dependencies must not see
  // it: they count devices.
  if (std::any_of(rank.devices.begin(), rank.devices.end(), has_no_window)) {
    find_figures();
    std::erase_if(rank.devices, has_no_window);
    find_work();
  } else {
    for_each_parallel(2, threads, [&](std::size_t i) { i == 0 ? find_work() : find_figures(); });
  }
  rank.ready = true;
  if (!keep) let_go_of_columns(rank);
}

}  // namespace commlens
