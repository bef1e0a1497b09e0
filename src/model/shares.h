// An integer amount split in proportion, without losing a nanosecond.
#pragma once

#include <span>
#include <vector>

#include "base/id.h"

namespace commlens {

// Parts of `amount` (>= 0) in the proportion of `weights` (>= 0), rounded by largest remainder:
// they sum to it exactly. All zero where the weights are. `parts` has as many elements as
// `weights`.
void split_by_weight(Ns amount, std::span<const Ns> weights, std::span<Ns> parts);
std::vector<Ns> split_by_weight(Ns amount, const std::vector<Ns>& weights);

}  // namespace commlens
