// Which sends and receives that a witness wrote are a group's: single ones, those of one grouped
// kernel, and exchanges that libraries make of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "match/call_sequences.h"
#include "model/job.h"
#include "model/joined.h"

namespace commlens {

// A communication on a timeline as the calls that made it.
struct PairOp {
  Op op = Op::send;
  Ns start = 0;
  std::int64_t seq = kUnknown;  // of a single call
  std::vector<PairCall> calls;  // in order; one of all_to_all for an exchange; empty: not known
};

struct PairChoice {
  const PairSequence* sequence = nullptr;  // null: none, and `reason` says why
  // By operation: its calls [first, first + count) of the sequence; count 0: none.
  std::vector<std::pair<std::size_t, std::size_t>> calls_of;
  JoinedBy by = JoinedBy::order;
  Confidence confidence = Confidence::undecidable;
  std::string reason;
};

// What is known of the communicator from elsewhere.
struct KnownCommunicator {
  std::uint64_t id = 0;                // 0: not known
  const CommWitness* facts = nullptr;  // null: not known
  JoinedBy by = JoinedBy::communicator;
};

// `ops`: the rank's of that group, in order. `candidates`: of one kind of witness.
PairChoice choose_pairs(const GroupIdentity& group, std::int64_t rank,
                        const std::vector<PairOp>& ops, bool clock_known,
                        const KnownCommunicator& known,
                        const std::vector<const PairSequence*>& candidates);

}  // namespace commlens
