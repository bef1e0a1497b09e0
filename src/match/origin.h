// Where waiting came from: every lateness followed back to a rank's own work, host or links.
#pragma once

#include <cstdint>
#include <vector>

#include "match/arrivals.h"

namespace commlens {

// What finding the waits left behind.
struct Lateness {
  const CommNumbers& numbers;
  const std::vector<Ns>& entries;  // by number: common time
  const std::vector<Arrival>& arrivals;
  const std::vector<std::uint32_t>& arrival_of;  // by number; ~0 where nobody was waited for
};

// Fills `origins`, `unattributed`, `unattributed_sums` and `originated` of `waits`, whose `of` is
// complete. Invariant: originated + unattributed = total. The same for any number of threads.
void trace_origins(const Job& job, const Lateness& lateness, unsigned threads, Waits& waits);

}  // namespace commlens
