// Whether a rank's kernels take longer than the same kernels elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

// By row: how many times as long as on the median of the other ranks the same kernels take
// (weighted by time). Nothing where a rank has no kernels in common with enough others.
std::vector<std::optional<double>> kernel_paces(const Job& job);

}  // namespace commlens
