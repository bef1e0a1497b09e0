// Communication on the critical path, by operation and group: what hiding all of it would gain. A
// bound: whether there is enough independent compute to hide it behind, no trace tells.
#include <algorithm>
#include <map>
#include <set>

#include "advice/candidate.h"
#include "advice/words.h"
#include "replay/transfer.h"

namespace commlens {
namespace {

using Key = std::pair<Op, std::string>;  // and its group in words

struct Exposed {
  Candidate candidate;
  Ns exclusive = 0;  // in the window of the figures, of all ranks
  std::set<std::uint32_t> ranks;
  std::int64_t count = 0;
  GroupRole role = GroupRole::unknown;
};

// Whether data move between layers of different stages, between parts of one layer, ...: what to
// do follows from what the group is for.
std::string advice_for(Op op, GroupRole role) {
  switch (role) {
    case GroupRole::data:
      if (op == Op::all_gather)
        return "Prefetch parameters one module earlier (FSDP's forward_prefetch, backward_prefetch="
               "BACKWARD_PRE, set_modules_to_forward_prefetch), or shard only inside a host "
               "(HYBRID_SHARD) where memory allows.";
      return "Overlap it with the backward pass (DistributedDataParallel does; Megatron's "
             "--overlap-grad-reduce), accumulate gradients over more micro-batches with no_sync(), "
             "or send them in 16 bits.";
    case GroupRole::tensor:
      return "Overlap it with the matrix products around it (asynchronous tensor parallelism of "
             "torch.compile, Megatron's --tp-comm-overlap with sequence parallelism), or split "
             "layers over fewer ranks.";
    case GroupRole::pipeline:
      return "Send activations while the next micro-batch computes (batched isend and irecv on a "
             "stream of their own, Megatron's --overlap-p2p-communication).";
    case GroupRole::expert:
      return "Overlap dispatch and combine with a shared expert or another half of the batch, "
             "restrict tokens to few hosts (group-limited routing), or dispatch in 8 bits.";
    case GroupRole::context:
      return "Overlap the exchange of keys and values with attention of the parts that are there "
             "(ring attention), or split sequences over fewer ranks.";
    case GroupRole::unknown: break;
  }
  return "Start it as soon as its input is there, with async_op=True, and wait for it only where "
         "its result is used; give it independent compute to hide behind.";
}

std::string evidence_of(const Scene& scene, const Exposed& exposed) {
  const auto ranks = static_cast<std::int64_t>(exposed.ranks.size());
  return (ranks > 1 ? "on average " : "") +
         std::to_string(exposed.count / std::max<std::int64_t>(1, ranks) / scene.steps()) +
         " a step on " + (ranks > 1 ? "each of " : "") + count_words(ranks, "rank") +
         ", not hidden for " +
         time_words(scene.per_chosen_step(exposed.exclusive / std::max<std::int64_t>(1, ranks))) +
         " of it; the gain is that of transfers that take no time, waiting stays";
}

std::vector<Candidate> find_exposed(const Scene& scene) {
  std::map<Key, Exposed> found;
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp& op, const MatchedOp*) {
        Exposed& exposed = found[{op.op, scene.groups_words(row, op)}];
        if (exposed.count == 0) exposed.candidate.change = unchanged(scene.graph());
        const CommNode& comm = scene.graph().work(row).comm[i];
        const DeviceTimeline& device = scene.job().ranks[row].devices[comm.device];
        exposed.candidate.change.transfer[row][i] = 0;
        exposed.exclusive += device.exposures[comm.op].exclusive;
        exposed.ranks.insert(row);
        ++exposed.count;
        if (const GroupIdentity* group = scene.group_of(row, op)) exposed.role = group->role;
      });
  const std::vector<Ns> busiest = busiest_streams(scene.graph(), unchanged(scene.graph()).transfer);
  const Ns least = busiest.empty() ? 0 : *std::max_element(busiest.begin(), busiest.end());
  std::vector<Candidate> candidates;
  for (auto& [key, exposed] : found) {
    if (exposed.exclusive <= 0) continue;
    Finding& finding = exposed.candidate.finding;
    finding.confidence = Confidence::likely;
    finding.title = std::string(op_name(key.first)) + " in " + key.second +
                    " is exposed: at most this could be hidden";
    finding.evidence = evidence_of(scene, exposed);
    finding.advice = advice_for(key.first, exposed.role);
    exposed.candidate.least_window = least;
    candidates.push_back(std::move(exposed.candidate));
  }
  return candidates;
}

}  // namespace

extern const Finder kExposed;
constinit const Finder kExposed{
    .id = "exposed_communication",
    .summary = "Communication on the critical path that compute does not hide",
    .find = find_exposed,
};

}  // namespace commlens
