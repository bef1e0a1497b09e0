// Answers questions by replaying the run.
#pragma once

#include "model/question.h"
#include "replay/replay.h"

namespace commlens {

// Throws Error(usage) where the question names an op, group or rank that the run does not have.
Prediction predict(const Graph& graph, const Question& question);

// A prediction with what it can be off, inside of what a time can be: never less than 0 at its
// lower end, nor less at its upper one than at its lower one.
Interval interval_around(Ns predicted, double half);

// What a question changes, for `replay`.
Assumption assumption_of(const Graph& graph, const Question& question);

}  // namespace commlens
