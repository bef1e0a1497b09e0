// Which activities of a recording communicate, and what each of them does: by evidence, the
// strongest first.
#pragma once

#include <vector>

#include "model/job.h"
#include "model/kernel_name.h"

namespace commlens {

// Fills `classes`, `groups`, `peers`, `kernel_times`, `devices` (activities, compute, memory, comm,
// extent), `evidence` and notes from the rank's recording. `rules` are the user's.
// Without `keep_columns`, the columns that nothing reads afterwards are let go.
void classify(RankTimeline& rank, const std::vector<NameRule>& rules, bool keep_columns = true);

}  // namespace commlens
