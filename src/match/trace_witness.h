// A timeline as a witness of a hang: how far its rank got in each group.
#pragma once

#include "model/job.h"
#include "model/witness.h"

namespace commlens {

// `rank`: classified, with its columns. What the witness says is in Witness::trace.
Witness witness_of_timeline(RankTimeline& rank);

}  // namespace commlens
