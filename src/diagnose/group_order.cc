// Ranks that stand in two groups' operations in opposite order.
//
// Ranks 0-2 call a and then b, rank 3 b and then a; all have called both, so that nobody is
// missing. The states tell: on ranks 0-2 a has begun and b waits behind it, on rank 3 b has begun
// and a waits behind it. Each side waits in its first operation for the other side. Without timing
// nothing is `started`, and two calls in another order alone are no fault: those of two groups may
// go side by side.
#include <algorithm>
#include <map>
#include <set>

#include "diagnose/joint_hangs.h"
#include "diagnose/joint_mismatch.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

// A group in the operation in which it stands; all members have called it.
using GroupAt = std::pair<const JointGroup*, std::int64_t>;
// By who has begun the first and not the second.
using GroupOrders = std::map<std::pair<std::size_t, std::size_t>, Ranks>;

std::vector<GroupAt> standing_groups(const JointCalls& job) {
  std::vector<GroupAt> found;
  for (const JointGroup& group : job.groups) {
    const std::vector<std::int64_t> pending = group.pending();
    if (pending.empty() || group.numbers_mixed || !first_mismatch(group).empty()) continue;
    if (!group.ranks_at(pending.front(), Standing::not_called).empty()) continue;
    if (shows_hang(job, group, pending.front())) found.emplace_back(&group, pending.front());
  }
  return found;
}

GroupOrders find_orders(const JointCalls& job, const std::vector<GroupAt>& groups) {
  std::map<const JointGroup*, std::size_t> index;
  for (std::size_t i = 0; i < groups.size(); ++i) index.emplace(groups[i].first, i);
  GroupOrders orders;
  for (const auto& [rank, calls] : job.pending) {
    std::vector<std::size_t> begun;  // in the order of the calls
    for (const PendingCall& call : calls) {
      const auto at = index.find(call.group);
      if (at == index.end() || call.seen.call->p2p ||
          call.seen.call->number != groups[at->second].second)
        continue;
      if (call.seen.call->state == CallState::started) begun.push_back(at->second);
      if (call.seen.call->state != CallState::scheduled) continue;
      for (const std::size_t first : begun) {
        Ranks& ranks = orders[{first, at->second}];
        if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
      }
    }
  }
  return orders;
}

std::size_t count_common(const JointGroup& a, const JointGroup& b) {
  return static_cast<std::size_t>(
      std::count_if(a.ranks.begin(), a.ranks.end(),
                    [&b](const auto& row) { return b.ranks.contains(row.first); }));
}

DiagnosisFinding order_finding(const JointCalls& job, const GroupAt& usual, const GroupAt& other,
                               const Ranks& most, const Ranks& fewer) {
  const std::string first = operation_words(*usual.first, usual.second);
  const std::string second = operation_words(*other.first, other.second);
  DiagnosisFinding finding = usual.first->finding(DiagnosisKind::order_mismatch, usual.second);
  const std::int64_t since = other.first->since(other.second);
  if (since > 0) finding.since_ns = std::min(finding.since_ns, since);
  // Those who were not seen could all be on the other side.
  const bool majority =
      most.size() > fewer.size() && 2 * most.size() > count_common(*usual.first, *other.first);
  if (majority) {
    for (const std::int64_t rank : fewer)
      finding.differing.push_back({rank, "order", second + " first", first + " first"});
  }
  finding.held = merged_ranks(most, fewer);
  finding.consequences =
      majority ? job.held_by(fewer) : merged_ranks(finding.held, job.held_by(finding.held));
  finding.message = rank_words(most) + " called " + first + " before " + second + ", and " +
                    rank_words(fewer) +
                    " the other way round: each side has begun its first one, and waits in it for "
                    "the other side" +
                    since_words(finding.since_ns);
  if (!majority)
    finding.message += "; nobody has a majority, so that it cannot be said who is wrong";
  const auto add = [&](const GroupAt& at, const Ranks& ranks, std::size_t count) {
    const auto end = static_cast<std::ptrdiff_t>(std::min(count, ranks.size()));
    for (std::string& line :
         evidence_lines(*at.first, {ranks.begin(), ranks.begin() + end}, at.second))
      finding.evidence.push_back(std::move(line));
  };
  for (const GroupAt& at : {other, usual}) add(at, fewer, 4);
  for (const GroupAt& at : {usual, other}) add(at, most, 1);
  finding.confidence = majority ? Confidence::likely : Confidence::undecidable;
  finding.advice = "make all ranks call these groups in the same order";
  return finding;
}

// Each rank in one finding at most: the earliest.
std::vector<DiagnosisFinding> find_in_job(const JointCalls& job) {
  const std::vector<GroupAt> groups = standing_groups(job);
  const GroupOrders orders = find_orders(job, groups);
  std::vector<DiagnosisFinding> found;
  for (const auto& [pair, ranks] : orders) {
    const auto reverse = orders.find({pair.second, pair.first});
    if (pair.first > pair.second || reverse == orders.end()) continue;
    const GroupAt& a = groups[pair.first];
    const GroupAt& b = groups[pair.second];
    found.push_back(ranks.size() >= reverse->second.size()
                        ? order_finding(job, a, b, ranks, reverse->second)
                        : order_finding(job, b, a, reverse->second, ranks));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.since_ns < b.since_ns; });
  std::set<std::int64_t> told;
  std::erase_if(found, [&told](const DiagnosisFinding& finding) {
    const bool known = std::any_of(finding.held.begin(), finding.held.end(),
                                   [&told](std::int64_t rank) { return told.contains(rank); });
    told.insert(finding.held.begin(), finding.held.end());
    return known;
  });
  return found;
}

std::vector<DiagnosisFinding> find_group_orders(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const JointCalls& job : join_calls(witnesses)) {
    for (DiagnosisFinding& finding : find_in_job(job)) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Verdict kGroupOrder;
constinit const Verdict kGroupOrder{
    .name = "group_order",
    .summary = "Do ranks stand in operations of two groups in opposite order?",
    .find = find_group_orders,
};

}  // namespace commlens
