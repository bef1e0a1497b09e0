#include "simulate/routing.h"

#include <algorithm>
#include <numeric>

#include "simulate/plan.h"
#include "simulate/prng.h"

namespace commlens::simulate {
namespace {

std::uint64_t purpose_of(const RoutingKey& key) {
  constexpr std::uint64_t kRouting = std::uint64_t{3} << 60U;
  return kRouting + (static_cast<std::uint64_t>(key.group) << 32U) +
         static_cast<std::uint64_t>(key.step);
}

std::uint64_t index_of(const RoutingKey& key) {
  return (static_cast<std::uint64_t>(key.microbatch) << 32U) +
         static_cast<std::uint64_t>(key.layer);
}

}  // namespace

Ns Routing::share_of_work(int member, Ns time) const {
  const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const auto members = static_cast<std::int64_t>(rows.size());
  // In millionths, and of at most 1e9 rows, as the products would not fit.
  const std::int64_t scale = total / 1'000'000'000 + 1;
  const std::int64_t ppm =
      rows[static_cast<std::size_t>(member)] / scale * members * kMillion / (total / scale);
  return time / 1000 * ppm / 1000 + time % 1000 * ppm / kMillion;
}

Routing route_tokens(const JobSpec& spec, const RoutingKey& key) {
  const int members = spec.expert_group();
  Prng chance(spec.seed, purpose_of(key), index_of(key));
  std::vector<std::int64_t> popularity;
  for (int i = 0; i < members; ++i) {
    popularity.push_back(chance.jitter(kMillion, to_ppm(spec.moe_imbalance)));
  }
  const std::int64_t sum = std::accumulate(popularity.begin(), popularity.end(), std::int64_t{0});
  const std::int64_t tokens =
      std::max<std::int64_t>(1, spec.activation_bytes / (spec.hidden * kElementBytes));
  const std::int64_t total = tokens * spec.top_k;
  Routing routing;
  std::int64_t left = total;
  for (int i = 0; i < members; ++i) {
    routing.rows.push_back(total / sum * popularity[static_cast<std::size_t>(i)] +
                           total % sum * popularity[static_cast<std::size_t>(i)] / sum);
    left -= routing.rows.back();
  }
  for (std::size_t i = 0; left > 0; ++i, --left) ++routing.rows[i];
  return routing;
}

}  // namespace commlens::simulate
