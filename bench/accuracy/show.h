// One job for a human: what was wrong with it, and what the analysis says.
#pragma once

#include <string>

#include "grid.h"

namespace commlens::accuracy {

std::string show(const CaseKey& key);

}  // namespace commlens::accuracy
