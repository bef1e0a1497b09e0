// A rank, or all ranks of a host, that the others wait for because of its own compute.
#include "advice/candidate.h"
#include "replay/pace.h"

namespace commlens {
namespace {

// Kernels slower than this: a slow GPU. Else the rank has more to do.
constexpr double kSlow = 0.985;
// The same of ranks with experts, whose kernels take longer where more tokens are sent to them.
constexpr double kSlowerThanExperts = 0.9;

// How its compute differs from its peers'.
enum class Kind : std::uint8_t { more, slow, experts };

struct Words {
  const char* title;
  const char* advice;
};

constexpr const char* kLookAtGpu =
    "Look at that GPU's clocks, temperature and power cap (nvidia-smi -q -d PERFORMANCE,CLOCK), "
    "ECC "
    "errors and what else runs on it; swap it or leave its node out of the job, and see whether "
    "the "
    "delay stays with the node.";

// By Kind.
constexpr Words kWords[] = {
    {" has more to compute than its peers",
     "Even out the work: samples or tokens of equal length on each rank (sort by length, pack "
     "sequences), layers of equal cost on each pipeline stage, experts balanced by an auxiliary "
     "loss or a capacity factor."},
    {" computes slower than its peers", kLookAtGpu},
    {" computes longer than its peers: a slower GPU, or experts with more tokens",
     "Compare the tokens that its experts get (an auxiliary loss or a capacity factor balances "
     "them) and its GPU's clocks (nvidia-smi -q -d PERFORMANCE,CLOCK) with the other ranks'."},
};

bool has_experts(const RankTimeline& rank) {
  for (const DeviceTimeline& device : rank.devices) {
    for (const CommOp& op : device.comm) {
      if (op.op == Op::all_to_all || op.op == Op::moe_dispatch || op.op == Op::moe_combine)
        return true;
    }
  }
  return false;
}

std::vector<std::uint32_t> rows_of(const Job& job, const Straggler& straggler) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < job.ranks.size(); ++row) {
    const bool meant = straggler.rank ? job.ranks[row].rank == *straggler.rank
                                      : job.ranks[row].host == straggler.host;
    if (meant && job.ranks[row].run == 0) rows.push_back(row);
  }
  return rows;
}

bool is_slow_compute(const Straggler& straggler) {
  return straggler.cause == Cause::compute && straggler.link.empty();
}

Candidate candidate_of(const Scene& scene, const Straggler& straggler, const Paces& paces,
                       const std::vector<std::uint32_t>& suspects) {
  Candidate candidate;
  Kind kind = Kind::more;
  for (const std::uint32_t row : rows_of(scene.job(), straggler)) {
    const double pace = paces.pace(row, suspects);
    if (pace < kSlow) {
      paces.at_pace_of_peers(row, suspects, candidate.change);
      const bool experts = pace >= kSlowerThanExperts && has_experts(scene.job().ranks[row]);
      if (kind != Kind::slow) kind = experts ? Kind::experts : Kind::slow;
    } else {
      paces.at_load_of_others(row, suspects, candidate.change);
    }
  }
  const Words& words = kWords[static_cast<std::size_t>(kind)];
  candidate.culprit = true;
  Finding& finding = candidate.finding;
  finding.confidence = straggler.confidence;
  finding.title =
      (straggler.rank ? "Rank " + std::to_string(*straggler.rank) : "Host " + straggler.host) +
      words.title;
  finding.evidence = straggler.evidence;
  finding.advice = words.advice;
  return candidate;
}

std::vector<Candidate> find_slow_rank(const Scene& scene) {
  const Stragglers& stragglers = scene.job().stragglers;
  std::vector<const Straggler*> meant;
  std::vector<std::uint32_t> suspects;  // no measure for each other
  for (const auto* rows : {&stragglers.rows, &stragglers.hidden}) {
    for (const Straggler& straggler : *rows) {
      if (!is_slow_compute(straggler)) continue;
      meant.push_back(&straggler);
      const auto own = rows_of(scene.job(), straggler);
      suspects.insert(suspects.end(), own.begin(), own.end());
    }
  }
  if (meant.empty()) return {};
  const Paces paces(scene.graph());
  std::vector<Candidate> found;
  for (const Straggler* straggler : meant)
    found.push_back(candidate_of(scene, *straggler, paces, suspects));
  return found;
}

}  // namespace

extern const Finder kSlowRank;
constinit const Finder kSlowRank{
    .id = "slow_rank",
    .summary = "A rank whose compute takes longer than its peers'",
    .find = find_slow_rank,
};

}  // namespace commlens
