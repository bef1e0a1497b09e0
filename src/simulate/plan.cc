#include "simulate/plan.h"

#include "simulate/prng.h"
#include "simulate/schedule.h"

namespace commlens::simulate {
namespace {

constexpr std::uint64_t kTransferTimes = 4;  // purpose of the random stream

}  // namespace

Ns noisy_transfer(const Plan& plan, std::size_t collective) {
  const Ns ideal = ideal_transfer(plan.spec, plan.layout, plan.collectives[collective]);
  return Prng(plan.spec.seed, kTransferTimes, collective).jitter(ideal, to_ppm(plan.spec.noise));
}

Plan make_plan(const JobSpec& spec) {
  spec.validate();
  Plan plan{.spec = spec, .layout = make_layout(spec)};
  plan.programs.resize(static_cast<std::size_t>(spec.world()));
  SharedParts shared(plan);
  for (int rank = 0; rank < spec.world(); ++rank) write_schedule(plan, shared, rank);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i)
    plan.collectives[i].transfer = noisy_transfer(plan, i);
  return plan;
}

}  // namespace commlens::simulate
