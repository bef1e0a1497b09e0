// Recordings in memory through the stages of a study, as far as the dependency graph.
#pragma once

#include <utility>
#include <vector>

#include "match/classify.h"
#include "match/clocks.h"
#include "match/collectives.h"
#include "match/dependencies.h"
#include "match/own_time.h"
#include "match/runs.h"
#include "match/windows.h"
#include "model/job.h"
#include "replay/common_time.h"

namespace commlens {

inline Job staged_job(std::vector<Recording> recordings) {
  std::vector<RankTimeline> ranks;
  for (Recording& recording : recordings) {
    RankTimeline& rank = ranks.emplace_back();
    rank.recording = std::move(recording);
    classify(rank, {});
    find_step_windows(rank);
    find_own_times(rank);
    find_dependencies(rank);
    rank.ready = true;
  }
  Job job = arrange_runs(std::move(ranks), {});
  if (has_several_ranks(job)) {
    job.matching = match_collectives(job);
    job.clocks = relate_clocks(job);
  }
  place_on_common_time(job);
  return job;
}

}  // namespace commlens
