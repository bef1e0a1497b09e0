// What witnesses say of the operations of one row, gathered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "match/call_sequences.h"
#include "match/pair_choice.h"
#include "match/sequence_choice.h"
#include "model/joined.h"
#include "model/operation.h"
#include "model/witness.h"

namespace commlens {

struct JoinedFacts {
  std::set<std::string> host_calls;
  std::set<std::string> algorithms;
  std::set<std::string> protocols;
  std::set<std::int64_t> channels;
  std::set<std::string> ways;
  std::set<std::string> adapters;
  std::set<std::string> formats;
  std::optional<JoinedBy> by;            // the weakest
  std::optional<Confidence> confidence;  // the weakest
};

class JoinedFactReader {
 public:
  // Both are kept.
  JoinedFactReader(const std::vector<Witness>& witnesses, const CallSequences& calls);

  // Adds what a choice says of the i-th operation of its part, which is `op`.
  void add(const SequenceChoice& choice, std::size_t i, const CommOp& op, JoinedFacts& facts) const;
  // Whether the operation has a call.
  bool add(const PairChoice& choice, std::size_t i, JoinedFacts& facts) const;

 private:
  // `bytes`: of the operation, where that is known.
  void add_comm(const CallSequence& sequence, Op op, std::optional<std::int64_t> bytes,
                JoinedFacts& facts) const;
  const TunerChoices* choices_of(const CallSequence& sequence) const;

  const CallSequences& calls_;
  std::map<std::uint64_t, const TunerChoices*> first_ranks_;  // by commId
};

}  // namespace commlens
