// Two ranks of one communicator on one GPU, by what they write when they are set up.
#pragma once

#include <string>
#include <vector>

#include "model/witness.h"

namespace commlens {

// Communicators that came up although two ranks name the same host and GPU, in a sentence each:
// NCCL refuses that on one machine, so that several seem to bear one name.
std::vector<std::string> shared_host_names(const std::vector<Witness>& witnesses);

}  // namespace commlens
