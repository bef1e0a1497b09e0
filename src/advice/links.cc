// A link, or a rank's network adapter, whose transfers take longer than their like.
#include <algorithm>

#include "advice/candidate.h"

namespace commlens {
namespace {

Candidate link_candidate(const Scene& scene, const Straggler& straggler) {
  Candidate candidate{.finding = {}, .change = unchanged(scene.graph())};
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp&, const MatchedOp* matched) {
        if (matched == nullptr || matched->group < 0) return;
        if (std::find(straggler.groups.begin(), straggler.groups.end(), matched->group) !=
            straggler.groups.end())
          candidate.change.transfer[row][i] = 1 / straggler.pace;
      });
  candidate.culprit = true;
  Finding& finding = candidate.finding;
  finding.confidence = straggler.confidence;
  finding.title = straggler.rank
                      ? "All transfers of rank " + std::to_string(*straggler.rank) + " are slow"
                      : "The link between ranks " + std::to_string(straggler.link[0]) + " and " +
                            std::to_string(straggler.link[1]) + " is slow";
  finding.evidence = straggler.evidence;
  finding.advice =
      "Look at that adapter and cable (ibstat, ethtool -S, nvidia-smi nvlink -e): link width and "
      "speed, error and retransmission counters; compare with nccl-tests between the same two "
      "ranks "
      "and between others; see in NCCL's log (NCCL_DEBUG=INFO) whether both ends use the same "
      "transport.";
  return candidate;
}

std::vector<Candidate> find_links(const Scene& scene) {
  std::vector<Candidate> found;
  for (const Straggler& straggler : scene.job().stragglers.rows) {
    if (straggler.cause == Cause::link && straggler.pace > 1)
      found.push_back(link_candidate(scene, straggler));
  }
  return found;
}

}  // namespace

extern const Finder kSlowLink;
constinit const Finder kSlowLink{
    .id = "slow_link",
    .summary = "A link whose transfers take longer than other links' at the same size",
    .find = find_links,
};

}  // namespace commlens
