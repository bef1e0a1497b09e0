// Answers questions by replaying the run.
#pragma once

#include "model/question.h"
#include "replay/replay.h"

namespace commlens {

// Throws Error(usage) where the question names an op, group or rank that the run does not have.
Prediction predict(const Graph& graph, const Question& question);

// What a question changes, for `replay`.
Assumption assumption_of(const Graph& graph, const Question& question);

}  // namespace commlens
