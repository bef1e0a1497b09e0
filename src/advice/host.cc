// Hosts that hold the GPUs up: by waiting for them, and by launching too little at a time.
#include <algorithm>
#include <array>
#include <string>

#include "advice/candidate.h"
#include "advice/words.h"

namespace commlens {
namespace {

// Of CUDA or HIP: a recording keeps what a call does, not whose it is.
constexpr std::array<std::string_view, kSyncKindCount> kCallNames{
    "StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "a blocking Memcpy",
    "StreamWaitEvent"};

// Blocking calls of one kind.
struct Blocking {
  std::int64_t calls = 0;
  Ns blocked = 0;
};
using BlockingCalls = std::array<Blocking, kSyncKindCount>;

BlockingCalls blocking_calls(const RankTimeline& rank) {
  BlockingCalls found{};
  for (const HostStretch& stretch : rank.work.stretches) {
    if (!stretch.behind_call()) continue;
    Blocking& kind = found[static_cast<std::size_t>(stretch.kind)];
    ++kind.calls;
    kind.blocked += stretch.start - stretch.call;
  }
  return found;
}

std::int64_t ranks_at_work(const Job& job) {
  return std::count_if(job.ranks.begin(), job.ranks.end(),
                       [](const RankTimeline& rank) { return rank.work.size() > 0; });
}

// Who makes half as many calls again as the ranks do on average: "; rank 7 15 times".
std::string outlier_words(const Scene& scene, std::size_t kind, double usual) {
  std::string words;
  std::size_t named = 0;
  for (const RankTimeline& rank : scene.job().ranks) {
    if (rank.work.size() == 0) continue;
    const double own =
        static_cast<double>(blocking_calls(rank)[kind].calls) / static_cast<double>(scene.steps());
    if (own < 1.5 * usual || ++named > 3) continue;
    words += "; rank " + std::to_string(rank.rank) + " " + number_words(own) + " times";
  }
  return words;
}

// "StreamSynchronize 2 times (1.2 ms blocked)", a step of one rank.
std::string calls_words(const Scene& scene) {
  BlockingCalls calls{};
  for (const RankTimeline& rank : scene.job().ranks) {
    const BlockingCalls own = blocking_calls(rank);
    for (std::size_t kind = 0; kind < calls.size(); ++kind) {
      calls[kind].calls += own[kind].calls;
      calls[kind].blocked += own[kind].blocked;
    }
  }
  const double rank_steps =
      static_cast<double>(scene.steps()) *
      static_cast<double>(std::max<std::int64_t>(1, ranks_at_work(scene.job())));
  std::string words;
  for (std::size_t kind = 0; kind < calls.size(); ++kind) {
    if (calls[kind].calls == 0) continue;
    const auto blocked = static_cast<Ns>(static_cast<double>(calls[kind].blocked) / rank_steps);
    const double usual = static_cast<double>(calls[kind].calls) / rank_steps;
    words += (words.empty() ? "" : ", ") + std::string(kCallNames[kind]) + " " +
             number_words(usual) + " times (" + time_words(blocked) + " blocked" +
             outlier_words(scene, kind, usual) + ")";
  }
  return words;
}

std::vector<Candidate> find_synchronisations(const Scene& scene) {
  const std::string words = calls_words(scene);
  if (words.empty()) return {};
  Candidate candidate;
  candidate.change.host_runs_ahead.assign(scene.job().ranks.size(), true);
  Finding& finding = candidate.finding;
  finding.confidence = Confidence::likely;
  finding.title = "Hosts wait for their GPUs, which then run dry";
  finding.evidence = "in a step, a rank calls on average " + words +
                     "; the GPU has nothing queued when such a call returns";
  finding.advice =
      "Find the calls with torch.cuda.set_sync_debug_mode(\"warn\"): .item(), .cpu(), print of a "
      "tensor, boolean masks, nonzero; keep losses on the GPU and read them seldom; copy with "
      "non_blocking=True from pinned memory.";
  return {std::move(candidate)};
}

std::vector<Candidate> find_host_bound(const Scene& scene) {
  const CriticalPath& path = scene.job().path;
  const Ns host = path.sums[static_cast<std::size_t>(PathClass::host)];
  if (host <= 0) return {};
  Candidate candidate;
  candidate.change.host_in_time.assign(scene.job().ranks.size(), true);
  std::int64_t launches = 0;
  Ns busy = 0;
  for (const RankTimeline& rank : scene.job().ranks) {
    for (std::size_t i = 0; i < rank.work.size(); ++i) {
      launches += rank.work.launch[i] != kNoLaunch ? 1 : 0;
      busy += rank.work.end[i] - rank.work.start[i];
    }
  }
  const std::int64_t ranks = std::max<std::int64_t>(1, ranks_at_work(scene.job()));
  Finding& finding = candidate.finding;
  finding.confidence = Confidence::likely;
  finding.title =
      "Hosts are on the critical path for " +
      share_words(static_cast<double>(host) / static_cast<double>(path.window.length())) +
      " of the time";
  finding.evidence = time_words(scene.per_step(host)) +
                     " of the path a step are host time, launches and gaps; each "
                     "rank launches " +
                     std::to_string(launches / ranks / scene.steps()) + " activities a step, of " +
                     time_words(launches > 0 ? busy / launches : 0) + " on average";
  finding.advice =
      "Launch less often or earlier: CUDA graphs (torch.compile with mode=\"reduce-overhead\"), "
      "fused "
      "or foreach optimizers, larger micro-batches; keep Python off the launching thread (data "
      "loading in workers, gc.freeze), and pin it to cores near its GPU.";
  return {std::move(candidate)};
}

}  // namespace

extern const Finder kSynchronisation;
constinit const Finder kSynchronisation{
    .id = "synchronisation",
    .summary = "Calls in which the host waits for the GPU, which then runs dry",
    .find = find_synchronisations,
};

extern const Finder kHostBound;
constinit const Finder kHostBound{
    .id = "host_bound",
    .summary = "Hosts that launch work later than the GPU could begin it",
    .find = find_host_bound,
};

}  // namespace commlens
