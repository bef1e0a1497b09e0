#include "match/place_events.h"

#include "match/alignment.h"
#include "match/sequence_match.h"
#include "match/step_match.h"

namespace commlens {

Slots place_events(const std::vector<Member>& members) {
  if (std::optional<Slots> slots = place_by_comms_id(members)) return std::move(*slots);
  if (std::optional<Slots> slots = place_by_sequence(members)) return std::move(*slots);
  Slots slots = place_by_steps(members);
  if (!slots.complete()) place_by_alignment(members, MatchedBy::alignment, slots);
  return slots;
}

}  // namespace commlens
