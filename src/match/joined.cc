// Problem: a timeline knows which kernel ran when, a log which algorithm the tuner chose and which
// way the data goes, a dump which line of the program called. Nothing but the order of calls, or a
// number, says what of one is what of the other.
//
// Method: each rank's collectives of each group are laid beside the calls that a witness has of
// that rank; where the timeline names no group, those of each stream, taken apart where several
// communicators use it and what each of them calls tells whose they are. What a rank's choice
// contradicts in another's, or in another group's, is taken back. Then sends and receives, which
// go by what is left of these choices. Then equal operations of a group are one row: what all of
// them are told by their calls and communicators, and how surely.
#include "match/joined.h"

#include "match/call_sequences.h"
#include "match/joined_choice.h"
#include "match/joined_conflicts.h"
#include "match/joined_inputs.h"
#include "match/joined_parts.h"
#include "match/joined_rows.h"
#include "match/joined_split.h"

namespace commlens {

Joined join_witnesses(const Job& job, const std::vector<Witness>& witnesses,
                      const std::vector<Measured>& measured) {
  const CallSequences calls = collect_calls(job, witnesses, measured);
  JoinedParts parts = find_joined_parts(job);
  split_shared_streams(job, calls, parts);
  const std::vector<SequenceChoices> collectives =
      without_conflicts(job, parts, choose_of_collectives(job, parts, calls));
  const std::vector<PairChoices> pairs =
      without_conflicts(parts, collectives, choose_of_pairs(job, parts, collectives, calls));

  Joined joined;
  joined.asked = true;
  joined.rows = gather_joined_rows(job, witnesses, calls, parts, collectives, pairs);
  joined.inputs = count_joined_calls(witnesses, measured, calls, collectives, pairs);
  for (const JoinedRow& row : joined.rows) {
    joined.operations += row.count;
    joined.without_witness += row.count - row.witnessed;
  }
  for (const JoinedInput& input : joined.inputs) {
    joined.calls += input.calls;
    joined.calls_without_operation += input.calls - input.joined;
  }
  return joined;
}

}  // namespace commlens
