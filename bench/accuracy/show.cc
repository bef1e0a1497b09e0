#include "show.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "answer.h"
#include "model/rank_list.h"
#include "score.h"

namespace commlens::accuracy {
namespace {

std::string spec_text(const simulate::JobSpec& spec) {
  return fmt::format(
      "dp {} tp {} pp {}{}{}, {} a host, {} layers, {} steps from {}, {} microbatches, seed {}\n",
      spec.dp, spec.tp, spec.pp, spec.fsdp ? " fsdp" : "", spec.moe ? " moe" : "",
      spec.ranks_per_host, spec.layers, spec.steps, spec.first_step, spec.microbatches, spec.seed);
}

std::string fault_text(const simulate::FaultTruth& truth) {
  const simulate::Fault& fault = truth.fault;
  std::string text = std::string(truth.kind);
  if (fault.rank >= 0) text += fmt::format(" rank {}", fault.rank);
  if (fault.peer >= 0) text += fmt::format("-{}", fault.peer);
  if (fault.host >= 0)
    text += fmt::format(" host {}: {} ns, {} ppb", fault.host, fault.amount_ns, fault.drift_ppb);
  if (fault.count > 0) text += fmt::format(": {} events", fault.count);
  if (truth.cause.empty()) return text + "\n";
  return text +
         fmt::format(
             " x{:.3f} {} ns in steps {}: {}, {:.3f} ms longer ({:.2f} % of its steps), {:.3f} "
             "ms of waiting{}\n",
             static_cast<double>(fault.factor_ppm) / 1e6, fault.amount_ns,
             format_ranks(fault.steps), truth.cause, static_cast<double>(truth.extra) / 1e6,
             100 * truth.share_of_step, static_cast<double>(truth.added_waits) / 1e6,
             truth.hidden_by.empty() ? "" : "; hidden: " + truth.hidden_by);
}

std::string place_of(const Straggler& row) {
  if (row.rank) return fmt::format("rank {}", *row.rank);
  return row.link.empty() ? "host " + row.host : "link " + format_ranks(row.link);
}

// What each rank cost the others in each step, by cause; the costliest first.
std::string origins_text(const Job& job) {
  std::map<std::tuple<std::uint32_t, Cause, std::int64_t>, WaitSums> sums;
  for (const auto& [origin, part] : job.waits.origins)
    sums[{origin.rank, origin.cause, origin.step}] += part;
  std::vector<std::pair<Ns, std::string>> lines;
  for (const auto& [key, part] : sums) {
    const auto& [rank, cause, step] = key;
    lines.emplace_back(
        -part.exposed,
        fmt::format("origin: rank {}, {}, step {}: {:.3f} ms, exposed {:.3f}, likely "
                    "{:.3f}, certain {:.3f}\n",
                    job.ranks[rank].rank, cause_name(cause), step,
                    static_cast<double>(part.total) / 1e6, static_cast<double>(part.exposed) / 1e6,
                    static_cast<double>(part.likely) / 1e6,
                    static_cast<double>(part.certain) / 1e6));
  }
  std::sort(lines.begin(), lines.end());
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, lines.size()); ++i) text += lines[i].second;
  return text;
}

// What a rank's own time was in each step.
std::string steps_text(const Job& job, std::int64_t rank) {
  std::string text;
  for (const RankTimeline& row : job.ranks) {
    if (row.rank != rank) continue;
    for (const StepFigures& step : row.devices.front().step_figures) {
      const Breakdown& figures = step.breakdown;
      text += fmt::format(
          "rank {}, step {}: {:.3f} ms, compute {:.3f}, idle with nothing queued {:.3f}\n", rank,
          step.number, static_cast<double>(figures.window.length()) / 1e6,
          static_cast<double>(figures.compute_only + figures.hidden_comm) / 1e6,
          static_cast<double>(figures.host_idle) / 1e6);
    }
  }
  return text;
}

std::string answer_text(const Job& job) {
  const Matching& matching = job.matching;
  std::string text =
      fmt::format("matched {}, partial {}, mismatched {}, unmatched {}\n", matching.matched,
                  matching.partial, matching.mismatched, matching.unmatched);
  for (std::size_t row = 0; row < job.clocks.lines.size(); ++row) {
    const ClockLine& line = job.clocks.lines[row];
    text += fmt::format("clock of rank {}: {} in [{}, {}], spread {}, drift {:.2f} ppm, {}\n",
                        job.ranks[row].rank, line.offset ? std::to_string(*line.offset) : "null",
                        line.lower ? std::to_string(*line.lower) : "-",
                        line.upper ? std::to_string(*line.upper) : "-", line.spread, line.drift_ppm,
                        clock_method_name(line.method));
  }
  text += fmt::format("waits {} ms, undecidable {} ms, unattributed {} ms\n",
                      static_cast<double>(job.waits.total) / 1e6,
                      static_cast<double>(job.waits.undecidable) / 1e6,
                      static_cast<double>(job.waits.unattributed) / 1e6);
  for (const Straggler& row : job.stragglers.rows)
    text += fmt::format("{}, {}{}, {}, {:.2f} %: {}\n", place_of(row), cause_name(row.cause),
                        row.burst ? " (burst)" : "", confidence_name(row.confidence),
                        100 * row.share, row.evidence);
  for (const std::string& remark : job.stragglers.remarks) text += "remark: " + remark + "\n";
  return text;
}

}  // namespace

std::string show(const CaseKey& key) {
  const Case made = make_case(key);
  const Answer answer = analyse(record(made));
  std::string text = "--- truth\n" + spec_text(made.scenario.spec);
  for (const simulate::FaultTruth& truth : made.faults) text += fault_text(truth);
  for (std::size_t rank = 0; rank < made.job.ranks.size(); ++rank) {
    const simulate::Clock& own = made.job.ranks[rank].clock;
    if (own.offset_ns != 0)
      text += fmt::format("clock of rank {}: {} ns to rank 0\n", rank,
                          made.job.ranks[0].clock.offset_ns - own.offset_ns);
  }
  text += fmt::format("waits {} ms\n", static_cast<double>(made.truth.waits.total) / 1e6);
  text += "--- answer\n" + answer_text(answer.job) + origins_text(answer.job);
  for (const simulate::FaultTruth& truth : made.faults) {
    if (truth.fault.rank < 0) continue;
    text += steps_text(answer.job, truth.fault.rank);
    text += steps_text(answer.job, truth.fault.rank == 0 ? 1 : 0);
  }
  return text;
}

}  // namespace commlens::accuracy
