// Which calls of which witness are those of each part of the timelines.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "match/call_sequences.h"
#include "match/joined_parts.h"
#include "match/pair_choice.h"
#include "match/sequence_choice.h"
#include "model/job.h"

namespace commlens {

// Of one part, by the witnesses' format: of those that speak of its rank.
using SequenceChoices = std::map<std::string_view, SequenceChoice>;
using PairChoices = std::map<std::string_view, PairChoice>;

// By row of JoinedParts::collectives.
std::vector<SequenceChoices> choose_of_collectives(const Job& job, const JoinedParts& parts,
                                                   const CallSequences& calls);

// By row of JoinedParts::pairs. `collectives`: what was chosen for these, and stays.
std::vector<PairChoices> choose_of_pairs(const Job& job, const JoinedParts& parts,
                                         const std::vector<SequenceChoices>& collectives,
                                         const CallSequences& calls);

}  // namespace commlens
