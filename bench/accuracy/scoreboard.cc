#include "scoreboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace commlens::accuracy {
namespace {

constexpr std::size_t kCertain = static_cast<std::size_t>(Confidence::certain);
constexpr std::size_t kLikely = static_cast<std::size_t>(Confidence::likely);
constexpr std::size_t kUndecidable = static_cast<std::size_t>(Confidence::undecidable);

RowScore& operator+=(RowScore& sums, const RowScore& more) {
  sums.right += more.right;
  sums.wrong_cause += more.wrong_cause;
  sums.wrong_culprit += more.wrong_culprit;
  return sums;
}

std::int64_t rows_of(const RowScore& sums) {
  return sums.right + sums.wrong_cause + sums.wrong_culprit;
}

// Faults that have a culprit.
struct FaultSums {
  std::array<std::int64_t, kExcuses> count{};  // by Excuse
  std::int64_t found = 0;                      // of those without excuse
  std::int64_t certain = 0;
  std::int64_t pointed = 0;
  std::int64_t must() const { return count[static_cast<std::size_t>(Excuse::none)]; }
  double recall() const {
    return must() == 0 ? 1 : static_cast<double>(found) / static_cast<double>(must());
  }
  void add(const FaultScore& fault) {
    ++count[static_cast<std::size_t>(fault.excuse)];
    if (fault.excuse != Excuse::none) return;
    found += fault.found ? 1 : 0;
    certain += fault.certain ? 1 : 0;
    pointed += fault.pointed ? 1 : 0;
  }
};

struct Sums {
  std::int64_t runs = 0;
  FaultSums faults{};
  std::array<RowScore, 3> rows{};
  std::int64_t alarms = 0;  // runs in which anybody was named for sure or likely
  std::int64_t bounds_missed = 0;
  std::vector<double> wait_errors{};  // where waits must hold
  std::vector<Ns> times{};
};

bool alarmed(const RunScore& run) {
  return rows_of(run.rows[kCertain]) + rows_of(run.rows[kLikely]) > 0;
}

void add(Sums& sums, const RunScore& run) {
  ++sums.runs;
  for (const FaultScore& fault : run.faults) sums.faults.add(fault);
  for (std::size_t i = 0; i < sums.rows.size(); ++i) sums.rows[i] += run.rows[i];
  sums.alarms += alarmed(run) ? 1 : 0;
  sums.bounds_missed += run.bounds_missed > 0 ? 1 : 0;
  if (run.waits_must_hold) sums.wait_errors.push_back(run.waits_known ? run.wait_error : 1);
  sums.times.push_back(run.time);
}

template <class Value>
Value percentile(std::vector<Value> values, int percent) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

Sums sum_where(std::span<const RunScore> runs, const std::function<bool(const RunScore&)>& wanted) {
  Sums sums;
  for (const RunScore& run : runs) {
    if (wanted(run)) add(sums, run);
  }
  return sums;
}

// --- Tables ---

std::string rows_text(const RowScore& sums) {
  return fmt::format("{} / {} / {}", sums.right, sums.wrong_cause, sums.wrong_culprit);
}

std::string share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string job_row(std::string_view name, const Sums& sums) {
  const std::string errors =
      sums.wait_errors.empty()
          ? "-"
          : fmt::format("{:.2f} %, {:.2f} %", 100 * percentile(sums.wait_errors, 50),
                        100 * percentile(sums.wait_errors, 100));
  return fmt::format("| {} | {} | {} of {} | {} | {} | {} | {} | {} | {} |\n", name, sums.runs,
                     sums.faults.found, sums.faults.must(), rows_text(sums.rows[kCertain]),
                     rows_text(sums.rows[kLikely]), rows_of(sums.rows[kUndecidable]),
                     share(sums.alarms, sums.runs),
                     share(sums.runs - sums.bounds_missed, sums.runs), errors);
}

std::string job_table(std::span<const RunScore> runs) {
  std::string text =
      "| jobs | runs | culprits found | certain | likely | undecidable | anybody named | bounds "
      "hold | wait error p50, max |\n|---|---|---|---|---|---|---|---|---|\n";
  const auto alone = [](std::size_t kind) {
    return [kind](const RunScore& run) { return run.key.kinds == std::vector<std::size_t>{kind}; };
  };
  const auto paired = [](std::size_t kind) {
    return [kind](const RunScore& run) {
      return run.key.kinds.size() > 1 &&
             std::ranges::find(run.key.kinds, kind) != run.key.kinds.end();
    };
  };
  const auto row = [&](const std::string& name, const auto& wanted) {
    const Sums sums = sum_where(runs, wanted);
    if (sums.runs > 0) text += job_row(name, sums);
  };
  row("healthy", [](const RunScore& run) { return run.key.kinds.empty(); });
  for (std::size_t kind = 0; kind < fault_kinds().size(); ++kind)
    row(fmt::format("`{}`", fault_kinds()[kind].name), alone(kind));
  for (std::size_t kind = 0; kind < fault_kinds().size(); ++kind)
    row(fmt::format("`{}` and another", fault_kinds()[kind].name), paired(kind));
  row("all", [](const RunScore&) { return true; });
  return text;
}

std::string fault_table(std::span<const RunScore> runs) {
  std::map<std::string, FaultSums> by_kind;
  for (const RunScore& run : runs) {
    for (const FaultScore& fault : run.faults) by_kind[fault.kind].add(fault);
  }
  std::string text =
      "| fault | to be found | found | of them certain | only undecidable | too small | cannot be "
      "known | not exposed | below the clocks |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [kind, sums] : by_kind) {
    const auto excused = [&counts = sums.count](Excuse excuse) {
      return counts[static_cast<std::size_t>(excuse)];
    };
    text += fmt::format("| {} | {} | {} ({}) | {} | {} | {} | {} | {} | {} |\n", kind, sums.must(),
                        sums.found, share(sums.found, sums.must()), sums.certain,
                        sums.pointed - sums.found, excused(Excuse::small), excused(Excuse::hidden),
                        excused(Excuse::unexposed), excused(Excuse::clocks));
  }
  return text;
}

// --- Requirements ---

struct Requirement {
  std::string wanted;
  std::string found;
  bool met = false;
  Demand demand = Demand::safe;  // the least that asks for it
};

std::vector<Requirement> requirements(std::span<const RunScore> runs) {
  const Sums all = sum_where(runs, [](const RunScore&) { return true; });
  const Sums healthy = sum_where(runs, [](const RunScore& run) { return run.key.kinds.empty(); });
  const std::int64_t certain_wrong = all.rows[kCertain].wrong_culprit;
  const std::int64_t likely = rows_of(all.rows[kLikely]);
  const std::int64_t likely_wrong = all.rows[kLikely].wrong_culprit;
  const double worst = percentile(all.wait_errors, 100);
  return {
      {"no wrong culprit is certain",
       fmt::format("{} of {}", certain_wrong, rows_of(all.rows[kCertain])), certain_wrong == 0},
      {"at most 1 % wrong among the likely", fmt::format("{} of {}", likely_wrong, likely),
       likely_wrong * 100 <= likely},
      {"at least 95 % of the culprits that must be found are",
       fmt::format("{} of {}", all.faults.found, all.faults.must()), all.faults.recall() >= 0.95,
       Demand::all},
      {"clock bounds hold the truth in every run",
       fmt::format("not in {} of {}", all.bounds_missed, all.runs), all.bounds_missed == 0},
      {"total waiting within 1 % where everything was recorded",
       fmt::format("at most {:.2f} % off in {} runs", 100 * worst, all.wait_errors.size()),
       worst <= 0.01},
      {"at most 0.5 % of the healthy jobs name anybody",
       fmt::format("{} of {}", healthy.alarms, healthy.runs), healthy.alarms * 200 <= healthy.runs},
  };
}

std::string key_text(const CaseKey& key) { return fmt::format("{} {}", name_of(key), key.seed); }

}  // namespace

std::string scoreboard(std::span<const RunScore> runs, bool with_times) {
  std::string text = "| required | found | |\n|---|---|---|\n";
  for (const Requirement& each : requirements(runs))
    text += fmt::format("| {} | {} | {} |\n", each.wanted, each.found, each.met ? "met" : "missed");
  text +=
      "\nCertain and likely are rows that name the culprit of a fault with its cause / with "
      "another "
      "cause / somebody else.\n\n";
  text += job_table(runs) + "\n" + fault_table(runs);
  if (!with_times) return text;
  std::vector<Ns> times;
  for (const RunScore& run : runs) times.push_back(run.time);
  return text + fmt::format("\nAnalysis of one job: median {:.1f} ms, p99 {:.1f} ms.\n",
                            static_cast<double>(percentile(times, 50)) / 1e6,
                            static_cast<double>(percentile(times, 99)) / 1e6);
}

std::vector<std::string> failures(std::span<const RunScore> runs, Demand demand) {
  std::vector<std::string> sentences;
  for (const Requirement& each : requirements(runs)) {
    if (!each.met && each.demand <= demand) sentences.push_back(each.wanted + ": " + each.found);
  }
  return sentences;
}

std::string faulty_runs(std::span<const RunScore> runs) {
  std::string text;
  const auto note = [&text](const RunScore& run, std::string_view what) {
    text += fmt::format("{}: {}\n", key_text(run.key), what);
  };
  for (const RunScore& run : runs) {
    if (run.rows[kCertain].wrong_culprit > 0) note(run, "WRONG CULPRIT, certain");
    if (run.rows[kLikely].wrong_culprit > 0) note(run, "wrong culprit, likely");
    if (run.rows[kCertain].wrong_cause + run.rows[kLikely].wrong_cause > 0)
      note(run, "wrong cause");
    if (run.bounds_missed > 0) note(run, "clock bounds without the truth");
    if (run.waits_must_hold && (!run.waits_known || run.wait_error > 0.01))
      note(run, fmt::format("waits {:.2f} % off", run.waits_known ? 100 * run.wait_error : 100));
    for (const FaultScore& fault : run.faults) {
      if (fault.excuse == Excuse::none && !fault.found) note(run, fault.kind + " missed");
    }
  }
  return text;
}

}  // namespace commlens::accuracy
