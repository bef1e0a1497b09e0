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

// How far from where they are expected ends of one operation are looked for. What lies beyond
// `sure` may be of another.
struct Tolerance {
  Ns scatter = 0;  // what the scatter explains
  Ns sure = 0;
  Ns most = 0;
};
Tolerance tolerance_of(Ns spread, const EventsByEnd& own);
// While the spread is not known yet.
Ns first_tolerance(const EventsByEnd& own);

}  // namespace commlens
