// Whose entry a rank needs before it can leave an operation: what makes waiting waiting.
#pragma once

#include <cstdint>

#include "model/matching.h"

namespace commlens {

enum class Needs : std::uint8_t {
  everyone,  // all members
  root,      // MatchedOp::root
  source,    // of a pair
  nobody,    // leaves when it likes: a leaf of a reduce, a sender, the root of a broadcast
  unknown,   // the operation's kind, its root or its splits are not known
};

// What the part at `part` (0 .. count-1) needs. `zero_split`: some rank of an all-to-all sends or
// gets nothing, so that nobody can be said to need everyone. A large send needs its receiver too;
// how large depends on buffers, so it counts as needing nobody.
Needs needs_of(const MatchedOp& op, std::uint32_t part, bool zero_split);

}  // namespace commlens
