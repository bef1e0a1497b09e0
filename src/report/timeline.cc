// The frame of the file: its origin, and a process for each rank and GPU. What a process shows is
// in report/timeline_tracks.h, colours are in report/timeline_style.h, clocks in
// report/timeline_placement.h.
#include "report/timeline.h"

#include <algorithm>
#include <string>
#include <vector>

#include "report/timeline_names.h"
#include "report/timeline_out.h"
#include "report/timeline_path.h"
#include "report/timeline_placement.h"
#include "report/timeline_tracks.h"

namespace commlens {
namespace {

// "rank 3 (node-a, GPU 0)", "rank 3, run 1 (clock unknown)".
std::string process_name(const RankTimeline& rank, const DeviceTimeline* device, bool several_runs,
                         bool on_common_clock) {
  std::string text = "rank " + std::to_string(rank.rank);
  if (several_runs) text += ", run " + std::to_string(rank.run);
  std::vector<std::string> about;
  if (!rank.host.empty()) about.push_back(rank.host);
  if (device == nullptr) {
    about.push_back("nothing recorded");
  } else {
    about.push_back(device->device ? "GPU " + std::to_string(*device->device) : "CPU");
  }
  if (!on_common_clock) about.push_back("clock unknown");
  for (std::size_t i = 0; i < about.size(); ++i) text += (i == 0 ? " (" : ", ") + about[i];
  return text + ")";
}

bool has_several_runs(const Job& job, std::int64_t rank) {
  return std::count_if(job.ranks.begin(), job.ranks.end(),
                       [rank](const RankTimeline& other) { return other.rank == rank; }) > 1;
}

}  // namespace

void write_timeline(const Job& job, const TimelineOptions& options, Sink& sink) {
  const Placements places = place_ranks(job, options.clock_offsets);
  std::int64_t processes = 0;
  for (const RankTimeline& rank : job.ranks)
    processes += std::max<std::int64_t>(1, static_cast<std::int64_t>(rank.devices.size()));

  TimelineOut out(options.format, sink, processes + 1);
  out.begin(places.origin);
  const PathTracks path(job, places);
  std::int64_t process = 0;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const RankTimeline& rank = job.ranks[i];
    const Placement& place = places.ranks[i];
    const bool several_runs = has_several_runs(job, rank.rank);
    const auto open = [&](const DeviceTimeline* device) {
      out.name_process(++process, process_name(rank, device, several_runs, place.on_common_clock));
    };
    if (rank.devices.empty()) open(nullptr);
    RankNames names(rank, out.texts());
    for (const DeviceTimeline& device : rank.devices) {
      open(&device);
      if (&device == &rank.devices.front() && !options.clip_to_window)
        path.write(i, process, names, out);
      write_device_tracks({.rank = rank,
                           .device = device,
                           .place = place,
                           .id = process,
                           .clip_to_window = options.clip_to_window},
                          names, out);
    }
  }
  out.end();
}

}  // namespace commlens
