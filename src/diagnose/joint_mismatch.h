// Calls of different ranks that should be one operation and are not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/joint_calls.h"

namespace commlens {

// What the ranks that call one operation disagree about.
struct CallMismatch {
  DiagnosisKind kind = DiagnosisKind::op_mismatch;
  std::int64_t number = 0;
  std::string field;               // "op", "input_sizes", "output_sizes", "dtype"
  std::string expected;            // what most have; empty: nobody has a majority
  std::vector<DifferingRank> odd;  // the others; empty on a tie
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> sides;  // value, ranks; most first
  bool sure = false;  // members who were not seen could not change who the majority is
};

// The first operation of the group about which its ranks disagree, and which some of them have not
// completed: at most one entry for each kind, the graver first. Where the odd ranks made the same
// calls in another order, the kind is order_mismatch, or concurrent_use where several threads made
// them.
std::vector<CallMismatch> first_mismatch(const JointGroup& group);
// The first of those that all who called them completed: they hold nobody, and are no findings.
std::vector<CallMismatch> first_completed_mismatch(const JointGroup& group);
// "at all_reduce 5 of group 0 ranks disagree (input_sizes): ranks 0,2: [[8]]; rank 1: [[9]], since
// ..."
std::string mismatch_words(const JointGroup& group, const CallMismatch& mismatch);

}  // namespace commlens
