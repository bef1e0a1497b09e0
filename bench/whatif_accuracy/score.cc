#include "score.h"

#include <algorithm>
#include <cmath>

#include "simulate/recording.h"

namespace commlens::whatif_accuracy {
namespace {

std::vector<Recording> record(const simulate::SimulatedJob& job,
                              const simulate::RecordOptions& options) {
  std::vector<Recording> recordings;
  for (int rank = 0; rank < job.spec.world(); ++rank)
    recordings.push_back(simulate::record_rank(job, rank, options));
  return recordings;
}

double part(Ns difference, Ns whole) {
  return whole == 0 ? 0 : static_cast<double>(difference) / static_cast<double>(whole);
}

Ns sum(const simulate::PathTruth::Sums& sums) { return sums[0] + sums[1] + sums[2] + sums[3]; }

}  // namespace

double PathScore::worst() const {
  double most = 0;
  for (const double each : off) most = std::max(most, std::abs(each));
  return most;
}

PathScore score_path(std::size_t layout, std::uint64_t number, bool sync_records) {
  simulate::Scenario scenario = make_job(layout, number);
  scenario.record.sync_records = sync_records;
  const simulate::SimulatedJob job = simulate::simulate(scenario.spec, scenario.faults);
  const simulate::PathTruth truth = simulate::find_critical_path(job);
  const PathComposition answer = Tool(record(job, scenario.record)).composition();
  const bool clocks = std::ranges::any_of(scenario.faults.list, [](const simulate::Fault& fault) {
    return fault.kind == simulate::FaultKind::clock;
  });
  PathScore score{.layout = layout,
                  .number = number,
                  .sync_records = sync_records,
                  .one_clock = !clocks,
                  .known = answer.known,
                  .sure = answer.sure};
  if (!answer.known) return score;
  for (std::size_t i = 0; i < truth.sums.size(); ++i)
    score.off[i] = part(answer.sums[i] - truth.sums[i], truth.window());
  score.off.back() = part(answer.unexplained, truth.window());
  for (std::size_t rank = 0; rank < std::min(answer.by_rank.size(), truth.by_rank.size()); ++rank) {
    const double off = part(answer.by_rank[rank] - sum(truth.by_rank[rank]), truth.window());
    score.most_by_rank = std::max(score.most_by_rank, std::abs(off));
  }
  return score;
}

double WhatIfScore::error() const { return std::abs(part(predicted - truth, truth)); }
double WhatIfScore::change() const { return std::abs(part(before - truth, truth)); }

WhatIfScore score_question(std::uint64_t number) {
  const Question question = make_question(number);
  const simulate::Scenario& scenario = question.scenario;
  const simulate::SimulatedJob job = simulate::simulate(scenario.spec, scenario.faults);
  const auto before = simulate::find_step_time(job);
  const auto after =
      simulate::find_step_time(simulate::simulate_changed(scenario, question.changes));
  const Answer answer = Tool(record(job, scenario.record)).predict(question.changes);
  return {.number = number,
          .kind = question.kind,
          .words = question.words,
          .known = answer.known,
          .trouble = answer.trouble,
          .before = before.step(),
          .truth = after.step(),
          .predicted = answer.predicted,
          .lower = answer.lower,
          .upper = answer.upper};
}

}  // namespace commlens::whatif_accuracy
