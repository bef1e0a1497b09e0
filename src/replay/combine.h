// Several assumptions at once, and how much one can matter.
#pragma once

#include "replay/replay.h"

namespace commlens {

// Nothing changed, with a factor for each communication.
Assumption unchanged(const Graph& graph);

// Both. Of two factors for one length the smaller counts: two ways to shorten it do not add up.
Assumption combined(const Assumption& a, const Assumption& b);

// No more than this can be gained: what it takes off the activities on the critical path. Lengths
// only shrink along the path, and the path stays a chain of dependencies; where the assumption
// drops dependencies, that does not hold, and the whole window is the bound.
Ns most_gain(const Graph& graph, const Assumption& assumption);

}  // namespace commlens
