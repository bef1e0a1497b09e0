// Many runs' scores as one table, and whether they are what the project requires of itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "score.h"

namespace commlens::accuracy {

// Markdown: what was run, a table by kind of job, a table by kind of fault, the requirements.
// Without `with_times`, the same runs give the same text on every machine.
std::string scoreboard(std::span<const RunScore> runs, bool with_times);

// `safe`: that nothing wrong is said; `all`: also that what must be found is.
enum class Demand : std::uint8_t { safe, all };
// One sentence for each requirement that is not met.
std::vector<std::string> failures(std::span<const RunScore> runs, Demand demand);

// One line for each run that named a wrong culprit or missed one.
std::string faulty_runs(std::span<const RunScore> runs);

}  // namespace commlens::accuracy
