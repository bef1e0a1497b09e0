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

std::vector<Candidate> find_sharding(const Scene& scene) {
  const auto& stragglers = scene.job().stragglers.rows;
  const auto cause = std::find_if(stragglers.begin(), stragglers.end(), [](const Straggler& row) {
    return row.cause == Cause::imbalance;
  });
  if (cause == stragglers.end()) return {};
  const auto parts = evened(scene);
  Candidate candidate{.finding = {}, .change = unchanged(scene.graph())};
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp&, const MatchedOp* matched) {
        const auto part = parts.find(matched);
        if (part != parts.end()) candidate.change.transfer[row][i] = part->second;
      });
  candidate.change.compute.assign(scene.job().ranks.size(), 1);
  for (std::size_t row = 0; row < scene.job().ranks.size(); ++row) {
    const RankTimeline& rank = scene.job().ranks[row];
    if (cause->rank ? rank.rank == *cause->rank : rank.host == cause->host)
      candidate.change.compute[row] = load_of_others(scene.job(), row);
  }
  const std::string who =
      cause->rank ? "Rank " + std::to_string(*cause->rank) : "Host " + cause->host;
  Finding& finding = candidate.finding;
  finding.confidence = cause->confidence;
  finding.title = who + " exchanges more bytes than its peers";
  finding.evidence = cause->evidence;
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
