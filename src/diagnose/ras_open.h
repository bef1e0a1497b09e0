// What RAS output leaves open.
#pragma once

#include <string>
#include <vector>

#include "model/witness.h"

namespace commlens {

// Sentences: what the table says and the details do not, counters that went on between two outputs,
// and, where nothing was found, outputs that end early or hold no data.
std::vector<std::string> open_of_ras(const std::vector<Witness>& witnesses, bool anything_found);

}  // namespace commlens
