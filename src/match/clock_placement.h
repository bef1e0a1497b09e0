// Where on one common time line each clock's times roughly are.
#pragma once

#include <vector>

#include "match/clock_estimate.h"

namespace commlens {

struct ClockPlacement {
  std::vector<EstimatedLine> lines;  // by domain: to the reference's clock, domain 0
  std::vector<Ns> at_origin;         // by domain: what its line adds at `origin`
  Ns origin = 0;  // the latest first start of the ranks that any operation relates to the reference
  Ns end = 0;     // the last time of any evidence; >= origin
};

// Domains of one tree of the estimate keep their differences. Trees are put beside each other by
// the ends of one operation that they have in common, which is enough to say at which time of one
// clock an instant of another's was.
ClockPlacement place_clocks(const Job& job, const ClockDomains& domains,
                            const ClockEvidence& evidence, const ClockEstimate& estimate);

}  // namespace commlens
