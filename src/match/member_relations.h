// How the clocks of a group's members relate to one of them, by what is known of their operations.
#pragma once

#include <optional>
#include <vector>

#include "match/shift_search.h"
#include "match/slots.h"

namespace commlens {

// The member that the others are compared with: of which most is placed already, then the one with
// the most events, then the lowest rank.
std::size_t reference_of(const std::vector<Member>& members, const Slots& slots);

// By member; nothing where it cannot be told, and for the reference the identity. `one_clock`: all
// times are known to be by one clock.
std::vector<std::optional<Relation>> relate_members(const std::vector<Member>& members,
                                                    const std::vector<EventsByEnd>& by_end,
                                                    const Slots& slots, std::size_t reference,
                                                    bool one_clock);

}  // namespace commlens
