// Problem: what is known of an operation stands in several places: the text of its call with the
// call, connections with the communicator, the tuner's choices only in the log of the
// communicator's first rank, whichever file that is.
//
// Method: an operation has what its call says, then what its communicator says, then what the tuner
// chose for its kind and size, which is its call's where the timeline has none. Sends and receives
// have connections of their own, one to each peer. The weakest way by which any of it is known is
// that of the row.
#include "match/joined_facts.h"

#include <algorithm>

namespace commlens {
namespace {

void add_weakest(JoinedBy by, Confidence confidence, JoinedFacts& facts) {
  facts.by = facts.by ? std::max(*facts.by, by) : by;
  facts.confidence = facts.confidence ? std::max(*facts.confidence, confidence) : confidence;
}

void add_way(const TunerChoice& choice, JoinedFacts& facts) {
  if (!choice.algorithm.empty()) facts.algorithms.insert(choice.algorithm);
  if (!choice.protocol.empty()) facts.protocols.insert(choice.protocol);
  if (choice.channels > 0) facts.channels.insert(choice.channels);
}

void add_connection(const CommWitness& comm, std::int64_t peer, JoinedFacts& facts) {
  if (const auto ways = comm.pair_ways.find(peer); ways != comm.pair_ways.end())
    facts.ways.insert(ways->second.begin(), ways->second.end());
  if (const auto found = comm.pair_adapters.find(peer); found != comm.pair_adapters.end())
    facts.adapters.insert(found->second.begin(), found->second.end());
}

}  // namespace

JoinedFactReader::JoinedFactReader(const std::vector<Witness>& witnesses,
                                   const CallSequences& calls)
    : calls_(calls) {
  for (std::size_t w = 0; w < witnesses.size(); ++w) {
    for (const auto& [row, choices] : calls.choices[w]) {
      const std::uint64_t id = witnesses[w].log->comms[row].id;
      if (id != 0) first_ranks_.emplace(id, &choices);
    }
  }
}

void JoinedFactReader::add(const SequenceChoice& choice, std::size_t i, const CommOp& op,
                           JoinedFacts& facts) const {
  const CallSequence& sequence = *choice.sequence;
  const std::int32_t call = choice.order.call_of[i];
  // What has no call there is only known to be in that communicator.
  if (call < 0 && sequence.facts == nullptr) return;
  facts.formats.insert(std::string(calls_.formats[sequence.witness]));
  add_weakest(choice.by, choice.confidence, facts);
  if (call >= 0) {
    const auto at = static_cast<std::size_t>(call);
    facts.host_calls.insert(calls_.texts[sequence.texts[at]]);
    if (!sequence.ways.empty()) add_way(calls_.ways[sequence.ways[at]], facts);
  }
  if (sequence.facts == nullptr) return;
  std::optional<std::int64_t> bytes = op.bytes;
  if (!bytes && call >= 0 && sequence.calls[static_cast<std::size_t>(call)].bytes >= 0)
    bytes = sequence.calls[static_cast<std::size_t>(call)].bytes;
  add_comm(sequence, op.op, bytes, facts);
}

bool JoinedFactReader::add(const PairChoice& choice, std::size_t i, JoinedFacts& facts) const {
  const PairSequence& sequence = *choice.sequence;
  const auto& [first, count] = choice.calls_of[i];
  if (count == 0) return false;
  for (std::size_t call = first; call < first + count; ++call) {
    facts.host_calls.insert(calls_.texts[sequence.texts[call]]);
    if (!sequence.ways.empty()) add_way(calls_.ways[sequence.ways[call]], facts);
    if (sequence.facts != nullptr)
      add_connection(*sequence.facts, sequence.calls[call].peer, facts);
  }
  facts.formats.insert(std::string(calls_.formats[sequence.witness]));
  add_weakest(choice.by, choice.confidence, facts);
  return true;
}

void JoinedFactReader::add_comm(const CallSequence& sequence, Op op,
                                std::optional<std::int64_t> bytes, JoinedFacts& facts) const {
  const CommWitness& comm = *sequence.facts;
  if (op == Op::all_to_all || op == Op::gather || op == Op::scatter) {
    for (const auto& [peer, ways] : comm.pair_ways) add_connection(comm, peer, facts);
  } else {
    facts.ways.insert(comm.ways.begin(), comm.ways.end());
    facts.adapters.insert(comm.adapters.begin(), comm.adapters.end());
  }
  const TunerChoices* choices = choices_of(sequence);
  if (choices == nullptr || !bytes) return;
  const auto found = choices->find({op, *bytes});
  if (found == choices->end()) return;
  for (const TunerChoice& choice : found->second) add_way(choice, facts);
}

// What the communicator's first rank wrote of the tuner, in whichever file that stands.
const TunerChoices* JoinedFactReader::choices_of(const CallSequence& sequence) const {
  const std::size_t own = sequence.witness;
  const auto here = calls_.choices[own].find(sequence.facts->row);
  if (here != calls_.choices[own].end()) return &here->second;
  if (sequence.communicator == 0) return nullptr;
  const auto known = first_ranks_.find(sequence.communicator);
  return known == first_ranks_.end() ? nullptr : known->second;
}

}  // namespace commlens
