// Takes back what was chosen for one part and contradicts what was chosen for another.
#pragma once

#include <vector>

#include "match/joined_choice.h"
#include "match/joined_parts.h"
#include "model/job.h"

namespace commlens {

// By row of JoinedParts::collectives.
std::vector<SequenceChoices> without_conflicts(const Job& job, const JoinedParts& parts,
                                               std::vector<SequenceChoices> collectives);

// By row of JoinedParts::pairs. `collectives`: without conflicts.
std::vector<PairChoices> without_conflicts(const JoinedParts& parts,
                                           const std::vector<SequenceChoices>& collectives,
                                           std::vector<PairChoices> pairs);

}  // namespace commlens
