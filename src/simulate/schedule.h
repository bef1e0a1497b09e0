// The order of work of one rank through all its steps: forward, backward, optimizer; 1F1B where
// there is a pipeline.
#pragma once

#include "simulate/program.h"

namespace commlens::simulate {

// Appends the whole program of a rank to the plan.
void write_schedule(Plan& plan, SharedParts& shared, int rank);

}  // namespace commlens::simulate
