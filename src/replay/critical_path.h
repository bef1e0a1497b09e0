// Finds the critical path of a job.
#pragma once

#include "model/path.h"
#include "replay/graph.h"

namespace commlens {

CriticalPath find_critical_path(const Graph& graph);

}  // namespace commlens
