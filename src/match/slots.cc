#include "match/slots.h"

#include <algorithm>

namespace commlens {

Slots::Slots(const std::vector<Member>& members) {
  for (const Member& member : members) {
    of.emplace_back(member.events.size(), kNoSlot);
    doubtful.emplace_back(member.events.size(), 0);
  }
}

std::int32_t Slots::add(Ns order, MatchedBy by, bool sure) {
  slots.push_back({order, by, sure});
  return static_cast<std::int32_t>(slots.size() - 1);
}

bool Slots::complete() const {
  return std::all_of(of.begin(), of.end(), [](const std::vector<std::int32_t>& events) {
    return std::find(events.begin(), events.end(), kNoSlot) == events.end();
  });
}

}  // namespace commlens
