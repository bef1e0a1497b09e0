// Which activities had to wait for work on another stream.
#pragma once

#include "match/event_sources.h"
#include "match/work_nodes.h"

namespace commlens {

// Fills `recorded_waits` and `edges` with what the recording says: events, CUDA graphs. Kernels
// behind the first of a graph lose their launch: their order is the graph's.
void find_recorded_waits(const WorkNodes& nodes, const EventSources& events, Work& work);

// Adds what only times and the order of launches tell; nothing where waits were recorded. Needs
// `latencies`.
void infer_waits(const WorkNodes& nodes, Work& work);

}  // namespace commlens
