// Problem: recordings of one rank, and groups of one name, share calls, and each call is to count
// once.
//
// Method: a call is known by where it stands: by the log's own record of it where there is one,
// which all that share it have; else by its sequence.
#include "match/joined_inputs.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace commlens {
namespace {

// Of one witness: whose calls, and which of them.
using JoinedCalls = std::set<std::pair<const void*, std::int32_t>>;

void add_calls(const SequenceChoice& choice, std::vector<JoinedCalls>& joined) {
  if (choice.sequence == nullptr) return;
  const CallSequence& sequence = *choice.sequence;
  const void* const calls =
      sequence.facts != nullptr ? static_cast<const void*>(sequence.facts) : &sequence;
  for (const std::int32_t call : choice.order.call_of) {
    if (call >= 0) joined[sequence.witness].insert({calls, call});
  }
}

void add_calls(const PairChoice& choice, std::vector<JoinedCalls>& joined) {
  if (choice.sequence == nullptr) return;
  const PairSequence& sequence = *choice.sequence;
  const void* const calls =
      sequence.facts != nullptr ? static_cast<const void*>(&sequence.facts->pairs) : &sequence;
  for (const auto& [first, count] : choice.calls_of) {
    for (std::size_t call = first; call < first + count; ++call)
      joined[sequence.witness].insert({calls, static_cast<std::int32_t>(call)});
  }
}

}  // namespace

std::vector<JoinedInput> count_joined_calls(const std::vector<Witness>& witnesses,
                                            const std::vector<Measured>& measured,
                                            const CallSequences& calls,
                                            const std::vector<SequenceChoices>& collectives,
                                            const std::vector<PairChoices>& pairs) {
  std::vector<JoinedCalls> joined(calls.refused.size());
  for (const SequenceChoices& choices : collectives) {
    for (const auto& [format, choice] : choices) add_calls(choice, joined);
  }
  for (const PairChoices& choices : pairs) {
    for (const auto& [format, choice] : choices) add_calls(choice, joined);
  }
  std::vector<JoinedInput> inputs;
  for (std::size_t w = 0; w < joined.size(); ++w) {
    inputs.push_back(
        {.path = w < witnesses.size() ? witnesses[w].path : measured[w - witnesses.size()].path,
         .format = std::string(calls.formats[w]),
         .calls = calls.calls[w],
         .joined = static_cast<std::int64_t>(joined[w].size()),
         .reason = calls.refused[w]});
  }
  return inputs;
}

}  // namespace commlens
