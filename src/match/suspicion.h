// Whether waiting that came from one suspect is enough for a verdict, and how sure it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "match/step_table.h"
#include "model/stragglers.h"

namespace commlens {

// One suspect, step by step (positions of the StepTable).
struct Suspicion {
  std::vector<WaitSums> originated;  // waiting of others that came from it
  std::vector<Ns> usual;             // as much comes from its like in a healthy job
  std::vector<bool> seen;            // its own time shows the cause in that step
  std::vector<bool> plain;           // and so plainly that little waiting makes it a burst
};

struct Verdict {
  Confidence confidence = Confidence::undecidable;
  bool burst = false;
  std::vector<std::size_t> steps;  // in which it shows
  Ns originated = 0;               // exposed, over all steps
  Ns originated_in_steps = 0;      // exposed, in those in which it shows
  double share = 0;                // of the GPU time of all ranks
  double recurrence = 0;
};

// Nothing where it is not worth a word.
std::optional<Verdict> judge(const Suspicion& suspicion, const StepTable& table);

}  // namespace commlens
