// What could be changed about a run, in the order of what it would gain.
#pragma once

#include "model/finding.h"
#include "replay/graph.h"

namespace commlens {

// The job's critical path must be known. Findings are the same for any number of threads.
Findings find_advice(const Graph& graph, unsigned threads);

}  // namespace commlens
