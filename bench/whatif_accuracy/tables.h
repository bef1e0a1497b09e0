// The scores as tables in Markdown, and what of the requirements they miss.
#pragma once

#include <string>
#include <vector>

#include "score.h"

namespace commlens::whatif_accuracy {

std::string path_table(const std::vector<PathScore>& scores);
std::string what_if_table(const std::vector<WhatIfScore>& scores);

// One line for each case that is far off.
std::string far_off(const std::vector<PathScore>& scores);
std::string far_off(const std::vector<WhatIfScore>& scores);

// Requirements: with sync records the composition is within 1 % of the window, without within 5 %
// or said to be doubtful, which it may be, too, where clocks differ; predictions are off by 3 % in
// the mean and 8 % at most; nine truths in ten are inside the interval. One sentence for each that
// is missed.
inline constexpr double kPathWithin = 0.01;
inline constexpr double kPathWithinInferred = 0.05;
inline constexpr double kMeanError = 0.03;
inline constexpr double kWorstError = 0.08;
inline constexpr double kInside = 0.9;
std::vector<std::string> missed(const std::vector<PathScore>& paths,
                                const std::vector<WhatIfScore>& answers);

}  // namespace commlens::whatif_accuracy
