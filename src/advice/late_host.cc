// A rank, or all ranks of a host, that the others wait for because its host launches late.
#include "advice/candidate.h"

namespace commlens {
namespace {

Candidate late_host_candidate(const Job& job, const Straggler& straggler, bool waited_for) {
  Candidate candidate;
  candidate.change.host_in_time.assign(job.ranks.size(), false);
  for (std::size_t row = 0; row < job.ranks.size(); ++row)
    candidate.change.host_in_time[row] = straggler.rank ? job.ranks[row].rank == *straggler.rank
                                                        : job.ranks[row].host == straggler.host;
  const std::string who = straggler.rank ? "The host of rank " + std::to_string(*straggler.rank)
                                         : "Host " + straggler.host;
  candidate.culprit = true;
  Finding& finding = candidate.finding;
  finding.confidence = straggler.confidence;
  finding.title =
      who + " launches its GPU's work late" + (waited_for ? ", and the others wait for it" : "");
  finding.evidence = straggler.evidence;
  finding.advice =
      "See what that process does while its GPU has nothing queued: data loading (num_workers, "
      "pin_memory, prefetch_factor), Python's garbage collection (gc.freeze), checkpoints, "
      "logging; "
      "and whether its threads share cores with others (numactl, OMP_NUM_THREADS).";
  return candidate;
}

std::vector<Candidate> find_late_host(const Scene& scene) {
  const Stragglers& stragglers = scene.job().stragglers;
  std::vector<Candidate> found;
  for (const auto* rows : {&stragglers.rows, &stragglers.hidden}) {
    for (const Straggler& straggler : *rows) {
      if (straggler.cause == Cause::host)
        found.push_back(late_host_candidate(scene.job(), straggler, rows == &stragglers.rows));
    }
  }
  return found;
}

}  // namespace

extern const Finder kLateHost;
constinit const Finder kLateHost{
    .id = "late_host",
    .summary = "A rank whose host launches later than its peers'",
    .find = find_late_host,
};

}  // namespace commlens
