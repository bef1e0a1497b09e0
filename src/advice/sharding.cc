// A rank that exchanges more bytes than its peers: everybody is done only when it is.
#include <algorithm>
#include <map>

#include "advice/candidate.h"
#include "replay/pace.h"

namespace commlens {
namespace {

bool exchanges(Op op) {
  return op == Op::all_to_all || op == Op::moe_dispatch || op == Op::moe_combine;
}

// By matched operation: what the median of its members' bytes is of the largest's.
std::map<const MatchedOp*, double> evened(const Scene& scene) {
  std::map<const MatchedOp*, std::vector<std::int64_t>> bytes;
  scene.each_communication(
      [&](std::uint32_t, std::size_t, const CommOp& op, const MatchedOp* matched) {
        if (matched != nullptr && exchanges(op.op) && op.bytes) bytes[matched].push_back(*op.bytes);
      });
  std::map<const MatchedOp*, double> parts;
  for (auto& [op, list] : bytes) {
    std::sort(list.begin(), list.end());
    if (list.back() > 0)
      parts[op] = static_cast<double>(list[list.size() / 2]) / static_cast<double>(list.back());
  }
  return parts;
}

// All of them at once: of an exchange that the largest holds up, no second one is told apart.
std::vector<Candidate> find_sharding(const Scene& scene) {
  const Job& job = scene.job();
  std::vector<const Straggler*> meant;
  std::vector<std::uint32_t> rows;
  for (const Straggler& straggler : job.stragglers.rows) {
    if (straggler.cause != Cause::imbalance) continue;
    meant.push_back(&straggler);
    for (std::uint32_t row = 0; row < job.ranks.size(); ++row) {
      const bool own = straggler.rank ? job.ranks[row].rank == *straggler.rank
                                      : job.ranks[row].host == straggler.host;
      if (own && job.ranks[row].run == 0) rows.push_back(row);
    }
  }
  if (meant.empty()) return {};
  const auto parts = evened(scene);
  Candidate candidate{.finding = {}, .change = unchanged(scene.graph())};
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp&, const MatchedOp* matched) {
        const auto part = parts.find(matched);
        if (part != parts.end()) candidate.change.transfer[row][i] = part->second;
      });
  const Paces paces(scene.graph());
  for (const std::uint32_t row : rows) paces.at_load_of_others(row, rows, candidate.change);
  candidate.culprit = true;
  Finding& finding = candidate.finding;
  finding.confidence = Confidence::certain;
  std::string who;
  for (const Straggler* straggler : meant) {
    who += who.empty() ? "" : ", ";
    who += straggler->rank ? (who.empty() ? "Rank " : "rank ") + std::to_string(*straggler->rank)
                           : (who.empty() ? "Host " : "host ") + straggler->host;
    finding.evidence += (finding.evidence.empty() ? "" : "; ") + straggler->evidence;
  }
  for (const Straggler* straggler : meant)
    finding.confidence = std::max(finding.confidence, straggler->confidence);  // the weakest
  finding.title = who + (meant.size() > 1 ? " exchange more bytes than their peers"
                                          : " exchanges more bytes than its peers");
  finding.advice =
      "Even out what ranks send and get: embedding tables sharded by traffic instead of by number, "
      "experts balanced by an auxiliary loss, a capacity factor, or copies of the popular ones.";
  return {std::move(candidate)};
}

}  // namespace

extern const Finder kUnequalSharding;
constinit const Finder kUnequalSharding{
    .id = "unequal_sharding",
    .summary = "A rank that exchanges more bytes than its peers",
    .find = find_sharding,
};

}  // namespace commlens
