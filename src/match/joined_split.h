// Streams that several communicators use, taken apart.
#pragma once

#include "match/call_sequences.h"
#include "match/joined_parts.h"
#include "model/job.h"

namespace commlens {

// Of collectives without a group: a part for each communicator, where one assignment is possible.
// Where it is not, CollectivePart::shared says why.
void split_shared_streams(const Job& job, const CallSequences& calls, JoinedParts& parts);

}  // namespace commlens
