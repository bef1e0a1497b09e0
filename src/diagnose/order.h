// Root causes before what follows from them.
#pragma once

#include <vector>

#include "model/diagnosis.h"

namespace commlens {

// Puts findings in the order in which they should be read: what began first and explains others
// first. A rank that one finding misses and that is itself held by another goes from
// `missing_ranks` to `consequences` of that other one; a finding that loses its last root cause in
// this way is no finding of its own, and becomes a line of evidence of the one that explains it.
std::vector<DiagnosisFinding> order_findings(std::vector<DiagnosisFinding> findings);

}  // namespace commlens
