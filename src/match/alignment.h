// Matching by the sequences themselves: what ends together, once the shift is known.
#pragma once

#include "match/slots.h"

namespace commlens {

// Gives the events that have no slot yet one. `slots` may hold what steps decided: it tells how the
// clocks relate.
void place_by_alignment(const std::vector<Member>& members, MatchedBy by, Slots& slots);

// The same for members whose times are known to be by one clock.
void place_on_one_clock(const std::vector<Member>& members, MatchedBy by, Slots& slots);

}  // namespace commlens
