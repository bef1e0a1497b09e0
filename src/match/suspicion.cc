// Somebody is always last: in a healthy job each rank is charged with a little. So waiting counts
// only as far as it is more than what comes from ranks of the same kind, only in steps in which the
// suspect's own time shows the cause, and only from 1 % of the GPU time on in at least half of the
// steps. Rarer, but large where it happens: a burst. Waiting that is hidden under compute costs
// nothing by itself, but it makes what follows late: where the suspect's own time shows the cause
// plainly, less waiting is enough for a burst. In a very noisy job that happens to every rank by
// chance, so such a burst is never certain.
#include "match/suspicion.h"

#include <algorithm>

namespace commlens {
namespace {

constexpr double kLeastShare = 0.01;
constexpr double kLeastBurst = 0.02;  // of the GPU time of a step
constexpr double kLeastPlain = 0.005;

using Level = Ns WaitSums::*;

struct Count {
  std::vector<std::size_t> steps;
  Ns beyond = 0;
};

// How much of a step's GPU time the waiting has to be for the step to count.
double share_of_straggler(const Suspicion&, std::size_t) { return kLeastShare; }
double share_of_certain_burst(const Suspicion&, std::size_t) { return kLeastBurst; }
double share_of_burst(const Suspicion& suspicion, std::size_t step) {
  return suspicion.plain[step] ? kLeastPlain : kLeastBurst;
}
using Share = double (*)(const Suspicion& suspicion, std::size_t step);

// Steps in which this much of the waiting, beyond the usual, is enough.
Count count(const Suspicion& suspicion, const StepTable& table, Level level, Share share) {
  Count count;
  for (std::size_t step = 0; step < table.steps().size(); ++step) {
    const Ns beyond = suspicion.originated[step].*level - suspicion.usual[step];
    if (!suspicion.seen[step] || beyond <= 0) continue;
    if (static_cast<double>(beyond) <
        share(suspicion, step) * static_cast<double>(table.gpu_time(step)))
      continue;
    count.steps.push_back(step);
    count.beyond += beyond;
  }
  return count;
}

bool recurs(const Count& count, const StepTable& table) {
  return 2 * count.steps.size() >= table.steps().size() &&
         static_cast<double>(count.beyond) >= kLeastShare * static_cast<double>(table.gpu_time());
}

}  // namespace

std::optional<Verdict> judge(const Suspicion& suspicion, const StepTable& table) {
  Verdict verdict;
  Count found;
  const std::pair<Level, Confidence> levels[] = {{&WaitSums::certain, Confidence::certain},
                                                 {&WaitSums::likely, Confidence::likely},
                                                 {&WaitSums::exposed, Confidence::undecidable}};
  bool any = false;
  for (const auto& [level, confidence] : levels) {
    found = count(suspicion, table, level, share_of_straggler);
    if (!recurs(found, table)) continue;
    verdict.confidence = confidence;
    any = true;
    break;
  }
  for (std::size_t i = 0; i < 2 && !any; ++i) {
    found =
        count(suspicion, table, levels[i].first, i == 0 ? share_of_certain_burst : share_of_burst);
    if (found.steps.empty() || 2 * found.steps.size() >= table.steps().size()) continue;
    verdict.confidence = levels[i].second;
    verdict.burst = any = true;
  }
  if (!any) return std::nullopt;
  // All steps in which it shows, however surely.
  verdict.steps = count(suspicion, table, &WaitSums::exposed,
                        verdict.burst ? share_of_burst : share_of_straggler)
                      .steps;
  for (const WaitSums& sums : suspicion.originated) verdict.originated += sums.exposed;
  for (const std::size_t step : verdict.steps)
    verdict.originated_in_steps += suspicion.originated[step].exposed;
  verdict.share = static_cast<double>(verdict.originated) / static_cast<double>(table.gpu_time());
  verdict.recurrence =
      static_cast<double>(verdict.steps.size()) / static_cast<double>(table.steps().size());
  return verdict;
}

}  // namespace commlens
