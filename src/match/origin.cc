// Problem: the last to arrive need not be the one at fault. A slow rank makes its partner wait, and
// the partner is late somewhere else:
//
//   rank 1  [===== slow =====|tp]
//   rank 0  [== ok ==|wwwwwww|tp|dp]          late in dp only because it waited in tp
//   rank 2  [== ok ==|tp]|wwwwwwwwww|dp]      waits for 0; the origin is 1
//
// Method: since the last operation that waiter and culprit left together, what did the culprit do
// more of? Its compute, its host, its transfers: there the wait ends. Its waiting: there it is
// handed on to the waits that the culprit had in that stretch. Waits are visited from the last to
// the first, each passing on what it carries (its own time and what later waits handed to it), so
// the whole is linear in the number of waits and no nanosecond is lost.
// When it is wrong: what stands in no class (unmatched communication, gaps with work queued) is not
// guessed at: `unattributed`. Stretches are compared by length; what ran side by side counts once,
// compute first.
#include "match/origin.h"

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>

#include "match/comparison.h"
#include "match/usual_transfer.h"
#include "model/shares.h"

namespace commlens {
namespace {

// Each of the four sums by itself, so that each adds up. Mostly they are equal.
void split(const WaitSums& sums, std::span<const Ns> weights, std::span<Ns> shares,
           std::span<WaitSums> parts) {
  Ns done = -1;
  for (const auto sum :
       {&WaitSums::total, &WaitSums::exposed, &WaitSums::likely, &WaitSums::certain}) {
    if (sums.*sum != done) split_by_weight(sums.*sum, weights, shares);
    done = sums.*sum;
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].*sum = shares[i];
  }
}

std::vector<WaitSums> split(const WaitSums& sums, const std::vector<Ns>& weights) {
  std::vector<WaitSums> parts(weights.size());
  std::vector<Ns> shares(weights.size());
  split(sums, weights, shares, parts);
  return parts;
}

template <std::size_t kCount>
std::array<WaitSums, kCount> split(const WaitSums& sums, const std::array<Ns, kCount>& weights) {
  std::array<WaitSums, kCount> parts{};
  std::array<Ns, kCount> shares{};
  split(sums, weights, shares, parts);
  return parts;
}

class OriginTracer {
 public:
  OriginTracer(const Job& job, const Lateness& lateness, Waits& waits)
      : job_(job),
        lateness_(lateness),
        numbers_(lateness.numbers),
        waits_(waits),
        comparison_(job, waits),
        usual_(job, waits),
        carried_(numbers_.size()),
        place_(numbers_.size(), 0) {}
  void run();

 private:
  std::vector<std::uint32_t> order_waits();
  WaitSums own(std::uint32_t number) const;
  void charge(std::uint32_t waiter, std::uint32_t culprit, const WaitSums& sums);
  void hand_on(std::uint32_t from, const Part& culprit, const WaitSums& sums, std::size_t place);
  void charge_transfers(std::uint32_t from, const Part& culprit, const WaitSums& sums);
  void originate(const Part& culprit, Cause cause, std::int32_t group, const WaitSums& sums);
  void leave(const WaitSums& sums) { waits_.unattributed_sums += sums; }

  const Wait& wait(const Part& part) const { return waits_.of[part.rank][part.device][part.op]; }

  const Job& job_;
  const Lateness& lateness_;
  const CommNumbers& numbers_;
  Waits& waits_;
  Comparison comparison_;
  UsualTransfer usual_;
  std::vector<WaitSums> carried_;     // by number: handed on by later waits
  std::vector<std::uint32_t> place_;  // by number: in the order of visiting, from 1; 0: no wait
};

// From the last arrival to the first.
std::vector<std::uint32_t> OriginTracer::order_waits() {
  struct Placed {
    Ns at, entry;
    std::uint32_t number;
    auto operator<=>(const Placed&) const = default;
  };
  std::vector<Placed> waits;
  for (std::uint32_t number = 0; number < numbers_.size(); ++number) {
    if (wait(numbers_.part(number)).wait == 0) continue;
    waits.push_back(
        {lateness_.arrivals[lateness_.arrival_of[number]].at, lateness_.entries[number], number});
  }
  std::sort(waits.begin(), waits.end(), std::greater<>());
  std::vector<std::uint32_t> order;
  for (const Placed& placed : waits) {
    order.push_back(placed.number);
    place_[placed.number] = static_cast<std::uint32_t>(order.size());
  }
  return order;
}

// What a wait carries of its own: nothing where it lies outside the window that figures are for.
WaitSums OriginTracer::own(std::uint32_t number) const {
  const Part& part = numbers_.part(number);
  if (!device_of(job_, part).exposures[part.op].starts_inside) return {};
  const Wait& wait = this->wait(part);
  return {.total = wait.wait,
          .exposed = wait.exposed,
          .likely = wait.likely ? wait.exposed : 0,
          .certain = wait.certain ? std::min(wait.exposed, wait.least_exposed) : 0};
}

void OriginTracer::run() {
  for (const std::uint32_t number : order_waits()) {
    WaitSums sums = own(number);
    sums += carried_[number];
    if (sums.total == 0) continue;
    if (!wait(numbers_.part(number)).known) {
      leave(sums);
      continue;
    }
    const auto& culprits = lateness_.arrivals[lateness_.arrival_of[number]].last;
    if (culprits.size() == 1) {
      charge(number, culprits.front(), sums);
      continue;
    }
    const auto shares = split(sums, std::vector<Ns>(culprits.size(), 1));
    for (std::size_t i = 0; i < culprits.size(); ++i) charge(number, culprits[i], shares[i]);
  }
  waits_.unattributed = waits_.unattributed_sums.total;
}

void OriginTracer::charge(std::uint32_t waiter, std::uint32_t culprit, const WaitSums& sums) {
  const Part& late = numbers_.part(culprit);
  const Part& held = numbers_.part(waiter);
  const auto more = comparison_.compare(late, held);
  if (!more || more->sum() == 0) return leave(sums);
  const auto shares = split(sums, more->weights());
  originate(late, more->unequal ? Cause::imbalance : Cause::compute, -1, shares[0]);
  originate(late, Cause::host, -1, shares[1]);
  hand_on(more->since, late, shares[2], place_[waiter]);
  charge_transfers(more->since, late, shares[3]);
  leave(shares[4]);
}

void OriginTracer::originate(const Part& culprit, Cause cause, std::int32_t group,
                             const WaitSums& sums) {
  if (sums.total == 0) return;
  waits_.by_rank[culprit.rank].originated += sums.total;
  waits_.origins[{
      .rank = culprit.rank, .cause = cause, .group = group, .step = comm_of(job_, culprit).step}] +=
      sums;
}

// The culprit waited itself: what it is charged with goes to its waits in the stretch.
void OriginTracer::hand_on(std::uint32_t from, const Part& culprit, const WaitSums& sums,
                           std::size_t place) {
  if (sums.total == 0) return;
  std::vector<StretchPart> waited = comparison_.parts(from, culprit);
  std::erase_if(waited, [](const StretchPart& part) { return part.waiting == 0; });
  std::vector<Ns> weights;
  for (const StretchPart& part : waited) weights.push_back(part.waiting);
  const auto shares = split(sums, weights);
  if (waited.empty()) return leave(sums);
  for (std::size_t i = 0; i < waited.size(); ++i) {
    const Part part{culprit.rank, culprit.device, waited[i].op};
    const std::uint32_t number = numbers_.of(part);
    // An order that the clocks' estimates turn round cannot be followed.
    if (place_[number] <= place) {
      leave(shares[i]);
      continue;
    }
    WaitSums handed = shares[i];
    if (!wait(part).certain) handed.certain = 0;
    if (!wait(part).likely) handed.likely = 0;
    carried_[number] += handed;
  }
}

// Its transfers took longer: those that took longer than is usual for their kind; where none did,
// it had more to move.
void OriginTracer::charge_transfers(std::uint32_t from, const Part& culprit, const WaitSums& sums) {
  if (sums.total == 0) return;
  std::vector<StretchPart> moved = comparison_.parts(from, culprit);
  std::erase_if(moved, [](const StretchPart& part) { return part.transfer == 0; });
  std::vector<Ns> beyond;
  std::vector<Ns> all;
  for (const StretchPart& part : moved) {
    const Part at{culprit.rank, culprit.device, part.op};
    beyond.push_back(usual_.beyond(at, part.transfer));
    all.push_back(part.transfer);
  }
  if (moved.empty()) return leave(sums);
  const bool slow = std::accumulate(beyond.begin(), beyond.end(), Ns{0}) > 0;
  const auto shares = split(sums, slow ? beyond : all);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const Part at{culprit.rank, culprit.device, moved[i].op};
    WaitSums share = shares[i];
    if (!wait(at).certain && wait(at).wait > 0) share.certain = 0;
    const bool link = slow && !usual_.more_bytes(at);
    originate(culprit, link ? Cause::link : Cause::imbalance, link ? usual_.group_of(at) : -1,
              share);
  }
}

}  // namespace

void trace_origins(const Job& job, const Lateness& lateness, Waits& waits) {
  OriginTracer(job, lateness, waits).run();
}

}  // namespace commlens
