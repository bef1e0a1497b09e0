#include "diagnose/order.h"

#include <algorithm>
#include <set>

namespace commlens {
namespace {

using Ranks = std::vector<std::int64_t>;

Ranks culprits_of(const DiagnosisFinding& finding) {
  std::set<std::int64_t> ranks(finding.missing_ranks.begin(), finding.missing_ranks.end());
  for (const DifferingRank& row : finding.differing) ranks.insert(row.rank);
  return {ranks.begin(), ranks.end()};
}

bool holds(const Ranks& ranks, std::int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

bool all_among(const Ranks& some, const Ranks& all) {
  return std::all_of(some.begin(), some.end(),
                     [&all](std::int64_t rank) { return holds(all, rank); });
}

void merge_into(Ranks& into, const Ranks& more) {
  std::set<std::int64_t> all(into.begin(), into.end());
  all.insert(more.begin(), more.end());
  into.assign(all.begin(), all.end());
}

// What is seen in the calls themselves stands before what is seen only in how far devices got, and
// that before what is not decided, and that before what a moment's counters say.
enum class Weight : std::uint8_t { direct, device, open, last, momentary };

Weight weight_of(const DiagnosisFinding& finding) {
  if (finding.momentary) return Weight::momentary;
  const bool open = finding.confidence == Confidence::undecidable;
  switch (finding.kind) {
    case DiagnosisKind::state_mismatch: return Weight::device;
    case DiagnosisKind::misconfiguration:
    case DiagnosisKind::missing_rank: return open ? Weight::open : Weight::direct;
    case DiagnosisKind::slow_init: return Weight::open;
    case DiagnosisKind::timeout: return Weight::last;
    default: return Weight::direct;
  }
}

// What is known to have begun earlier is nearer to the cause; then the better-known kind.
bool stands_before(const DiagnosisFinding& a, const DiagnosisFinding& b) {
  if (weight_of(a) != weight_of(b)) return weight_of(a) < weight_of(b);
  if (a.since_ns != b.since_ns && a.since_ns > 0 && b.since_ns > 0) return a.since_ns < b.since_ns;
  if (a.kind != b.kind) return a.kind < b.kind;
  return a.group < b.group;
}

// Two witnesses that tell the same.
bool is_same(const DiagnosisFinding& a, const DiagnosisFinding& b) {
  return a.kind == b.kind && a.group == b.group && a.seq == b.seq &&
         culprits_of(a) == culprits_of(b) && a.message == b.message;
}

bool has_job_ranks(const DiagnosisFinding& finding) {
  return !finding.ranks_of_group || !finding.group_ranks.empty();
}

// Whether `finding` only shows what `cause` did to others: its culprits, or those who wait where it
// has none, are the ones that `cause` names or holds.
bool follows_from(const DiagnosisFinding& finding, const DiagnosisFinding& cause) {
  if (weight_of(finding) == Weight::direct) return false;
  if (!has_job_ranks(finding) || !has_job_ranks(cause) || cause.momentary) return false;
  // A group stands in one operation: another one is of another job.
  if (finding.kind == cause.kind && finding.group == cause.group && finding.seq != cause.seq)
    return false;
  const Ranks culprits = culprits_of(finding);
  Ranks reach = culprits_of(cause);
  if (finding.momentary && reach.empty()) return false;  // it may name whom the cause does not
  merge_into(reach, cause.held);
  merge_into(reach, cause.consequences);
  const Ranks& concerned = culprits.empty() ? finding.held : culprits;
  return !concerned.empty() && all_among(concerned, reach);
}

// Ranks that `finding` misses and `cause` holds are missing because of it.
bool takes_missing(const DiagnosisFinding& cause, DiagnosisFinding& finding) {
  if (finding.kind != DiagnosisKind::missing_rank || finding.missing_ranks.empty()) return false;
  if (finding.momentary || cause.momentary || !has_job_ranks(cause)) return false;
  const Ranks theirs = culprits_of(cause);
  // Both hold each other's: neither is the cause.
  if (!theirs.empty() && all_among(theirs, finding.held)) return false;
  const auto is_held = [&](std::int64_t rank) {
    return holds(cause.held, rank) && !holds(theirs, rank);
  };
  std::erase_if(finding.missing_ranks, is_held);
  return finding.missing_ranks.empty();
}

void absorb(DiagnosisFinding& cause, const DiagnosisFinding& finding) {
  const Ranks culprits = culprits_of(cause);
  Ranks held = finding.held;
  merge_into(held, finding.consequences);
  std::erase_if(held, [&culprits](std::int64_t rank) { return holds(culprits, rank); });
  merge_into(cause.consequences, held);
  cause.evidence.push_back((finding.momentary ? "beside it: " : "follows from it: ") +
                           finding.message);
}

}  // namespace

std::vector<DiagnosisFinding> order_findings(std::vector<DiagnosisFinding> findings) {
  std::stable_sort(findings.begin(), findings.end(), stands_before);
  std::vector<DiagnosisFinding> kept;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    DiagnosisFinding& finding = findings[i];
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const DiagnosisFinding& earlier) {
      return is_same(earlier, finding);
    });
    if (known) continue;
    auto cause = std::find_if(kept.begin(), kept.end(), [&](const DiagnosisFinding& earlier) {
      return follows_from(finding, earlier);
    });
    for (auto other = kept.begin(); cause == kept.end() && other != kept.end(); ++other) {
      if (takes_missing(*other, finding)) cause = other;
    }
    if (cause != kept.end()) {
      absorb(*cause, finding);
    } else {
      kept.push_back(std::move(finding));
    }
  }
  for (DiagnosisFinding& finding : kept) {
    finding.message += finding.reservation;
    finding.reservation.clear();
  }
  return kept;
}

}  // namespace commlens
