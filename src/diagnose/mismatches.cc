// Ranks that call different things where they should call the same: another operation, other
// sizes, other types, or the same calls in another order. NCCL does not compare; the job hangs, or
// goes on with wrong data.
#include <algorithm>

#include "diagnose/joint_mismatch.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

std::string_view advice_for(DiagnosisKind kind) {
  switch (kind) {
    case DiagnosisKind::op_mismatch:
      return "look for a branch that only some ranks take (a condition on the rank or on the data) "
             "before this call";
    case DiagnosisKind::size_mismatch:
      return "look at how the tensor's size comes about on the odd rank: a last batch, uneven "
             "shards, padding, or parameters that are used on some ranks only";
    case DiagnosisKind::dtype_mismatch:
      return "cast to one type before the call, and see whether autocast or a checkpoint differs "
             "between ranks";
    case DiagnosisKind::concurrent_use:
      return "let one thread make all calls of a group, or give each thread a group of its own";
    default:
      return "make all ranks call in one order: iterate over lists, not over sets or dictionaries "
             "that are ordered differently on each rank";
  }
}

std::string message_for(const JointGroup& group, const CallMismatch& mismatch) {
  std::string message = mismatch_words(group, mismatch);
  if (mismatch.odd.empty())
    message += "; nobody has a majority, so that it cannot be said who is wrong";
  return message;
}

// The ranks that stand in this operation or behind it.
std::vector<std::int64_t> held_in(const JointGroup& group, const CallMismatch& mismatch) {
  std::vector<std::int64_t> held;
  for (const auto& [value, ranks] : mismatch.sides)
    held.insert(held.end(), ranks.begin(), ranks.end());
  for (const auto& [rank, row] : group.ranks) {
    for (const auto& [number, calls] : row.calls) {
      if (number >= mismatch.number && row.at(number) == Standing::waiting) held.push_back(rank);
    }
  }
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  return held;
}

DiagnosisFinding finding_for(const JointCalls& job, const JointGroup& group,
                             const CallMismatch& mismatch) {
  DiagnosisFinding finding = group.finding(mismatch.kind, mismatch.number);
  finding.differing = mismatch.odd;
  finding.message = message_for(group, mismatch);
  finding.advice = advice_for(mismatch.kind);
  finding.confidence = mismatch.odd.empty() ? Confidence::undecidable
                       : mismatch.sure      ? Confidence::certain
                                            : Confidence::likely;
  // In flight nowhere: what it did to those who called it is not known.
  const bool any_waiting = !group.ranks_at(mismatch.number, Standing::waiting).empty();
  if (!any_waiting && finding.confidence == Confidence::certain)
    finding.confidence = Confidence::likely;
  std::vector<std::int64_t> odd;
  for (const DifferingRank& row : mismatch.odd) odd.push_back(row.rank);
  finding.held = held_in(group, mismatch);
  finding.consequences = job.held_by(odd.empty() ? finding.held : odd);
  if (odd.empty())
    finding.consequences.insert(finding.consequences.end(), finding.held.begin(),
                                finding.held.end());
  std::sort(finding.consequences.begin(), finding.consequences.end());
  for (std::size_t i = mismatch.sides.size(); i-- > 0;) {
    const std::vector<std::int64_t>& ranks = mismatch.sides[i].second;
    const std::size_t shown = i == 0 ? 1 : std::min<std::size_t>(ranks.size(), 4);
    for (const std::string& line :
         evidence_lines(group, {ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown)},
                        mismatch.number))
      finding.evidence.push_back(line);
  }
  return finding;
}

std::vector<DiagnosisFinding> find_mismatches(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (const JointGroup& group : job.groups) {
      for (const CallMismatch& mismatch : first_mismatch(group))
        findings.push_back(finding_for(job, group, mismatch));
    }
  }
  return findings;
}

}  // namespace

extern const Verdict kMismatches;
constinit const Verdict kMismatches{
    .name = "mismatches",
    .summary = "Do ranks call the same operations, sizes and types in the same order?",
    .find = find_mismatches,
};

}  // namespace commlens
