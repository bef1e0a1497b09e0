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

constexpr std::uint32_t kNoHost = ~std::uint32_t{0};

// By row of job.ranks: equal numbers, equal host names.
std::vector<std::uint32_t> number_hosts(const Job& job) {
  std::map<std::string_view, std::uint32_t> numbers;
  std::vector<std::uint32_t> host_of;
  for (const RankTimeline& rank : job.ranks) {
    const auto number =
        numbers.try_emplace(rank.host, static_cast<std::uint32_t>(numbers.size())).first->second;
    host_of.push_back(rank.host.empty() ? kNoHost : number);
  }
  return host_of;
}

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

// Nothing where hosts are not known: links between hosts are slower than those inside, and without
// hosts there is no telling which are alike. `hosts` is memory to work in.
std::optional<Kind> kind_of(const Job& job, const std::vector<std::uint32_t>& host_of,
                            const MatchedOp& op, std::vector<std::uint32_t>& hosts) {
  std::int64_t bytes = -1;
  hosts.clear();
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const Part& part = job.matching.parts[op.first + i];
    bytes = std::max(bytes, comm_of(job, part).bytes.value_or(-1));
    const std::uint32_t host = host_of[part.rank];
    if (host == kNoHost) return std::nullopt;
    if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  if (op.op == Op::all_to_all) bytes = 0;  // sizes vary: compared by time alone
  return Kind{op.op, bytes, op.count, hosts.size()};
}

struct Link {
  LinkGroup group;
  std::vector<Ns> paces;  // by kind of operation, in thousandths of the usual time
};

// The link of one more group over its ranks.
Link& link_over(std::map<Ranks, Link>& links, const Matching& matching, std::int32_t group) {
  Ranks ranks = matching.groups[static_cast<std::size_t>(group)].ranks;
  std::sort(ranks.begin(), ranks.end());
  Link& link = links[ranks];
  link.group.ranks = std::move(ranks);
  link.group.groups.push_back(group);
  return link;
}

}  // namespace

std::vector<LinkGroup> link_groups(const Job& job) {
  const Matching& matching = job.matching;
  const std::vector<std::uint32_t> host_of = number_hosts(job);
  std::map<Ranks, Link> links;
  std::vector<Link*> link_of(matching.groups.size());
  std::map<Kind, std::map<Link*, std::vector<Ns>>> transfers;
  std::vector<std::uint32_t> hosts;
  for (const MatchedOp& op : matching.ops) {
    if (!op.whole || !op.agreed) continue;
    const auto kind = kind_of(job, host_of, op, hosts);
    if (!kind) continue;
    Link*& link = link_of[static_cast<std::size_t>(op.group)];
    if (link == nullptr) link = &link_over(links, matching, op.group);
    transfers[*kind][link].push_back(transfer_of(job, op));
  }
  for (auto& [kind, by_link] : transfers) {
    if (by_link.size() < 2) continue;
    std::vector<std::pair<Link*, Ns>> typical;
    std::vector<Ns> times_of_all;
    for (auto& [link, times] : by_link) {
      typical.emplace_back(link, median_of(std::move(times)));
      times_of_all.push_back(typical.back().second);
    }
    const Ns usual = median_of(std::move(times_of_all));
    if (usual <= 0) continue;
    for (const auto& [link, time] : typical) link->paces.push_back(1000 * time / usual);
  }
  std::vector<LinkGroup> found;
  for (auto& [ranks, link] : links) {
    LinkGroup& group = link.group;
    group.comparable = !link.paces.empty();
    if (group.comparable) group.pace = static_cast<double>(median_of(std::move(link.paces))) / 1000;
    found.push_back(std::move(group));
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
