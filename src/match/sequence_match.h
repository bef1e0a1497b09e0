// Matching by what the framework wrote: identifiers of operations, and counters of groups.
#pragma once

#include <optional>

#include "match/slots.h"

namespace commlens {

// By identifiers of operations. Nothing where they are not there, or do not identify.
std::optional<Slots> place_by_comms_id(const std::vector<Member>& members);

// By the group's counter. Nothing where it is not there, or is not this group's.
std::optional<Slots> place_by_sequence(const std::vector<Member>& members);

}  // namespace commlens
