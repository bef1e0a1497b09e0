// Problem: a slow cable shows as longer transfers of everyone who uses it. Method: operations of
// one kind (same op, size, number of ranks and of hosts) are compared between the groups that
// perform them: the group whose transfers take clearly longer than those of its sisters has the
// slow link. When it is wrong: a single group has no sisters; then nothing is said.
#include "match/slow_links.h"

#include <algorithm>
#include <tuple>

#include "match/comm_numbers.h"
#include "match/step_table.h"

namespace commlens {
namespace {

using Kind = std::tuple<Op, std::int64_t, std::uint32_t, std::size_t>;
using Ranks = std::vector<std::int64_t>;

// Time from the last entry to the end, on the rank where it is shortest.
Ns transfer_of(const Job& job, const MatchedOp& op) {
  Ns least = std::numeric_limits<Ns>::max();
  for (std::uint32_t i = op.pair ? 1 : 0; i < op.count; ++i) {
    const Part& part = job.matching.parts[op.first + i];
    least = std::min(least, comm_of(job, part).time.length() -
                                job.waits.of[part.rank][part.device][part.op].wait);
  }
  return least;
}

// Links between hosts are slower than those inside: without hosts there is no telling which are
// alike.
bool hosts_known(const Job& job, const MatchedOp& op) {
  for (std::uint32_t i = 0; i < op.count; ++i) {
    if (job.ranks[job.matching.parts[op.first + i].rank].host.empty()) return false;
  }
  return true;
}

Kind kind_of(const Job& job, const MatchedOp& op) {
  std::int64_t bytes = -1;
  std::set<std::string_view> hosts;
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const Part& part = job.matching.parts[op.first + i];
    bytes = std::max(bytes, comm_of(job, part).bytes.value_or(-1));
    hosts.insert(job.ranks[part.rank].host);
  }
  if (op.op == Op::all_to_all) bytes = 0;  // sizes vary: compared by time alone
  return {op.op, bytes, op.count, hosts.size()};
}

}  // namespace

std::vector<LinkGroup> link_groups(const Job& job) {
  const Matching& matching = job.matching;
  std::map<Kind, std::map<Ranks, std::vector<Ns>>> transfers;
  std::map<Ranks, LinkGroup> links;
  for (const MatchedOp& op : matching.ops) {
    if (!op.whole || !op.agreed || !hosts_known(job, op)) continue;
    Ranks ranks = matching.groups[static_cast<std::size_t>(op.group)].ranks;
    std::sort(ranks.begin(), ranks.end());
    LinkGroup& link = links[ranks];
    if (std::find(link.groups.begin(), link.groups.end(), op.group) == link.groups.end())
      link.groups.push_back(op.group);
    transfers[kind_of(job, op)][ranks].push_back(transfer_of(job, op));
  }
  std::map<Ranks, std::vector<Ns>> paces;  // in thousandths
  for (auto& [kind, by_ranks] : transfers) {
    if (by_ranks.size() < 2) continue;
    std::vector<Ns> typical;
    for (const auto& [ranks, times] : by_ranks) typical.push_back(median_of(times));
    const Ns usual = median_of(typical);
    if (usual <= 0) continue;
    for (const auto& [ranks, times] : by_ranks)
      paces[ranks].push_back(1000 * median_of(times) / usual);
  }
  std::vector<LinkGroup> found;
  for (auto& [ranks, link] : links) {
    link.ranks = ranks;
    if (const auto pace = paces.find(ranks); pace != paces.end()) {
      link.comparable = true;
      link.pace = static_cast<double>(median_of(pace->second)) / 1000;
    }
    found.push_back(std::move(link));
  }
  return found;
}

std::optional<std::int64_t> slow_rank(const std::vector<LinkGroup>& links) {
  std::map<std::int64_t, int> slow_groups;
  std::map<std::int64_t, int> usual_groups;
  int slow = 0;
  for (const LinkGroup& link : links) {
    if (!link.comparable) continue;
    const bool is_slow = link.pace >= kSlowPace;
    slow += is_slow ? 1 : 0;
    for (const std::int64_t rank : link.ranks) ++(is_slow ? slow_groups : usual_groups)[rank];
  }
  if (slow < 2) return std::nullopt;
  std::optional<std::int64_t> only;
  for (const auto& [rank, count] : slow_groups) {
    if (count != slow || usual_groups.contains(rank)) continue;
    if (only) return std::nullopt;  // two ranks that are always together
    only = rank;
  }
  return only;
}

}  // namespace commlens
