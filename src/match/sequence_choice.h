// Which of the call sequences of a rank is that of one of its groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "match/call_order.h"
#include "match/call_sequences.h"
#include "model/job.h"
#include "model/joined.h"

namespace commlens {

struct SequenceChoice {
  const CallSequence* sequence = nullptr;  // null: none, and `reason` says why
  CallOrder order;                         // by operation
  JoinedBy by = JoinedBy::order;
  Confidence confidence = Confidence::undecidable;
  std::string reason;
};

// Whether a communicator's or group's name, members, size and this rank's place in it, as far as
// they are known, are those of the group.
bool can_be_of(const GroupIdentity& group, std::int64_t rank, const std::string& name,
               const std::vector<int>& members, std::int64_t size, std::int64_t place);

// `ops`: the rank's collectives of that group, in order. `candidates`: of one kind of witness, none
// empty. `rank`: global.
SequenceChoice choose_sequence(const GroupIdentity& group, std::int64_t rank,
                               const std::vector<CommEvent>& ops, bool clock_known,
                               const std::vector<const CallSequence*>& candidates);

// The same for one stream's collectives whose group is not known at all: by their order alone, and
// so at most likely. One communicator's calls must be nearly all of them, and no other's nearly so.
SequenceChoice choose_by_order_alone(const std::vector<CommEvent>& ops, bool clock_known,
                                     const std::vector<const CallSequence*>& candidates);

}  // namespace commlens
