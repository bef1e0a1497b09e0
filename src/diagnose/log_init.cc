// Slow initialisation, phase by phase ("Init timings", NCCL 2.22 and newer).
#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/log_causes.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

// Communicators come up within a second or two; larger ones may take longer.
constexpr double kUsualSeconds = 2.0;
constexpr double kSecondsPerRank = 0.02;

struct Advice {
  std::string_view phase;
  std::string_view text;
};
constexpr Advice kAdvice[] = {
    {"bootstrap",
     "bootstrap waits for the last rank to arrive: let all ranks come to their first communication "
     "at the same time (data, "
     "model and CUDA set up before), use a fast interface (NCCL_SOCKET_IFNAME), and for thousands "
     "of ranks "
     "ncclCommInitRankScalable"},
    {"kernels",
     "kernels are loaded: CUDA_MODULE_LOADING=LAZY, and images built for this GPU's architecture"},
    {"alloc", "memory is reserved: look for other processes on the GPUs"},
    {"topo",
     "the topology is read: give it as a file (NCCL_TOPO_FILE), and see whether the driver's "
     "persistence mode is on"},
    {"graphs", "rings and trees are searched: give the topology as a file (NCCL_TOPO_FILE)"},
    {"connections", "ranks connect: look at the network's name resolution and adapters"},
    {"allgathers",
     "ranks exchange what they found: the bootstrap network is slow (NCCL_SOCKET_IFNAME)"},
};

std::string seconds(double value) {
  const auto hundredths = static_cast<std::int64_t>(std::llround(value * 100));
  std::string text =
      std::to_string(hundredths / 100) + "." + std::to_string(hundredths % 100 + 100).substr(1);
  return text + " s";
}

struct Slow {
  const Witness* witness = nullptr;
  const LogInitTimings* timings = nullptr;
};

std::string line_text(const LogInitTimings& timings) {
  std::string text = "Init timings: rank " + std::to_string(timings.rank) + " nranks " +
                     std::to_string(timings.nranks) + " total " + seconds(timings.total);
  for (const auto& phase : timings.phases) text += ", " + phase.name + " " + seconds(phase.seconds);
  return text;
}

std::vector<Slow> slow_ones(const LogView& view) {
  std::vector<Slow> slow;
  for (const Witness* witness : view.logs) {
    for (const LogInitTimings& timings : witness->log->timings) {
      const double usual =
          kUsualSeconds +
          kSecondsPerRank * static_cast<double>(std::max<std::int64_t>(timings.nranks - 16, 0));
      if (timings.total > usual) slow.push_back({witness, &timings});
    }
  }
  return slow;
}

std::vector<DiagnosisFinding> find_slow_init(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  if (has_failed(view)) return {};
  const std::vector<Slow> slow = slow_ones(view);
  if (slow.empty()) return {};
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::slow_init;
  finding.confidence = Confidence::likely;
  const Slow* worst = &slow.front();
  std::map<std::string, double> phases;
  for (const Slow& one : slow) {
    if (one.timings->total > worst->timings->total) worst = &one;
    for (const auto& phase : one.timings->phases) phases[phase.name] += phase.seconds;
    if (finding.evidence.size() < kMostLogEvidence)
      finding.evidence.push_back(
          evidence_line(*one.witness, one.timings->line, line_text(*one.timings)));
  }
  finding.message = "initialisation of " + std::to_string(worst->timings->nranks) + " ranks took " +
                    seconds(worst->timings->total);
  const auto longest =
      std::max_element(phases.begin(), phases.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (longest == phases.end()) return {std::move(finding)};
  finding.message += ", most of it in " + longest->first + " (" +
                     seconds(longest->second / static_cast<double>(slow.size())) + " on average)";
  finding.advice = "look at the phase that takes longest";
  for (const Advice& advice : kAdvice) {
    if (advice.phase == longest->first) finding.advice = advice.text;
  }
  return {std::move(finding)};
}

}  // namespace

extern constinit const Verdict kLogInit{
    .name = "log_init",
    .summary = "which phase of initialisation took the time",
    .find = find_slow_init,
};

}  // namespace commlens
