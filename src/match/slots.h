// Which events of a group's ranks are one operation: a slot an operation.
#pragma once

#include <cstdint>
#include <vector>

#include "match/comm_sequence.h"

namespace commlens {

inline constexpr std::int32_t kNoSlot = -1;

struct Slot {
  Ns order = 0;  // slots of a group are in this order: counter, or time of the reference
  MatchedBy by = MatchedBy::alignment;
  bool sure = true;
};

struct Slots {
  std::vector<Slot> slots;
  std::vector<std::vector<std::int32_t>> of;  // by member, by event: its slot, or kNoSlot
  std::vector<std::vector<char>> doubtful;    // as `of`: this event's place is not sure

  explicit Slots(const std::vector<Member>& members);
  std::int32_t add(Ns order, MatchedBy by, bool sure = true);
  void place(std::size_t member, std::size_t event, std::int32_t slot) { of[member][event] = slot; }
  bool complete() const;  // every event has a slot
};

}  // namespace commlens
