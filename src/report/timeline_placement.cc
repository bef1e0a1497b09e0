#include "report/timeline_placement.h"

#include <algorithm>
#include <limits>

namespace commlens {
namespace {

std::optional<Ns> earliest(const RankTimeline& rank) {
  std::optional<Ns> first;
  const auto take = [&first](Ns time) { first = first ? std::min(*first, time) : time; };
  for (const DeviceTimeline& device : rank.devices) {
    if (!device.starts.empty()) take(device.extent.start);
    for (const auto& [number, window] : device.steps) take(window.start);
  }
  return first;
}

}  // namespace

Ns bounded_sum(Ns a, Ns b) {
  Ns sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<Ns>::max() : std::numeric_limits<Ns>::min();
}

Ns bounded_difference(Ns a, Ns b) {
  Ns difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return a > b ? std::numeric_limits<Ns>::max() : std::numeric_limits<Ns>::min();
}

Placements place_ranks(const Job& job, const std::vector<Ns>& offsets) {
  Placements places;
  places.ranks.resize(job.ranks.size());
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Recording& recording = job.ranks[i].recording;
    const std::optional<Ns> first = earliest(job.ranks[i]);
    Placement& place = places.ranks[i];
    place.on_common_clock = recording.clock == ClockBase::epoch;
    if (!place.on_common_clock) {
      place.origin = first.value_or(0);
      continue;
    }
    place.base = bounded_sum(recording.clock_base, i < offsets.size() ? offsets[i] : 0);
    if (!first) continue;
    const Ns time = bounded_sum(*first, place.base);
    places.origin = places.origin ? std::min(*places.origin, time) : time;
  }
  for (Placement& place : places.ranks) {
    if (place.on_common_clock) place.origin = places.origin.value_or(0);
  }
  return places;
}

}  // namespace commlens
