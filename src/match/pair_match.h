// Sends with their receives: the n-th of a source and a destination.
#pragma once

#include <vector>

#include "match/operation_writer.h"

namespace commlens {

// `parts`: every point-to-point communication, by rank and then by start. A kernel that sends and
// receives takes part in several pairs.
void match_pairs(const Job& job, const std::vector<Part>& parts, EventReader& reader,
                 Matching& matching, OperationWriter& writer);

}  // namespace commlens
