// Problem: communication that compute hides is not free: it takes cores, memory bandwidth and
// caches from the kernels beside it.
//
//   step 4  [gemm 100 us][gemm 240 us]        the second gemm of step 5 is the twin of the second
//   of step 5  [gemm 101 us][gemm 288 us]        step 4: same work, but beside communication comm 5
//   [== all-reduce ==]
//
// Method: a name stands for kernels of many shapes, and those that run beside communication may
// well be the larger ones. So twins are the n-th kernels of a name in two steps of one rank, one of
// them alone and one beside: where communication begins differs a little from step to step. Only
// names that run equally often in every step count, and only with enough such pairs (kFewest). What
// the pairs show is taken for all kernels of the name beside communication.
//
// When it is wrong: a kernel whose input differs from step to step. Where all steps overlap alike
// there are no pairs, and nothing is said.
#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <vector>

#include "advice/candidate.h"
#include "advice/words.h"
#include "model/interval_set.h"

namespace commlens {
namespace {

constexpr std::size_t kFewest = 4;  // positions of a name with both kinds
constexpr std::size_t kFewestSteps = 4;
constexpr double kSlower = 1.03;  // beside against alone
constexpr double kBeside = 0.5;   // of its time, so that a kernel counts as run beside

struct Kernel {
  Ns length = 0;
  std::uint32_t node = 0;
  std::uint32_t step = 0;
  bool alone = false;
  bool beside = false;
};

// Along one stream: in which step a kernel is and how much communication runs beside it. Kernels
// are asked for in the order of their starts.
class Surroundings {
 public:
  Surroundings(const std::vector<Ns>& step_begins, std::span<const Interval> communication)
      : step_begins_(step_begins), communication_(communication) {}

  std::uint32_t step_at(Ns start) {
    while (step_ < step_begins_.size() && step_begins_[step_] <= start) ++step_;
    return static_cast<std::uint32_t>(step_);
  }
  Ns communication_in(Interval time) {
    while (part_ < communication_.size() && communication_[part_].end <= time.start) ++part_;
    Ns sum = 0;
    for (std::size_t i = part_; i < communication_.size() && communication_[i].start < time.end;
         ++i)
      sum += clip(communication_[i], time).length();
    return sum;
  }

 private:
  const std::vector<Ns>& step_begins_;
  std::span<const Interval> communication_;
  std::size_t step_ = 0;
  std::size_t part_ = 0;
};

IntervalSet communication_of(const Work& work) {
  std::vector<Interval> times;
  for (const CommNode& comm : work.comm)
    times.push_back({work.start[comm.node], work.end[comm.node]});
  return IntervalSet(std::move(times));
}

// Where the steps of a rank begin on the GPU, in common time.
std::vector<Ns> step_begins(const Job& job, std::uint32_t row) {
  std::vector<Ns> begins;
  for (const DeviceTimeline& device : job.ranks[row].devices) {
    for (const auto& [number, window] : device.steps)
      begins.push_back(job.clocks.known ? job.clocks.common(row, window.start) : window.start);
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

// By StringId, in the order of time. Nothing where there are too few steps to compare.
std::vector<std::vector<Kernel>> kernels_by_name(const Job& job, std::uint32_t row) {
  const std::vector<Ns> begins = step_begins(job, row);
  if (begins.size() < kFewestSteps) return {};
  const Work& work = job.ranks[row].work;
  std::vector<std::vector<Kernel>> kernels(job.ranks[row].recording.strings.size());
  const IntervalSet communication = communication_of(work);
  for (std::size_t stream = 0; stream + 1 < work.stream_begins.size(); ++stream) {
    Surroundings around(begins, communication.parts());
    for (std::uint32_t node = work.stream_begins[stream]; node < work.stream_begins[stream + 1];
         ++node) {
      if (work.kind[node] != ActivityClass::compute || !work.name[node].valid()) continue;
      const Interval time{work.start[node], work.end[node]};
      const Ns beside = around.communication_in(time);
      kernels[work.name[node].index()].push_back(
          {.length = time.length(),
           .node = node,
           .step = around.step_at(time.start),
           .alone = beside == 0,
           .beside = beside > 0 &&
                     static_cast<double>(beside) >= kBeside * static_cast<double>(time.length())});
    }
  }
  for (std::vector<Kernel>& list : kernels) {
    const auto earlier = [&work](const Kernel& a, const Kernel& b) {
      return work.start[a.node] < work.start[b.node];
    };
    if (!std::is_sorted(list.begin(), list.end(), earlier))
      std::stable_sort(list.begin(), list.end(), earlier);
  }
  return kernels;
}

// By position in the step; empty where the steps between the first and the last (which may be cut)
// do not hold equally many.
std::vector<std::vector<const Kernel*>> positions_of(const std::vector<Kernel>& kernels) {
  std::vector<std::span<const Kernel>> steps;
  for (auto first = kernels.begin(); first != kernels.end();) {
    const auto last = std::find_if(
        first, kernels.end(), [first](const Kernel& kernel) { return kernel.step != first->step; });
    steps.emplace_back(first, last);
    first = last;
  }
  if (steps.size() < kFewestSteps) return {};
  const std::span<const std::span<const Kernel>> whole =
      std::span(steps).subspan(1, steps.size() - 2);
  std::vector<std::vector<const Kernel*>> positions(whole.front().size());
  for (const std::span<const Kernel> step : whole) {
    if (step.size() != positions.size()) return {};
    for (std::size_t i = 0; i < step.size(); ++i) positions[i].push_back(&step[i]);
  }
  return positions;
}

double mean(const std::vector<Ns>& lengths) {
  double sum = 0;
  for (const Ns length : lengths) sum += static_cast<double>(length);
  return sum / static_cast<double>(lengths.size());
}

// How long the kernels of a name take alone, as a part of what they take beside communication; 1
// where that is not known or makes no difference.
double part_alone(const std::vector<Kernel>& kernels) {
  std::vector<double> parts;
  for (const auto& position : positions_of(kernels)) {
    std::vector<Ns> alone;
    std::vector<Ns> beside;
    for (const Kernel* kernel : position) {
      if (kernel->alone) alone.push_back(kernel->length);
      if (kernel->beside) beside.push_back(kernel->length);
    }
    if (!alone.empty() && !beside.empty() && mean(beside) > 0)
      parts.push_back(mean(alone) / mean(beside));
  }
  if (parts.size() < kFewest) return 1;
  std::sort(parts.begin(), parts.end());
  // Three in four must say so.
  if (parts[parts.size() * 3 / 4] >= 1) return 1;
  const double middle = parts[parts.size() / 2];
  return middle * kSlower <= 1 ? middle : 1;
}

struct Cost {
  Ns time = 0;  // of all ranks
  std::int64_t kernels = 0;
  std::map<std::string_view, Ns> by_name;
};

void add_rank(const Scene& scene, std::uint32_t row, Candidate& candidate, Cost& cost) {
  const RankTimeline& rank = scene.job().ranks[row];
  if (rank.work.comm.empty()) return;
  const auto by_name = kernels_by_name(scene.job(), row);
  for (std::size_t id = 0; id < by_name.size(); ++id) {
    const std::vector<Kernel>& kernels = by_name[id];
    const double part = part_alone(kernels);
    if (part == 1) continue;
    for (const Kernel& kernel : kernels) {
      if (!kernel.beside) continue;
      const auto lost = static_cast<Ns>(static_cast<double>(kernel.length) * (1 - part));
      candidate.change.kernels.emplace_back(scene.graph().node(row, kernel.node), part);
      cost.time += lost;
      ++cost.kernels;
      cost.by_name[rank.recording.strings.get(StringId::from(id))] += lost;
    }
  }
}

std::string_view costliest(const Cost& cost) {
  const auto most =
      std::max_element(cost.by_name.begin(), cost.by_name.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->first.substr(0, 60);
}

std::vector<Candidate> find_contention(const Scene& scene) {
  Candidate candidate;
  Cost cost;
  std::int64_t ranks = 0;
  for (std::uint32_t row = 0; row < scene.job().ranks.size(); ++row) {
    add_rank(scene, row, candidate, cost);
    ranks += scene.graph().work(row).comm.empty() ? 0 : 1;
  }
  if (cost.kernels == 0) return {};
  std::sort(candidate.change.kernels.begin(), candidate.change.kernels.end());
  const Ns per_rank = scene.per_step(cost.time / ranks);
  Finding& finding = candidate.finding;
  finding.confidence = Confidence::likely;
  finding.title = "Overlap slows compute down: kernels beside communication take " +
                  time_words(per_rank) + " a step longer than alone";
  finding.evidence = count_words(cost.kernels, "kernel") +
                     " against the same kernels of other steps that ran alone; most by " +
                     std::string(costliest(cost));
  finding.advice =
      "Give communication fewer of the GPU's cores (NCCL_MAX_CTAS, or min_ctas and max_ctas of the "
      "group's options), let it use copy engines or NVLink SHARP where there are, or move it "
      "beside "
      "kernels that need less memory bandwidth.";
  return {std::move(candidate)};
}

}  // namespace

extern const Finder kContention;
constinit const Finder kContention{
    .id = "contention",
    .summary = "Kernels that are slower beside communication than their twins alone",
    .find = find_contention,
};

}  // namespace commlens
