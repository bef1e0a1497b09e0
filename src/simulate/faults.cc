#include "simulate/faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace commlens::simulate {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorKind::usage, "simulate: " + sentence);
}

void check_range(const Fault& fault, std::string_view what, std::int64_t value, std::int64_t low,
                 std::int64_t high) {
  if (value >= low && value <= high) return;
  refuse(fmt::format("{}: {} is {}, but must be from {} to {}", fault_name(fault.kind), what, value,
                     low, high));
}

void check_rank(const JobSpec& spec, const Fault& fault, int rank) {
  check_range(fault, "the rank", rank, 0, spec.world() - 1);
}

constexpr std::int64_t kLeastFactor = kMillion / 10;
constexpr std::int64_t kMostFactor = 1000 * kMillion;
constexpr Ns kMostNs = 10'000'000'000;
constexpr std::int64_t kMostDrift = 1'000'000;  // ppb: 1000 ppm

void check_amounts(const JobSpec& spec, const Fault& fault) {
  const auto factor_in_range = [](std::int64_t ppm) {
    return ppm >= kLeastFactor && ppm <= kMostFactor;
  };
  if (!factor_in_range(fault.factor_ppm))
    refuse(fmt::format("{}: the factor must be from 0.1 to 1000", fault_name(fault.kind)));
  check_range(fault, "the time in ns", fault.amount_ns,
              fault.kind == FaultKind::clock ? -kMostNs : 0, kMostNs);
  check_range(fault, "the drift in billionths", fault.drift_ppb, -kMostDrift, kMostDrift);
  for (const std::int64_t step : fault.steps)
    check_range(fault, "the step", step, spec.first_step, spec.first_step + spec.steps - 1);
}

void check_place(const JobSpec& spec, const Fault& fault) {
  if (fault.kind == FaultKind::clock) {
    const int hosts = (spec.world() + spec.ranks_per_host - 1) / spec.ranks_per_host;
    return check_range(fault, "the host", fault.host, 0, hosts - 1);
  }
  check_rank(spec, fault, fault.rank);
  if (fault.kind == FaultKind::slow_link) {
    check_rank(spec, fault, fault.peer);
    if (fault.rank == fault.peer) refuse("slow_link: a link has two ends");
  }
  if (fault.kind == FaultKind::lose)
    check_range(fault, "the number of events", fault.count, 1, 1'000'000'000);
  if (fault.kind == FaultKind::unequal && !spec.moe)
    refuse("unequal: only a mixture of experts (moe) has tokens to spread unequally");
}

}  // namespace

std::string_view fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::unequal: return "unequal";
    case FaultKind::slow: return "slow";
    case FaultKind::late: return "late";
    case FaultKind::slow_link: return "slow_link";
    case FaultKind::clock: return "clock";
    case FaultKind::window_shift: return "window_shift";
    case FaultKind::lose: return "lose";
    case FaultKind::missing: return "missing";
  }
  return "";
}

std::string_view fault_cause(FaultKind kind) {
  switch (kind) {
    case FaultKind::unequal: return "imbalance";
    case FaultKind::slow: return "compute";
    case FaultKind::late: return "host";
    case FaultKind::slow_link: return "link";
    default: return "";
  }
}

void validate(const JobSpec& spec, const Faults& faults) {
  std::vector<bool> missing(static_cast<std::size_t>(spec.world()));
  for (const Fault& fault : faults.list) {
    check_place(spec, fault);
    check_amounts(spec, fault);
    if (fault.kind == FaultKind::missing) missing[static_cast<std::size_t>(fault.rank)] = true;
  }
  if (std::ranges::count(missing, false) == 0) refuse("missing: one rank at least must be left");
  if (faults.end_jitter_ns < 0 || faults.end_jitter_ns > kMostNs)
    refuse("the end jitter must be from 0 to 10 s");
}

SimulatedJob simulate(const JobSpec& spec, const Faults& faults) {
  spec.validate();
  validate(spec, faults);
  Plan plan = make_plan(spec);
  apply_to_plan(plan, faults);
  SimulatedJob job = run(std::move(plan));
  apply_to_job(job, faults);
  return job;
}

}  // namespace commlens::simulate
