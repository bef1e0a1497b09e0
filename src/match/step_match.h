// Matching by training steps: the n-th operation of a group in a step is the same on all ranks that
// count alike in it.
#pragma once

#include "match/slots.h"

namespace commlens {

// Places what the steps decide, and leaves the rest: steps that are cut at a window's edge, or in
// which a rank lost events, and operations outside of all steps.
Slots place_by_steps(const std::vector<Member>& members);

}  // namespace commlens
