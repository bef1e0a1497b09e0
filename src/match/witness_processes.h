// Which process of a log wrote the timeline of which rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/job.h"
#include "model/witness.h"
#include "model/witness_log.h"

namespace commlens {

struct ProcessOfRank {
  std::optional<LogProcessId> process;
  bool by_id = false;     // the timeline names the same process id; else by the rank alone
  bool doubtful = false;  // there is none, though some have its id or its rank
  std::string reason;     // why there is none
};

// `log` has LogFacts. By row of Job::ranks. No process is that of two ranks: one that could be is
// nobody's.
std::vector<ProcessOfRank> find_processes(const Job& job, const Witness& log);

}  // namespace commlens
