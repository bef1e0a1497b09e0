// How two ranks' sequences of one group lie beside each other, where nothing but the operations and
// their times is known.
#pragma once

#include <optional>

#include "match/time_match.h"

namespace commlens {

struct Relation {
  EndLine line;      // from the member's times to the reference's
  Ns spread = 0;     // how far ends of one operation lie from it
  bool sure = true;  // no other shift fits as well
};

// Nothing where no shift fits at all.
std::optional<Relation> search_shift(const EventsByEnd& reference, const EventsByEnd& own);

// Ends of one operation are looked for so far from where they are expected.
Ns tolerance_of(Ns spread);
// The same while the spread is not known yet: `gap` is the usual time between operations.
Ns first_tolerance(const EventsByEnd& own);

}  // namespace commlens
