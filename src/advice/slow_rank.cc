// A rank, or all ranks of a host, that the others wait for because of its own compute.
#include "advice/candidate.h"
#include "replay/pace.h"

namespace commlens {
namespace {

// Kernels slower than this: a slow GPU. Else the rank has more to do.
constexpr double kSlow = 0.985;

Candidate candidate_of(const Scene& scene, const Straggler& straggler) {
  const Job& job = scene.job();
  Candidate candidate;
  candidate.change.compute.assign(job.ranks.size(), 1);
  bool slow = false;
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    const bool meant = straggler.rank ? job.ranks[row].rank == *straggler.rank
                                      : job.ranks[row].host == straggler.host;
    if (!meant || job.ranks[row].run != 0) continue;
    const double pace = pace_of_peers(job, row);
    slow = slow || pace < kSlow;
    candidate.change.compute[row] = pace < kSlow ? pace : load_of_others(job, row);
  }
  const std::string who =
      straggler.rank ? "Rank " + std::to_string(*straggler.rank) : "Host " + straggler.host;
  Finding& finding = candidate.finding;
  finding.confidence = straggler.confidence;
  finding.title =
      who + (slow ? " computes slower than its peers" : " has more to compute than its peers");
  finding.evidence = straggler.evidence;
  finding.advice =
      slow ? "Look at that GPU's clocks, temperature and power cap (nvidia-smi -q -d "
             "PERFORMANCE,CLOCK), ECC errors and what else runs on it; swap it or leave its node "
             "out of the job, and see whether the delay stays with the node."
           : "Even out the work: samples or tokens of equal length on each rank (sort by length, "
             "pack sequences), layers of equal cost on each pipeline stage, experts balanced by an "
             "auxiliary loss or a capacity factor.";
  return candidate;
}

std::vector<Candidate> find_slow_rank(const Scene& scene) {
  std::vector<Candidate> found;
  for (const Straggler& straggler : scene.job().stragglers.rows) {
    if (straggler.cause == Cause::compute && straggler.link.empty())
      found.push_back(candidate_of(scene, straggler));
  }
  for (const Straggler& straggler : scene.job().stragglers.hidden) {
    if (straggler.cause != Cause::compute) continue;
    found.push_back(candidate_of(scene, straggler));
    found.back().hidden = true;
    found.back().finding.title += ", behind a later rank";
  }
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
