// Where on the host the longest parts of the critical path were launched.
#pragma once

#include "model/job.h"

namespace commlens {

// Fills `contexts` of the job's path for the longest segment of each kernel, communication and
// stretch of host time, by reading the inputs concerned once more. Inputs that hold more than
// kEasilyReadAgain events are left alone unless `all`. Trouble with reading again is no trouble.
void find_path_contexts(Job& job, bool all, unsigned threads);

inline constexpr std::int64_t kEasilyReadAgain = 50'000;

}  // namespace commlens
