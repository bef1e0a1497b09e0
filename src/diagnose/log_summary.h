// What logs say of a job, whether anything is wrong with it or not.
#pragma once

#include <vector>

#include "model/result.h"
#include "model/witness.h"

namespace commlens {

// Tables "hosts", "communicators", "init_phases", "transports", "pairs", "tuning", "calls",
// "settings" (docs/json.md, `logs`). Empty where no witness is a log.
std::vector<Table> summarize_logs(const std::vector<Witness>& witnesses);

}  // namespace commlens
