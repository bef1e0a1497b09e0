// Whose entry a rank needs before it can leave an operation: what makes one rank wait for another,
// and what bounds the difference of their clocks (docs/waiting.md, docs/clocks.md).
#pragma once

#include <cstdint>

#include "model/matching.h"

namespace commlens {

enum class Needs : std::uint8_t {
  everyone,  // all members, of the operation
  root,      // the part `MatchedOp::root`
  source,    // of a pair: the first part
  nobody,    // it can leave by itself: a broadcast's root, a reduce's leaf, a sender
  unknown,   // it may need somebody, but who is not known
};

// What part `part` (0 .. count - 1) of an operation needs. `zero_split`: some member sends or gets
// nothing (or the operation moves no bytes at all), so that data alone does not hold anybody back.
// A small send leaves before its receiver comes, a large one does not: which is which depends on
// buffers that no trace tells, so a sender needs nobody.
Needs needs_of(const MatchedOp& op, std::uint32_t part, bool zero_split);

// Whether nobody leaves such an operation before everybody has entered it, so that all leave it at
// about the same time.
bool synchronises_everyone(const MatchedOp& op, bool zero_split);

}  // namespace commlens
