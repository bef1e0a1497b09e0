// How long it typically takes on a rank from the end of what something waited for to its start.
#pragma once

#include "match/work_nodes.h"

namespace commlens {

// Needs `edges` (recorded ones), `stretches` and `host_edges`.
Latencies find_latencies(const WorkNodes& nodes, const Work& work);

}  // namespace commlens
