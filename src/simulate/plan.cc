#include "simulate/plan.h"

#include "simulate/prng.h"
#include "simulate/schedule.h"

namespace commlens::simulate {
namespace {

constexpr std::uint64_t kTransferTimes = 4;  // purpose of the random stream

void set_transfers(Plan& plan) {
  const std::int64_t noise_ppm = to_ppm(plan.spec.noise);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    Collective& collective = plan.collectives[i];
    const Ns ideal = ideal_transfer(plan.spec, plan.layout, collective);
    collective.transfer = Prng(plan.spec.seed, kTransferTimes, i).jitter(ideal, noise_ppm);
  }
}

}  // namespace

Plan make_plan(const JobSpec& spec) {
  spec.validate();
  Plan plan{.spec = spec, .layout = make_layout(spec)};
  plan.programs.resize(static_cast<std::size_t>(spec.world()));
  SharedParts shared(plan);
  for (int rank = 0; rank < spec.world(); ++rank) write_schedule(plan, shared, rank);
  set_transfers(plan);
  return plan;
}

}  // namespace commlens::simulate
