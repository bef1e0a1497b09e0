// What the ranks of a job did together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/job.h"
#include "model/question.h"
#include "study/prepare.h"
#include "study/study.h"

namespace commlens {

// Which operations are one, how their clocks relate, who waited for whom, who is behind it.
void relate_ranks(Job& job, unsigned threads);
// What the job's time consists of: the graph of what waited for what, and the longest way through
// it, and what is to be said of that. The answer to the question, if any is asked.
std::optional<Prediction> follow_path(Job& job, const WorkRoom& room, unsigned threads,
                                      const StudyOptions& options);
// The trails of the rank that --explain names. Throws Error(usage) where it is not there.
void explain_chosen_rank(Job& job, std::optional<std::int64_t> chosen);
// By row: what brings a rank's time of day to the reference's clock, as far as that is known. Of a
// clock that drifts, what does so at its first instant.
std::vector<Ns> clock_offsets(const Job& job);

}  // namespace commlens
