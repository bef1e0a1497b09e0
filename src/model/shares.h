// An integer amount split in proportion, without losing a nanosecond.
#pragma once

#include <vector>

#include "base/id.h"

namespace commlens {

// Parts of `amount` (>= 0) in the proportion of `weights` (>= 0), rounded by largest remainder:
// they sum to it exactly. All zero where the weights are.
std::vector<Ns> split_by_weight(Ns amount, const std::vector<Ns>& weights);

}  // namespace commlens
