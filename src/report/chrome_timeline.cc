// The frame of the file: its origin, and a process for each rank and GPU. What a process shows is
// in report/chrome_tracks.h, colours are in report/chrome_style.h, clocks in
// report/chrome_placement.h.
#include "report/chrome_timeline.h"

#include <algorithm>
#include <string>

#include "report/chrome_events.h"
#include "report/chrome_names.h"
#include "report/chrome_path.h"
#include "report/chrome_placement.h"
#include "report/chrome_tracks.h"

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

void write_chrome_timeline(const Job& job, const TimelineOptions& options, Sink& sink) {
  const Placements places = place_ranks(job, options.clock_offsets);
  std::int64_t processes = 0;
  for (const RankTimeline& rank : job.ranks)
    processes += std::max<std::int64_t>(1, static_cast<std::int64_t>(rank.devices.size()));

  TraceEvents events(sink, processes + 1);
  events.begin("\"origin_epoch_ns\":" +
               (places.origin ? "\"" + std::to_string(*places.origin) + "\"" : "null"));
  PathTracks path(job);
  std::int64_t process = 0;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const RankTimeline& rank = job.ranks[i];
    const Placement& place = places.ranks[i];
    const bool several_runs = has_several_runs(job, rank.rank);
    const auto open = [&](const DeviceTimeline* device) {
      events.name_process(++process,
                          process_name(rank, device, several_runs, place.on_common_clock));
    };
    if (rank.devices.empty()) open(nullptr);
    RankNames names(rank);
    for (const DeviceTimeline& device : rank.devices) {
      open(&device);
      if (&device == &rank.devices.front() && !options.clip_to_window)
        path.write(i, process, place, names, events);
      write_device_tracks({.rank = rank,
                           .device = device,
                           .place = place,
                           .id = process,
                           .clip_to_window = options.clip_to_window},
                          names, events);
    }
  }
  path.write_arrows(events);
  events.end();
}

}  // namespace commlens
