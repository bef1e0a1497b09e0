// Why one rank waited: the trails of its longest waits.
#pragma once

#include <vector>

#include "model/job.h"
#include "model/trail.h"

namespace commlens {

// Of the rank at `row`, its `most` longest exposed waits, the longest first.
std::vector<Trail> trails_of(const Job& job, std::size_t row, std::size_t most);

}  // namespace commlens
