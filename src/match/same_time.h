// Whether a file can speak of the time that a timeline shows.
#pragma once

#include <string>

#include "model/job.h"
#include "model/written_span.h"

namespace commlens {

// Between the clocks, or between what happened and its line, of files that say both in one zone.
inline constexpr Ns kOneZone = Ns{3600} * 1'000'000'000;
// Of dates on the wall: the zone is not said, and lies up to 14 hours from Greenwich's.
inline constexpr Ns kAnyZone = 15 * kOneZone;

// The lines of a file that speak of communications.
struct SpokenLines {
  std::int64_t first = 0;  // 0: not known which
  std::int64_t last = 0;
  bool calls = false;  // of the communications themselves; else of how they were set up
};

// Why they cannot be of the communications of `rank`; empty: they can be, or one side does not say
// when. Lines between two dates were written between these; of the others nothing is known.
std::string why_other_time(const WrittenSpan& written, SpokenLines lines, const RankTimeline& rank,
                           Ns slack);

}  // namespace commlens
