// How many of each witness's calls have an operation on a timeline.
#pragma once

#include <vector>

#include "match/call_sequences.h"
#include "match/joined_choice.h"
#include "model/joined.h"
#include "model/measured.h"
#include "model/witness.h"

namespace commlens {

// `witnesses`, then `measured`. `collectives`, `pairs`: of all parts.
std::vector<JoinedInput> count_joined_calls(const std::vector<Witness>& witnesses,
                                            const std::vector<Measured>& measured,
                                            const CallSequences& calls,
                                            const std::vector<SequenceChoices>& collectives,
                                            const std::vector<PairChoices>& pairs);

}  // namespace commlens
