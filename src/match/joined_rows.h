// What all ranks' choices say, as rows of equal operations.
#pragma once

#include <vector>

#include "match/call_sequences.h"
#include "match/joined_choice.h"
#include "match/joined_parts.h"
#include "model/job.h"
#include "model/joined.h"
#include "model/witness.h"

namespace commlens {

// By group, op, size. `collectives`, `pairs`: by row of those of `parts`.
std::vector<JoinedRow> gather_joined_rows(const Job& job, const std::vector<Witness>& witnesses,
                                          const CallSequences& calls, const JoinedParts& parts,
                                          const std::vector<SequenceChoices>& collectives,
                                          const std::vector<PairChoices>& pairs);

}  // namespace commlens
