// One entry of a Flight Recorder dump, as a call.
#pragma once

#include <optional>

#include "ingest/tree.h"
#include "model/witness.h"

namespace commlens {

// The group that an entry names, found in `witness.groups` or added there; nothing where it names
// none.
std::optional<std::uint32_t> flight_recorder_group(const Tree& tree, NodeId entry,
                                                   Witness& witness);

// Nothing for an entry that does not say what it did in which group, or whose end was cut off.
std::optional<WitnessCall> flight_recorder_call(const Tree& tree, NodeId entry, Witness& witness);

}  // namespace commlens
