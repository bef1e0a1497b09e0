// What logs say of a job, whether anything is wrong with it or not.
#pragma once

#include <string>
#include <vector>

#include "model/result.h"
#include "model/witness.h"

namespace commlens {

// Tables "hosts", "communicators", "init_phases", "transports", "pairs", "tuning", "calls",
// "settings" (docs/json.md, `logs`). Empty where no witness is a log.
std::vector<Table> summarize_logs(const std::vector<Witness>& witnesses);

// Communicators that some rank began to set up and of which no line says that it finished, in a
// sentence each: where a job hangs, it hangs there.
std::vector<std::string> unfinished_setups(const std::vector<Witness>& witnesses);

// Warnings of NCCL's that no verdict tells: which it does not know, and which all ranks survived.
std::vector<std::string> open_warnings(const std::vector<Witness>& witnesses);

}  // namespace commlens
