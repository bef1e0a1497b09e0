// A rank's compute against its peers'.
#pragma once

#include "model/job.h"

namespace commlens {

// How many times as long its kernels would take at the pace of its peers: for each kernel, the
// median over the other ranks of its mean length. Kernels that no other rank runs stay. `row` is a
// row of Job::ranks.
double pace_of_peers(const Job& job, std::size_t row);

// The compute of the median of the other ranks, as a part of this one's; at most 1.
double load_of_others(const Job& job, std::size_t row);

}  // namespace commlens
