// Problem: "its compute is longer" means nothing against a rank with other work: stages of a
// pipeline differ for good. Method: the members of the collectives' groups that a rank is in do the
// same work, as long as they communicate about as often; a group over all ranks of a pipelined job
// fails that test. When it is wrong: stages that happen to have as many communications but other
// layers count as peers in a group over the whole job.
#include "match/peers.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace commlens {
namespace {

// Communications of a rank, by whether they are between two.
struct Counts {
  std::int64_t together = 0;
  std::int64_t pairs_up = 0;    // with a higher rank
  std::int64_t pairs_down = 0;  // with a lower one
};

bool about_equal(std::int64_t a, std::int64_t b) { return std::abs(a - b) * 10 <= std::max(a, b); }

bool alike(const Counts& a, const Counts& b) {
  return about_equal(a.together, b.together) && about_equal(a.pairs_up, b.pairs_up) &&
         about_equal(a.pairs_down, b.pairs_down);
}

std::vector<Counts> count(const Job& job) {
  std::vector<Counts> counts(job.ranks.size());
  for (const MatchedOp& op : job.matching.ops) {
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const std::uint32_t rank = job.matching.parts[op.first + i].rank;
      if (!op.pair) {
        ++counts[rank].together;
        continue;
      }
      const std::uint32_t other = job.matching.parts[op.first + 1 - i].rank;
      ++(other > rank ? counts[rank].pairs_up : counts[rank].pairs_down);
    }
  }
  return counts;
}

// Rows that take part in each group's collectives.
std::map<std::int32_t, std::vector<std::uint32_t>> members(const Matching& matching) {
  std::map<std::int32_t, std::vector<std::uint32_t>> rows;
  for (const MatchedOp& op : matching.ops) {
    if (op.pair || !op.agreed) continue;
    std::vector<std::uint32_t>& of_group = rows[op.group];
    if (of_group.size() >= op.count) continue;  // the largest attendance stands for the group
    of_group.clear();
    for (std::uint32_t i = 0; i < op.count; ++i)
      of_group.push_back(matching.parts[op.first + i].rank);
  }
  return rows;
}

}  // namespace

Peers::Peers(const Job& job) : peers_(job.ranks.size()), groups_(job.ranks.size()) {
  const std::vector<Counts> counts = count(job);
  std::vector<std::size_t> largest(job.ranks.size(), 0);
  for (const auto& [group, rows] : members(job.matching)) {
    // Of a very large group some are enough for a median.
    constexpr std::size_t kEnough = 256;
    const std::size_t stride = rows.size() / kEnough + 1;
    for (const std::uint32_t rank : rows) {
      std::size_t found = 0;
      for (std::size_t i = 0; i < rows.size(); i += stride) {
        if (rows[i] == rank || !alike(counts[rank], counts[rows[i]])) continue;
        peers_[rank].push_back(rows[i]);
        ++found;
      }
      if (found <= largest[rank]) continue;
      largest[rank] = found;
      groups_[rank] = job.matching.groups[static_cast<std::size_t>(group)].label;
    }
  }
  for (auto& peers : peers_) {
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  }
}

}  // namespace commlens
