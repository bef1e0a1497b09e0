// Time inside send and receive kernels: waiting for another stage is the pipeline's bubble, which
// no faster link shortens; the rest is transfer.
#include <algorithm>

#include "advice/candidate.h"
#include "advice/words.h"

namespace commlens {
namespace {

bool is_point_to_point(Op op) { return op == Op::send || op == Op::recv || op == Op::send_recv; }

struct Bubble {
  Ns waiting = 0;   // exposed, of all ranks
  Ns transfer = 0;  // exposed, that is no waiting
  Ns open = 0;      // exposed, that may be either: of senders that are held until they are received
  std::int64_t ranks = 0;
  std::int64_t unknown = 0;  // communications whose waiting is not known
};

Bubble bubble_of(const Job& job) {
  Bubble bubble;
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    const auto& devices = job.ranks[row].devices;
    bool any = false;
    for (std::size_t d = 0; d < devices.size() && job.ranks[row].run == 0; ++d) {
      for (std::size_t i = 0; i < devices[d].comm.size(); ++i) {
        if (!is_point_to_point(devices[d].comm[i].op)) continue;
        any = true;
        const Wait& wait = job.waits.of[row][d][i];
        bubble.unknown += wait.known ? 0 : 1;
        bubble.waiting += wait.exposed;
        const Ns rest = std::max<Ns>(0, devices[d].exposures[i].exposed - wait.exposed);
        const Ns moving =
            std::max<Ns>(0, devices[d].comm[i].time.length() - std::max(wait.wait, wait.doubtful));
        bubble.transfer += std::min(rest, moving);
        bubble.open += rest - std::min(rest, moving);
      }
    }
    bubble.ranks += any ? 1 : 0;
  }
  return bubble;
}

std::vector<Candidate> find_pipeline(const Scene& scene) {
  if (!scene.job().waits.known) return {};
  const Bubble bubble = bubble_of(scene.job());
  if (bubble.ranks < 2 || bubble.waiting <= 0) return {};
  Candidate candidate{.finding = {}, .change = unchanged(scene.graph())};
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp& op, const MatchedOp*) {
        if (is_point_to_point(op.op)) candidate.change.transfer[row][i] = Assumption::kRemoved;
      });
  const Ns waiting = scene.per_chosen_step(bubble.waiting / bubble.ranks);
  Finding& finding = candidate.finding;
  finding.confidence = bubble.unknown == 0 ? Confidence::likely : Confidence::undecidable;
  finding.title =
      "Pipeline bubble: stages wait " + time_words(waiting) + " a step for each other (" +
      share_words(static_cast<double>(waiting) / static_cast<double>(scene.step())) + ")";
  finding.evidence =
      "waiting inside send and receive kernels on " + count_words(bubble.ranks, "rank") +
      "; only " + time_words(scene.per_chosen_step(bubble.transfer / bubble.ranks)) +
      " a step of their exposed time is transfer" +
      (bubble.open > 0 ? " (" + time_words(scene.per_chosen_step(bubble.open / bubble.ranks)) +
                             " of senders may be either)"
                       : "") +
      "; the gain is that of stages that never wait";
  if (bubble.unknown > 0)
    finding.evidence += "; the waiting of " + std::to_string(bubble.unknown) +
                        " of these communications is not known";
  finding.advice =
      "More micro-batches a step (the bubble is about (stages - 1) / micro-batches of the "
      "compute), "
      "an interleaved or zero-bubble schedule, stages of equal cost (the first and the last have "
      "the "
      "embedding and the loss).";
  return {std::move(candidate)};
}

}  // namespace

extern const Finder kPipelineBubble;
constinit const Finder kPipelineBubble{
    .id = "pipeline_bubble",
    .summary = "Waiting of pipeline stages for each other, apart from transfer",
    .find = find_pipeline,
};

}  // namespace commlens
