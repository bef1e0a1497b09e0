// The host threads that launched a rank's GPU work, cut where they waited for the GPU.
#pragma once

#include "match/event_sources.h"
#include "match/work_nodes.h"

namespace commlens {

// Fills `stretches`, `host_edges` and the column `stretch` of `work`.
void find_host_stretches(const RankTimeline& rank, const WorkNodes& nodes,
                         const EventSources& events, Work& work);

}  // namespace commlens
