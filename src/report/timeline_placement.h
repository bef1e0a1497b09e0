// Where each rank's times lie on the one timeline.
//
// Times count from the earliest moment of all ranks whose recordings tell the time of day. A
// recording that does not has no place among them: it starts at 0, and its process says so.
#pragma once

#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

// Sums and differences of times that hostile inputs can drive beyond 64 bits: then the nearest that
// fits.
Ns bounded_sum(Ns a, Ns b);
Ns bounded_difference(Ns a, Ns b);

struct Placement {
  Ns base = 0;    // to the common clock
  Ns origin = 0;  // of the timeline, on that clock
  bool on_common_clock = true;
  // Nanoseconds on the timeline, >= 0 for whatever the rank holds.
  Ns at(Ns time) const { return bounded_difference(bounded_sum(time, base), origin); }
};

struct Placements {
  std::vector<Placement> ranks;  // by index into Job::ranks
  std::optional<Ns> origin;      // since the epoch; none where no rank tells the time of day
};

// `offsets` by index into Job::ranks, added to the ranks' times; missing ones are 0.
Placements place_ranks(const Job& job, const std::vector<Ns>& offsets);

}  // namespace commlens
