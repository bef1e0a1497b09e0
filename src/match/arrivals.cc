#include "match/arrivals.h"

#include <algorithm>

namespace commlens {

Arrival last_arrival(const Job& job, const CommNumbers& numbers, const std::vector<Ns>& entries,
                     const std::vector<std::uint32_t>& candidates) {
  Arrival arrival;
  arrival.at = entries[candidates.front()];
  for (const std::uint32_t number : candidates) arrival.at = std::max(arrival.at, entries[number]);
  for (const std::uint32_t number : candidates) {
    if (entries[number] == arrival.at) arrival.last.push_back(number);
  }
  // Whether another could have been later: within one clock's domain the order is known.
  const std::uint32_t culprit = numbers.part(arrival.last.front()).rank;
  for (const std::uint32_t number : candidates) {
    const std::uint32_t other = numbers.part(number).rank;
    if (job.clocks.domain[other] == job.clocks.domain[culprit]) continue;
    const Ns margin = arrival.at - entries[number];
    const auto spread = job.clocks.spread(culprit, other);
    arrival.estimated = arrival.estimated && spread;
    arrival.likely = arrival.likely && spread && margin > *spread;
    arrival.certain =
        arrival.certain && margin + job.clocks.error(culprit, other, arrival.at).lower > 0;
  }
  return arrival;
}

}  // namespace commlens
