// What these witnesses leave open, whether or not anything was found.
#pragma once

#include <string>
#include <vector>

#include "model/diagnosis.h"
#include "model/witness.h"

namespace commlens {

// Sentences: whose dumps are absent; and, where nothing was found, what was under way, since calls
// in flight look alike whether they hang or not.
std::vector<std::string> find_remarks(const std::vector<Witness>& witnesses, bool anything_found);

// What would prove a hang, where ranks may be missing or ahead and nothing proves that: dumps of a
// running job, written one after the other, look alike.
std::vector<std::string> unproven_hangs(const std::vector<Witness>& witnesses,
                                        const std::vector<DiagnosisFinding>& findings);

}  // namespace commlens
