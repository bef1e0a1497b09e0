// Communication that could have begun earlier than it did: held by what it does not need on its
// stream, or launched late.
//
//   its data ready   v
//   stream 20  [== other group's ==][== all-gather ==]     held by the other group's
//   launch              ^                                  in time
#include <algorithm>
#include <limits>
#include <map>

#include "advice/candidate.h"
#include "advice/words.h"

namespace commlens {
namespace {

// What a communication waited for before it began: the latest of each kind.
struct Holds {
  static constexpr Ns kNever = std::numeric_limits<Ns>::min();
  Ns data = kNever;    // work on other streams
  Ns stream = kNever;  // the activity before on its own
  Ns launch = kNever;
  ItemId before = 0;  // that activity
};

Holds holds_of(const Graph& graph, ItemId node) {
  Holds holds;
  graph.start_dependencies(node, [&](const Dependency& dependency) {
    if (dependency.reason == Reason::launch) {
      holds.launch = graph.stretch(dependency.item).start + dependency.offset + dependency.latency;
      return;
    }
    const std::uint32_t rank = graph.rank_of_node(dependency.item);
    const Ns at = graph.work(rank).end[graph.local(rank, dependency.item)] + dependency.latency;
    if (dependency.reason == Reason::stream) {
      holds.stream = at;
      holds.before = dependency.item;
    } else {
      holds.data = std::max(holds.data, at);
    }
  });
  return holds;
}

const CommOp* communication_at(const Scene& scene, std::uint32_t row, std::uint32_t local) {
  const std::vector<CommNode>& comm = scene.graph().work(row).comm;
  const auto found =
      std::lower_bound(comm.begin(), comm.end(), local,
                       [](const CommNode& c, std::uint32_t n) { return c.node < n; });
  if (found == comm.end() || found->node != local) return nullptr;
  return &scene.job().ranks[row].devices[found->device].comm[found->op];
}

struct Held {
  std::vector<ItemId> nodes;
  Ns time = 0;  // that they could have begun earlier, all together
};
using HeldGroups = std::map<std::pair<Op, std::string>, Held>;

template <class HeldFor>
HeldGroups collect(const Scene& scene, HeldFor held_for) {
  HeldGroups groups;
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp& op, const MatchedOp*) {
        const ItemId node = scene.graph().node(row, scene.graph().work(row).comm[i].node);
        const Holds holds = holds_of(scene.graph(), node);
        if (holds.data == Holds::kNever) return;  // when its data were ready is not known
        const Ns time = held_for(row, op, holds);
        if (time <= 0) return;
        Held& held = groups[{op.op, scene.groups_words(row, op)}];
        held.nodes.push_back(node);
        held.time += time;
      });
  for (auto& [key, held] : groups) std::sort(held.nodes.begin(), held.nodes.end());
  return groups;
}

std::string held_words(const Held& held) {
  const auto count = static_cast<std::int64_t>(held.nodes.size());
  return count_words(count, "time") + ", by " + time_words(held.time / count) + " on average";
}

// Held by communication of another group, with its own data ready and its launch done.
std::vector<Candidate> find_streams(const Scene& scene) {
  const auto held_for = [&](std::uint32_t row, const CommOp& op, const Holds& holds) -> Ns {
    if (holds.stream == Holds::kNever) return 0;
    const CommOp* before = communication_at(scene, row, scene.graph().local(row, holds.before));
    if (before == nullptr || before->group == op.group) return 0;
    return holds.stream - std::max(holds.data, holds.launch);
  };
  std::vector<Candidate> found;
  for (auto& [key, held] : collect(scene, held_for)) {
    Candidate candidate;
    candidate.change.on_own_stream = held.nodes;
    Finding& finding = candidate.finding;
    finding.confidence = Confidence::likely;
    finding.title = std::string(op_name(key.first)) + " in " + key.second +
                    " queues behind another group's communication";
    finding.evidence =
        "its data were ready and its stream busy with another group's communication " +
        held_words(held);
    finding.advice =
        "Give the group a stream of its own: a process group (or communicator) of its own instead "
        "of "
        "one shared between axes; TORCH_NCCL_HIGH_PRIORITY or a high-priority stream for the one "
        "that compute waits for.";
    found.push_back(std::move(candidate));
  }
  return found;
}

// The median time between launches that follow each other on a stream; 0: not known.
Ns usual_launch_interval(const Work& work) {
  constexpr std::size_t kMostSamples = 4096;
  std::vector<Ns> intervals;
  const std::size_t stride = std::max<std::size_t>(1, work.size() / kMostSamples);
  for (std::size_t i = 1; i < work.size(); i += stride) {
    if (work.launch[i] == kNoLaunch || work.launch[i - 1] == kNoLaunch) continue;
    if (work.launch[i] > work.launch[i - 1])
      intervals.push_back(work.launch[i] - work.launch[i - 1]);
  }
  if (intervals.empty()) return 0;
  const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
  std::nth_element(intervals.begin(), middle, intervals.end());
  return *middle;
}

// Launched later than its data were ready and its stream free. What comes late by a few launches
// is launched by a host that is slow with everything (find_host_bound): that one at once would
// take, too.
std::vector<Candidate> find_late_launches(const Scene& scene) {
  constexpr Ns kUsualLaunches = 3;
  std::vector<Ns> usual;
  for (const RankTimeline& rank : scene.job().ranks)
    usual.push_back(kUsualLaunches * usual_launch_interval(rank.work));
  const auto held_for = [&usual](std::uint32_t row, const CommOp&, const Holds& holds) -> Ns {
    if (holds.launch == Holds::kNever) return 0;
    const Ns held = holds.launch - std::max(holds.data, holds.stream);
    return held > usual[row] ? held : 0;
  };
  std::vector<Candidate> found;
  for (auto& [key, held] : collect(scene, held_for)) {
    Candidate candidate;
    candidate.change.launched_in_time = held.nodes;
    Finding& finding = candidate.finding;
    finding.confidence = Confidence::likely;
    finding.title = std::string(op_name(key.first)) + " in " + key.second +
                    " begins later than its data are ready";
    finding.evidence =
        "it was launched after its data were ready and its stream free " + held_words(held);
    finding.advice =
        "Launch it as soon as its input is queued: from a hook of the parameter or module "
        "(DistributedDataParallel's buckets, FSDP's forward_prefetch and backward_prefetch), with "
        "async_op=True, before other work of the host.";
    found.push_back(std::move(candidate));
  }
  return found;
}

}  // namespace

extern const Finder kAnotherStream;
constinit const Finder kAnotherStream{
    .id = "another_stream",
    .summary = "Communication that queues behind another group's on the same stream",
    .find = find_streams,
};

extern const Finder kStartEarlier;
constinit const Finder kStartEarlier{
    .id = "start_earlier",
    .summary = "Communication that is launched later than its data are ready",
    .find = find_late_launches,
};

}  // namespace commlens
