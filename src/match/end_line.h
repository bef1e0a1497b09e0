// How one rank's times relate to another's, by the ends of operations that they share.
//
// Ranks leave a collective together, within microseconds: the difference of their ends is the
// difference of their clocks. A wrong pairing of a periodic sequence shows the jitter of the steps
// instead. So the scatter of the differences around a line says which pairing is right.
#pragma once

#include <vector>

#include "base/id.h"

namespace commlens {

// What is added to a rank's own times: offset + slope * (own - at).
struct EndLine {
  Ns at = 0;
  Ns offset = 0;
  double slope = 0;  // bounded by kMostDrift

  Ns to_reference(Ns own) const;
  Ns from_reference(Ns reference) const;
};

// Clocks drift apart by no more than this: 200 microseconds a second.
inline constexpr double kMostDrift = 200e-6;

struct EndDifference {
  Ns own = 0;         // instant, by the rank's own clock
  Ns difference = 0;  // the reference's end of the same operation - own
};

struct EndFit {
  EndLine line;
  Ns spread = 0;  // median distance from the line
};

// How far one lies from the line.
Ns distance(const EndLine& line, const EndDifference& of);

// By medians, so that some wrong pairs do no harm. `differences` must not be empty; their order is
// that of time.
EndFit fit_line(const std::vector<EndDifference>& differences);
// The scatter around a line that is given.
Ns spread_around(const EndLine& line, const std::vector<EndDifference>& differences);

// Middle value; of an even number the lower. Reorders.
Ns median_in_place(std::vector<Ns>& values);

}  // namespace commlens
