// Which events of a group's ranks are one operation, by the strongest means that they support.
#pragma once

#include "match/slots.h"

namespace commlens {

Slots place_events(const std::vector<Member>& members);

}  // namespace commlens
