// What tells one call of a communication from the others of its form.
//
// Metadata repeats: a training step asks for the same few operations again and again, and each
// distinct combination is kept once. These values differ with every call, so they stand apart, only
// for the rows that have any: most recorders write them on few rows or none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/blocks.h"

namespace commlens {

struct CallKey {
  std::uint64_t comms_id = 0;     // the framework's identifier of the operation; 0: none
  std::int64_t seq = -1;          // as the framework counts the group's operations; -1: none
  std::int32_t rank = -1;         // in the group: the root, or the peer, or the own; -1: none
  std::int32_t source = -1;       // global rank, of point-to-point; -1: none
  std::int32_t destination = -1;  // the same
  bool zero_split = false;        // some entry of its split sizes is zero, or the list is cut
  friend bool operator==(const CallKey&, const CallKey&) = default;
};

// By row of another table, ascending: 36 bytes a call (key 32, row 4).
class Calls {
 public:
  // Nothing is kept for a key that says nothing. Rows come in ascending order.
  void add(std::size_t row, const CallKey& key) {
    if (key == CallKey{}) return;
    rows_.push_back(static_cast<std::uint32_t>(row));
    keys_.push_back(key);
  }
  // Nothing to be known is the key that says nothing. O(log n).
  CallKey find(std::size_t row) const {
    const auto at = std::lower_bound(rows_.begin(), rows_.end(), row);
    return at == rows_.end() || *at != row ? CallKey{}
                                           : keys_[static_cast<std::size_t>(at - rows_.begin())];
  }

  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  std::size_t row(std::size_t i) const { return rows_[i]; }
  const CallKey& key(std::size_t i) const { return keys_[i]; }
  friend bool operator==(const Calls&, const Calls&) = default;

 private:
  Blocks<std::uint32_t> rows_;
  Blocks<CallKey> keys_;
};

}  // namespace commlens
