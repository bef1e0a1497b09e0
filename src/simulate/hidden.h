// When nobody can tell who caused a fault, however good the analysis.
#pragma once

#include <string>

#include "simulate/faults.h"

namespace commlens::simulate {

// Why a scenario's traces do not show that fault's culprit, in a few words; empty where they do.
// Only of faults that have a cause.
std::string hidden_by(const Scenario& scenario, const SimulatedJob& job, const Fault& fault);

}  // namespace commlens::simulate
