// Estimated differences of clocks, from when operations end.
#pragma once

#include <cstdint>
#include <vector>

#include "match/clock_evidence.h"
#include "model/clocks.h"

namespace commlens {

// common = own + offset + rate * (own - anchor)
struct EstimatedLine {
  Ns anchor = 0;
  Ns offset = 0;
  double rate = 0;
  Ns common(Ns own) const {
    return own + offset + static_cast<Ns>(rate * static_cast<double>(own - anchor));
  }
};

// When a difference was observed, in the domain's own time; outside of that its spread grows.
struct ObservedTime {
  Ns first = 0;
  Ns last = 0;
  double drift_error = 0;  // how far off the rate may be
};

struct ClockEstimate {
  std::vector<EstimatedLine> lines;    // by domain: to the clock of its tree's root
  std::vector<ClockLink> links;        // by domain
  std::vector<ObservedTime> observed;  // by domain: of its link
  std::vector<std::uint32_t> root;     // by domain
  std::vector<Ns> step;  // by domain: by how much its link jumps at once; 0: it does not
};

// Drift of one clock against another is at most this.
inline constexpr double kLargestDrift = 400e-6;

// A difference of two clocks, from samples of it.
struct ClockSample {
  Ns at = 0;            // of the clock that the line is for
  Ns ahead = 0;         // what is to be added to it, by the first exits of those on each clock
  Ns middle_ahead = 0;  // the same by the middles between their first and last exits
};
struct ClockFit {
  EstimatedLine line;
  Ns spread = 0;
  ObservedTime observed;
  Ns step = 0;  // the largest jump that neither scatter nor drift explains; 0: none
};
ClockFit fit_samples(std::vector<ClockSample> samples);

ClockEstimate estimate_offsets(const ClockEvidence& evidence, std::size_t domains);

}  // namespace commlens
