#include "simulate/fault_truth.h"

#include <algorithm>

#include "simulate/hidden.h"
#include "simulate/truth.h"

namespace commlens::simulate {
namespace {

// From the job's start to the last end on any GPU.
Ns duration(const SimulatedJob& job) {
  Ns last = 0;
  for (const RankTrace& trace : job.ranks) {
    for (const GpuEvent& event : trace.gpu) last = std::max(last, event.end);
  }
  return last;
}

Faults without(const Faults& faults, std::size_t index) {
  Faults others = faults;
  others.list.erase(others.list.begin() + static_cast<std::ptrdiff_t>(index));
  return others;
}

struct Whole {
  Ns duration = 0;
  WaitTruth waits{};
};

Whole measure(const SimulatedJob& job) {
  return {.duration = duration(job), .waits = find_truth(job).waits};
}

Ns sum(const std::vector<Ns>& values) {
  Ns total = 0;
  for (const Ns value : values) total += value;
  return total;
}

std::vector<std::int64_t> steps_of(const JobSpec& spec, const Fault& fault) {
  if (!fault.steps.empty()) return fault.steps;
  std::vector<std::int64_t> all;
  for (int i = 0; i < spec.steps; ++i) all.push_back(spec.first_step + i);
  return all;
}

void add_costs(FaultTruth& truth, const JobSpec& spec, const Whole& with, const Whole& other) {
  truth.extra = with.duration - other.duration;
  truth.added_waits = with.waits.total - other.waits.total;
  truth.added_exposed_waits = sum(with.waits.exposed_waited) - sum(other.waits.exposed_waited);
  const double in_its_steps = static_cast<double>(with.duration) / spec.steps *
                              static_cast<double>(truth.fault.steps.size());
  truth.share_of_step = static_cast<double>(truth.extra) / in_its_steps;
  truth.exposed_share =
      static_cast<double>(truth.added_exposed_waits) / in_its_steps / spec.world();
}

void add_recording_faults(std::vector<FaultTruth>& truths, const RecordOptions& record) {
  const auto add = [&truths](bool is, std::string_view kind) {
    if (is) truths.push_back({.kind = kind});
  };
  add(!record.hosts, "hosts_unknown");
  add(record.seq == SeqKind::none, "seq_none");
  add(record.seq == SeqKind::process, "seq_wrong");
  add(!record.metadata, "metadata_none");
}

}  // namespace

std::vector<FaultTruth> find_fault_truth(const Scenario& scenario, const SimulatedJob& job) {
  const Faults& faults = scenario.faults;
  const Whole with = measure(job);
  std::vector<FaultTruth> truths;
  for (std::size_t i = 0; i < faults.list.size(); ++i) {
    const Fault& fault = faults.list[i];
    FaultTruth& truth = truths.emplace_back();
    truth.kind = fault_name(fault.kind);
    truth.cause = fault_cause(fault.kind);
    truth.fault = fault;
    if (truth.cause.empty()) continue;
    truth.fault.steps = steps_of(scenario.spec, fault);
    add_costs(truth, scenario.spec, with, measure(simulate(scenario.spec, without(faults, i))));
    truth.hidden_by = hidden_by(scenario, job, fault);
  }
  add_recording_faults(truths, scenario.record);
  return truths;
}

}  // namespace commlens::simulate
