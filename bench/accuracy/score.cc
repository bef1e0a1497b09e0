#include "score.h"

#include <algorithm>
#include <cmath>

#include "simulate/profile.h"
#include "simulate/recording.h"

namespace commlens::accuracy {
namespace {

using simulate::Fault;
using simulate::FaultKind;
using simulate::FaultTruth;

// --- Culprits ---

bool names_culprit(const Straggler& row, const Fault& fault) {
  if (fault.kind == FaultKind::slow_link) {
    const auto [low, high] = std::minmax({fault.rank, fault.peer});
    return row.link == std::vector<std::int64_t>{low, high};
  }
  return row.rank == fault.rank;
}

// Without metadata there are no bytes: unequal work is then more work, as its compute shows.
bool right_cause(const Straggler& row, const FaultTruth& truth, const Case& made) {
  if (cause_name(row.cause) == truth.cause) return true;
  return truth.fault.kind == FaultKind::unequal && row.cause == Cause::compute &&
         !made.scenario.record.metadata;
}

bool has_culprit(const FaultTruth& truth) { return !truth.cause.empty(); }

void score_rows(const Case& made, const Job& answer, RunScore& score) {
  for (const Straggler& row : answer.stragglers.rows) {
    RowScore& sums = score.rows[static_cast<std::size_t>(row.confidence)];
    bool culprit = false;
    bool cause = false;
    for (const FaultTruth& truth : made.faults) {
      if (!has_culprit(truth) || !names_culprit(row, truth.fault)) continue;
      culprit = true;
      cause = cause || right_cause(row, truth, made);
    }
    (cause ? sums.right : culprit ? sums.wrong_cause : sums.wrong_culprit) += 1;
  }
}

// How far the estimated difference between a rank's clock and any other's can be off, by causality
// alone.
Ns clock_uncertainty(const Job& answer, int rank) {
  const auto row = std::ranges::find(answer.ranks, rank, &RankTimeline::rank);
  if (!answer.clocks.known || row == answer.ranks.end()) return ClockError::kUnbounded;
  const auto own = static_cast<std::size_t>(row - answer.ranks.begin());
  Ns most = 0;
  for (std::size_t other = 0; other < answer.ranks.size(); ++other) {
    const ClockError error = answer.clocks.error(own, other, answer.clocks.origin);
    most = std::max({most, error.upper, -error.lower});
  }
  return most;
}

Excuse excuse_of(const FaultTruth& truth, const Job& answer) {
  constexpr double kSmall = 0.02;
  if (truth.share_of_step <= kSmall) return Excuse::small;
  if (!truth.hidden_by.empty()) return Excuse::hidden;
  // By definition no straggler: nobody's GPU waits (docs/numbers.md).
  constexpr double kExposed = 0.01;
  if (truth.exposed_share < kExposed) return Excuse::unexposed;
  const Ns per_step = truth.extra / static_cast<Ns>(truth.fault.steps.size());
  return per_step <= clock_uncertainty(answer, truth.fault.rank) ? Excuse::clocks : Excuse::none;
}

void score_faults(const Case& made, const Job& answer, RunScore& score) {
  for (const FaultTruth& truth : made.faults) {
    if (!has_culprit(truth)) continue;
    FaultScore fault{.kind = std::string(truth.kind), .excuse = excuse_of(truth, answer)};
    for (const Straggler& row : answer.stragglers.rows) {
      if (!names_culprit(row, truth.fault) || !right_cause(row, truth, made)) continue;
      fault.pointed = true;
      fault.found = fault.found || row.confidence != Confidence::undecidable;
      fault.certain = fault.certain || row.confidence == Confidence::certain;
    }
    score.faults.push_back(fault);
  }
}

// --- Waits ---

bool everything_recorded(const Case& made) {
  return made.scenario.record.hosts && made.scenario.record.metadata &&
         std::ranges::all_of(made.scenario.faults.list, [](const Fault& fault) {
           return !simulate::fault_cause(fault.kind).empty();
         });
}

void score_waits(const Case& made, const Job& answer, RunScore& score) {
  score.waits_known = answer.waits.known;
  score.waits_must_hold = everything_recorded(made);
  const auto truth = static_cast<double>(made.truth.waits.total);
  const auto found = static_cast<double>(answer.waits.total);
  score.wait_error = truth == 0 ? (found == 0 ? 0 : 1) : std::abs(found - truth) / truth;
}

// --- Clocks ---

Ns job_length(const simulate::SimulatedJob& job) {
  Ns last = 0;
  for (const simulate::RankTrace& trace : job.ranks) {
    for (const simulate::GpuEvent& event : trace.gpu) last = std::max(last, event.end);
  }
  return last;
}

// The same true instant on two ranks' clocks, brought to common time by the answer, must agree
// within the answer's bounds. A nanosecond of rounding on each side is not the answer's.
void score_bounds(const Case& made, const Job& answer, RunScore& score) {
  if (!answer.clocks.known) return;
  constexpr Ns kRounding = 2;
  const Ns length = job_length(made.job);
  for (const Ns instant : {Ns{0}, length / 2, length}) {
    const auto common = [&](std::size_t row) {
      const auto rank = static_cast<std::size_t>(answer.ranks[row].rank);
      const Ns own = made.job.ranks[rank].clock.at(instant);
      return answer.clocks.common(row, own + simulate::kJobEpochNs - simulate::kBaseNs);
    };
    for (std::size_t a = 0; a < answer.ranks.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const Ns off = common(b) - common(a);
        const ClockError error = answer.clocks.error(a, b, common(a));
        ++score.bounds;
        if (off < error.lower - kRounding || off > error.upper + kRounding) ++score.bounds_missed;
      }
    }
  }
}

}  // namespace

Case make_case(const CaseKey& key) {
  Case made{.scenario = make_scenario(key), .job = {}, .truth = {}, .faults = {}};
  made.job = simulate::simulate(made.scenario.spec, made.scenario.faults);
  made.truth = simulate::find_truth(made.job);
  made.faults = simulate::find_fault_truth(made.scenario, made.job);
  return made;
}

std::vector<Recording> record(const Case& made) {
  std::vector<Recording> recordings;
  for (std::size_t rank = 0; rank < made.job.ranks.size(); ++rank) {
    if (!made.job.ranks[rank].missing)
      recordings.push_back(
          simulate::record_rank(made.job, static_cast<int>(rank), made.scenario.record));
  }
  return recordings;
}

RunScore score(const CaseKey& key, const Case& made, const Job& answer) {
  RunScore score{.key = key, .faults = {}};
  score_rows(made, answer, score);
  score_faults(made, answer, score);
  score_waits(made, answer, score);
  score_bounds(made, answer, score);
  return score;
}

}  // namespace commlens::accuracy
