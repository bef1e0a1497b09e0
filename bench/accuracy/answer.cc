// The order of the stages is study/study.cc's.
#include "answer.h"

#include <ctime>

#include "match/classify.h"
#include "match/clocks.h"
#include "match/collectives.h"
#include "match/exposure.h"
#include "match/own_time.h"
#include "match/runs.h"
#include "match/stragglers.h"
#include "match/waiting.h"
#include "match/windows.h"

namespace commlens::accuracy {
namespace {

Ns processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Ns{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The whole recording is the window.
void compute_figures(RankTimeline& rank, const std::vector<IntervalSet>& host_idle) {
  for (std::size_t i = 0; i < rank.devices.size(); ++i) {
    DeviceTimeline& device = rank.devices[i];
    WindowFigures figures = window_figures(device, device.extent);
    device.breakdown = figures.breakdown;
    device.breakdown.host_idle = host_idle[i].overlap(device.breakdown.window);
    device.exposures = std::move(figures.exposures);
    const ExposureFigures exposure(device);
    for (const auto& [number, window] : device.steps) {
      device.step_figures.push_back(exposure.of(number, window));
      device.step_figures.back().breakdown.host_idle = host_idle[i].overlap(window);
    }
  }
}

RankTimeline prepare(Recording recording) {
  RankTimeline rank;
  rank.recording = std::move(recording);
  classify(rank, {});
  find_step_windows(rank);
  compute_figures(rank, find_own_times(rank));
  rank.ready = true;
  return rank;
}

Job match_job(std::vector<Recording> recordings) {
  std::vector<RankTimeline> ranks;
  for (Recording& recording : recordings) ranks.push_back(prepare(std::move(recording)));
  Job job = arrange_runs(std::move(ranks), {});
  job.matching = match_collectives(job);
  job.clocks = relate_clocks(job);
  job.waits = find_waits(job);
  job.stragglers = find_stragglers(job);
  return job;
}

}  // namespace

Answer analyse(std::vector<Recording> recordings) {
  const Ns before = processor_time();
  Answer answer{.job = match_job(std::move(recordings))};
  answer.time = processor_time() - before;
  return answer;
}

}  // namespace commlens::accuracy
