// Whether a rank's kernels take longer than the same kernels elsewhere, or are more.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

// By row: how many times as long as on the median of the other ranks the same kernels take
// (weighted by time). Nothing where a rank has no kernels in common with enough others.
std::vector<std::optional<double>> kernel_paces(const Job& job);

// Whether the rank ran more kernels of some names than the median of these others, so many that
// they take more than 1 % of its kernels' time. Rows.
bool has_more_kernels(const Job& job, std::uint32_t rank, const std::vector<std::uint32_t>& others);

}  // namespace commlens
