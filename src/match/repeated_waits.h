// Compute that waits for communications of a kind whenever it could be seen.
#pragma once

#include "match/work_nodes.h"

namespace commlens {

// Adds what infer_waits could not see: nothing where waits were recorded. Needs its edges.
void infer_repeated_waits(const RankTimeline& rank, const WorkNodes& nodes, Work& work);

}  // namespace commlens
