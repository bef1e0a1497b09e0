// Groups of ranks found by what ends together, for traces that hold no groups.
#pragma once

#include <vector>

#include "match/operation_writer.h"

namespace commlens {

// `parts`: every communication without a group, by rank and then by start.
void match_inferred(const Job& job, const std::vector<Part>& parts, EventReader& reader,
                    Matching& matching, OperationWriter& writer);

}  // namespace commlens
