// What users' options mean to the stages.
#pragma once

#include <string>
#include <vector>

#include "match/runs.h"
#include "match/windows.h"
#include "model/kernel_name.h"
#include "model/rates.h"
#include "study/study.h"

namespace commlens {

unsigned threads_for(const StudyOptions& options);
RankFrom rank_source(const StudyOptions& options);
WindowOptions window_options(const StudyOptions& options);
// These read the files that are named. Throw Error(usage) or Error(input).
std::vector<NameRule> read_rules(const std::string& path);
RateOptions rate_options(const StudyOptions& options);

// Keeps the ranks that --ranks names. Throws Error(usage) where one is not there.
void keep_chosen_ranks(Job& job, const std::vector<std::int64_t>& chosen);
// Every step asked for must be there: a figure over fewer would bear the wrong name. Throws
// Error(usage).
void check_steps(const Job& job, const StudyOptions& options);

}  // namespace commlens
