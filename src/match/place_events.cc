#include "match/place_events.h"

#include "match/alignment.h"
#include "match/sequence_match.h"
#include "match/step_match.h"

namespace commlens {

Slots place_events(const std::vector<Member>& members) {
  std::optional<Slots> slots = place_by_comms_id(members);
  if (!slots) slots = place_by_sequence(members);
  if (!slots) slots = place_by_steps(members);
  // A kernel whose launch was not recorded has no number; its end tells.
  if (!slots->complete()) place_by_alignment(members, MatchedBy::alignment, *slots);
  return std::move(*slots);
}

}  // namespace commlens
