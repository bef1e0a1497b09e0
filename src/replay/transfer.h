// The part of a communication in which it moves data.
#pragma once

#include "replay/graph.h"

namespace commlens {

// How long a communication of a rank (row) moves data: from its last arrival on.
Ns transfer_length(const Graph& graph, std::uint32_t rank, const CommNode& comm);

}  // namespace commlens
