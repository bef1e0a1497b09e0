#include "study/relate.h"

#include <algorithm>

#include "advice/advice.h"
#include "base/error.h"
#include "match/clocks.h"
#include "match/collectives.h"
#include "match/stragglers.h"
#include "match/trail.h"
#include "match/transfer_fits.h"
#include "match/waiting.h"
#include "replay/common_time.h"
#include "replay/critical_path.h"
#include "replay/graph.h"
#include "replay/what_if.h"
#include "study/contexts.h"

namespace commlens {

void relate_ranks(Job& job, unsigned threads) {
  if (!has_several_ranks(job)) {
    if (has_timelines(job)) job.notes.add(Note::one_rank);
    return;
  }
  job.matching = match_collectives(job);
  job.clocks = relate_clocks(job);
  if (!job.clocks.infeasible.empty()) job.notes.add(Note::clocks_contradict, job.clocks.infeasible);
  if (!job.clocks.known) job.notes.add(Note::clocks_unrelated);
  job.waits = find_waits(job, threads);
  job.transfer_fits = find_transfer_fits(job);
  job.stragglers = find_stragglers(job);
  if (job.waits.known && !job.stragglers.known)
    job.notes.add(Note::stragglers_undecidable,
                  job.stragglers.remarks.empty() ? "" : job.stragglers.remarks.front());
}

std::optional<Prediction> follow_path(Job& job, const WorkRoom& room, unsigned threads,
                                      const StudyOptions& options) {
  if (job.ranks.empty()) {
    job.path.missing = "no input is a timeline";
    return std::nullopt;
  }
  if (!room.fits()) {
    for (RankTimeline& rank : job.ranks) rank.work = {};
    job.path.missing =
        "there are too many GPU activities for one graph; give the files of fewer ranks";
    return std::nullopt;
  }
  if (has_several_ranks(job) && !job.clocks.known) {
    job.path.missing = "nothing relates the clocks of these ranks";
    return std::nullopt;
  }
  // Another run of the same rank was at another time.
  for (RankTimeline& rank : job.ranks) {
    if (rank.run > 0) rank.work = {};
  }
  place_on_common_time(job);
  const Graph graph(job);
  job.path = find_critical_path(graph);
  if (options.context != "never" && !options.question && job.path.known)
    timed(Stage::contexts, [&] { find_path_contexts(job, options.context == "always", threads); });
  if (!job.path.known) return std::nullopt;
  if (!options.question) {
    timed(Stage::advice, [&] { job.findings = find_advice(graph, threads); });
    return std::nullopt;
  }
  Prediction prediction = predict(graph, *options.question);
  // What makes the path doubtful makes every replay of it so.
  if (!job.path.sure) {
    prediction.confidence = Confidence::undecidable;
    prediction.remarks.push_back(job.path.doubt);
  }
  return prediction;
}

std::vector<Ns> clock_offsets(const Job& job) {
  if (!job.clocks.known) return {};
  const auto gap = [&job](std::size_t row) {
    const auto& devices = job.ranks[row].devices;
    const Ns own = devices.empty() ? 0 : devices.front().extent.start;
    return job.clocks.common(row, own) - own - job.ranks[row].recording.clock_base;
  };
  std::vector<Ns> offsets;
  for (std::size_t row = 0; row < job.ranks.size(); ++row)
    offsets.push_back(gap(row) - gap(job.clocks.reference));
  return offsets;
}

void explain_chosen_rank(Job& job, std::optional<std::int64_t> chosen) {
  if (!chosen) return;
  if (job.ranks.empty())
    throw Error(ErrorKind::usage, "--explain: none of these inputs is a timeline of a rank");
  const auto row = std::find_if(job.ranks.begin(), job.ranks.end(), [&](const RankTimeline& rank) {
    return rank.rank == *chosen && rank.run == 0;
  });
  if (row == job.ranks.end())
    throw Error(ErrorKind::usage,
                "--explain: there is no rank " + std::to_string(*chosen) + " in these inputs");
  constexpr std::size_t kMostTrails = 5;
  job.trails = trails_of(job, static_cast<std::size_t>(row - job.ranks.begin()), kMostTrails);
}

}  // namespace commlens
