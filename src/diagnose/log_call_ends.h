// Who did not come, by the calls alone: ranks that wrote fewer calls of a communicator than others,
// and went on writing other lines.
#pragma once

#include <optional>

#include "diagnose/log_view.h"
#include "model/diagnosis.h"

namespace commlens {

// Of jobs of which it is known that they hang. Nothing where the lines do not carry it.
std::optional<DiagnosisFinding> find_behind_by_calls(const LogView& view);

}  // namespace commlens
