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
// Cost: nearly all of it is comparing. What one rank has more of than another does not depend on
// what is carried, so all comparisons are made beforehand, on several threads, operation by
// operation of one group after the other: there the same few ranks' tables are read again and
// again. In the order of time it would be another group's each time, and memory the limit.
// When it is wrong: what stands in no class (unmatched communication, gaps with work queued) is not
// guessed at: `unattributed`. Stretches are compared by length; what ran side by side counts once,
// compute first.
#include "match/origin.h"

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

#include "base/parallel.h"
#include "match/comparison.h"
#include "match/excess_list.h"
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
  OriginTracer(const Job& job, const Lateness& lateness, unsigned threads, Waits& waits)
      : job_(job),
        lateness_(lateness),
        threads_(threads),
        numbers_(lateness.numbers),
        waits_(waits),
        tables_(job, waits, threads),
        comparison_(tables_),
        usual_(job, numbers_, waits),
        place_(numbers_.size(), kNone) {}
  void run();

 private:
  // What was asked last: of one late communication, for everybody who waited for it.
  struct LastStretch {
    std::uint32_t since = kNone;
    Part culprit;
    std::vector<StretchPart> parts;
  };
  struct LastOrigin {
    Origin origin;
    WaitSums* sums = nullptr;
  };

  void order_waits();
  std::vector<std::uint32_t> by_arrival(std::vector<std::uint32_t>& first) const;
  void compare_all();
  WaitSums own(std::uint32_t number) const;
  const std::vector<std::uint32_t>& culprits(std::uint32_t number) const {
    return lateness_.arrivals[lateness_.arrival_of[number]].last;
  }
  const std::vector<StretchPart>& parts(std::uint32_t since, const Part& culprit);
  void charge(std::size_t place, std::uint32_t culprit, const Excess& more, const WaitSums& sums);
  void charge_several(std::size_t place, const std::vector<std::uint32_t>& culprits);
  void hand_on(std::uint32_t from, const Part& culprit, const WaitSums& sums, std::size_t place);
  void charge_transfers(std::uint32_t from, const Part& culprit, const WaitSums& sums);
  void originate(const Part& culprit, Cause cause, std::int32_t group, const WaitSums& sums);
  void leave(const WaitSums& sums) { waits_.unattributed_sums += sums; }

  const Wait& wait(const Part& part) const { return waits_.of[part.rank][part.device][part.op]; }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const Job& job_;
  const Lateness& lateness_;
  unsigned threads_;
  const CommNumbers& numbers_;
  Waits& waits_;
  ComparisonTables tables_;
  Comparison comparison_;
  UsualTransfer usual_;
  std::vector<std::uint32_t> place_;  // by number: in the order of visiting; kNone: no wait
  // By place.
  std::vector<std::uint32_t> order_;  // numbers
  std::vector<WaitSums> carried_;     // its own, and what later waits handed on
  std::optional<ExcessList> more_;    // of those with one culprit; nothing: all zero
  LastStretch last_stretch_;
  LastOrigin last_origin_;
};

// From the last arrival to the first.
void OriginTracer::order_waits() {
  struct Placed {
    Ns at, entry;
    std::uint32_t number;
    auto operator<=>(const Placed&) const = default;
  };
  std::vector<Placed> waits;
  waits.reserve(numbers_.size());
  for (std::uint32_t number = 0; number < numbers_.size(); ++number) {
    if (wait(numbers_.part(number)).wait == 0) continue;
    waits.push_back(
        {lateness_.arrivals[lateness_.arrival_of[number]].at, lateness_.entries[number], number});
  }
  std::sort(waits.begin(), waits.end(), std::greater<>());
  order_.reserve(waits.size());
  for (const Placed& placed : waits) {
    place_[placed.number] = static_cast<std::uint32_t>(order_.size());
    order_.push_back(placed.number);
  }
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

// Places of waits, by what they waited for: those of arrival i stand from first[i] to first[i + 1].
std::vector<std::uint32_t> OriginTracer::by_arrival(std::vector<std::uint32_t>& first) const {
  first.assign(lateness_.arrivals.size() + 1, 0);
  for (const std::uint32_t number : order_) ++first[lateness_.arrival_of[number] + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  std::vector<std::uint32_t> places(order_.size());
  for (std::uint32_t place = 0; place < order_.size(); ++place)
    places[next[lateness_.arrival_of[order_[place]]]++] = place;
  return places;
}

void OriginTracer::compare_all() {
  constexpr std::size_t kChunk = 64;  // arrivals
  std::vector<std::uint32_t> first;
  const std::vector<std::uint32_t> places = by_arrival(first);
  carried_.resize(order_.size());
  more_.emplace(order_.size());
  const std::size_t arrivals = lateness_.arrivals.size();
  for_each_parallel(
      (arrivals + kChunk - 1) / kChunk, threads_, [this] { return Comparison(tables_); },
      [&](std::size_t chunk, Comparison& comparison) {
        const std::size_t last = first[std::min(arrivals, (chunk + 1) * kChunk)];
        for (std::size_t i = first[chunk * kChunk]; i < last; ++i) {
          const std::uint32_t number = order_[places[i]];
          const Part& held = numbers_.part(number);
          carried_[places[i]] = own(number);
          if (!wait(held).known || culprits(number).size() != 1) continue;
          const auto more = comparison.compare(numbers_.part(culprits(number).front()), held);
          if (more) more_->set(places[i], *more);
        }
      });
}

void OriginTracer::run() {
  order_waits();
  compare_all();
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (carried_[place].total == 0) continue;
    const auto& culprits = this->culprits(order_[place]);
    if (culprits.size() == 1) {
      charge(place, culprits.front(), (*more_)[place], carried_[place]);
    } else {
      charge_several(place, culprits);
    }
  }
  waits_.unattributed = waits_.unattributed_sums.total;
}

void OriginTracer::charge_several(std::size_t place, const std::vector<std::uint32_t>& culprits) {
  const Part& held = numbers_.part(order_[place]);
  const auto shares = split(carried_[place], std::vector<Ns>(culprits.size(), 1));
  for (std::size_t i = 0; i < culprits.size(); ++i) {
    const auto more = wait(held).known ? comparison_.compare(numbers_.part(culprits[i]), held)
                                       : std::optional<Excess>();
    charge(place, culprits[i], more.value_or(Excess{}), shares[i]);
  }
}

void OriginTracer::charge(std::size_t place, std::uint32_t culprit, const Excess& more,
                          const WaitSums& sums) {
  if (more.sum() == 0) return leave(sums);
  const Part& late = numbers_.part(culprit);
  const auto shares = split(sums, more.weights());
  originate(late, more.unequal ? Cause::imbalance : Cause::compute, -1, shares[0]);
  originate(late, Cause::host, -1, shares[1]);
  hand_on(more.since, late, shares[2], place);
  charge_transfers(more.since, late, shares[3]);
  leave(shares[4]);
}

void OriginTracer::originate(const Part& culprit, Cause cause, std::int32_t group,
                             const WaitSums& sums) {
  if (sums.total == 0) return;
  waits_.by_rank[culprit.rank].originated += sums.total;
  const Origin origin{
      .rank = culprit.rank, .cause = cause, .group = group, .step = comm_of(job_, culprit).step};
  if (last_origin_.sums == nullptr || last_origin_.origin != origin)
    last_origin_ = {origin, &waits_.origins[origin]};
  *last_origin_.sums += sums;
}

const std::vector<StretchPart>& OriginTracer::parts(std::uint32_t since, const Part& culprit) {
  LastStretch& last = last_stretch_;
  if (last.since != since || last.culprit != culprit)
    last = {since, culprit, comparison_.parts(since, culprit)};
  return last.parts;
}

// The culprit waited itself: what it is charged with goes to its waits in the stretch.
void OriginTracer::hand_on(std::uint32_t from, const Part& culprit, const WaitSums& sums,
                           std::size_t place) {
  if (sums.total == 0) return;
  std::vector<StretchPart> waited = parts(from, culprit);
  std::erase_if(waited, [](const StretchPart& part) { return part.waiting == 0; });
  std::vector<Ns> weights;
  for (const StretchPart& part : waited) weights.push_back(part.waiting);
  const auto shares = split(sums, weights);
  if (waited.empty()) return leave(sums);
  for (std::size_t i = 0; i < waited.size(); ++i) {
    const Part part{culprit.rank, culprit.device, waited[i].op};
    const std::uint32_t its_place = place_[numbers_.of(part)];
    // An order that the clocks' estimates turn round cannot be followed.
    if (its_place <= place || its_place == kNone) {
      leave(shares[i]);
      continue;
    }
    WaitSums handed = shares[i];
    if (!wait(part).certain) handed.certain = 0;
    if (!wait(part).likely) handed.likely = 0;
    carried_[its_place] += handed;
  }
}

// Its transfers took longer: those that took longer than is usual for their kind; where none did,
// it had more to move.
void OriginTracer::charge_transfers(std::uint32_t from, const Part& culprit, const WaitSums& sums) {
  if (sums.total == 0) return;
  std::vector<StretchPart> moved = parts(from, culprit);
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

void trace_origins(const Job& job, const Lateness& lateness, unsigned threads, Waits& waits) {
  OriginTracer(job, lateness, threads, waits).run();
}

}  // namespace commlens
