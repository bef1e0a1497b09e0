// Problem: a communication kernel's duration is mostly waiting for whoever comes last, and no trace
// says so. Method: with the parts of each operation matched and the clocks related, the last entry
// among those that a rank needs is when it could go on:
//
//   rank 0   [=== waits ===|= moves =]
//   rank 1          [waits |= moves =]
//   rank 2                 [= moves =]     last: the others waited for it
//
// What a rank needs depends on the operation (model/semantics). Every wait is charged to the last
// arriver. How surely: the clocks' bounds say whether the sign, or the culprit, could be another.
// When it is wrong: a member that is missing from the traces may have been later than all that are
// there; such operations are counted, and are never evidence.
#include "match/waiting.h"

#include <algorithm>
#include <unordered_map>

#include "base/parallel.h"
#include "match/arrivals.h"
#include "match/origin.h"
#include "match/stretch.h"
#include "model/semantics.h"
#include "model/shares.h"

namespace commlens {
namespace {

class WaitFinder {
 public:
  WaitFinder(const Job& job, unsigned threads)
      : job_(job),
        threads_(threads),
        numbers_(job),
        arrival_of_(numbers_.size(), kNone),
        attended_(numbers_.size(), 0),
        sure_(numbers_.size(), 1),
        inferred_(numbers_.size(), 0) {}
  Waits run();

 private:
  void enter_all();
  void attend(const MatchedOp& op);
  void attend_pairs();
  void settle(std::uint32_t number, const Arrival& arrival);
  void measure_exposed();
  void sum_up();
  void charge(std::uint32_t number);

  Wait& wait(std::uint32_t number) {
    const Part& part = numbers_.part(number);
    return waits_.of[part.rank][part.device][part.op];
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const Job& job_;
  unsigned threads_;
  CommNumbers numbers_;
  std::vector<Ns> entries_;                // common time, by number
  std::vector<Arrival> arrivals_;          // those that somebody waited for
  std::vector<std::uint32_t> arrival_of_;  // by number: row of arrivals_
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> sources_;  // of receivers
  std::vector<std::uint8_t> attended_;  // by number: whether it is in any operation
  std::vector<std::uint8_t> sure_;      // by number: matched for sure
  std::vector<std::uint8_t> inferred_;  // by number: its group is inferred
  std::unordered_map<std::uint64_t, Ns> blame_;
  Waits waits_;
};

void WaitFinder::enter_all() {
  for (const RankTimeline& rank : job_.ranks) {
    waits_.of.emplace_back();
    for (const DeviceTimeline& device : rank.devices)
      waits_.of.back().emplace_back(device.comm.size());
  }
  entries_.reserve(numbers_.size());
  for (std::uint32_t number = 0; number < numbers_.size(); ++number) {
    const Part& part = numbers_.part(number);
    entries_.push_back(job_.clocks.common(part.rank, comm_of(job_, part).time.start));
  }
}

// One part's wait for an arrival.
void WaitFinder::settle(std::uint32_t number, const Arrival& arrival) {
  const Part& part = numbers_.part(number);
  const Ns busy = comm_of(job_, part).time.length();
  Wait& wait = this->wait(number);
  wait.wait = std::clamp<Ns>(arrival.at - entries_[number], 0, busy);
  const std::uint32_t culprit = numbers_.part(arrival.last.front()).rank;
  const auto spread = job_.clocks.spread(culprit, part.rank);
  wait.estimated = wait.known && arrival.estimated && spread;
  if (wait.wait == 0) return;
  arrival_of_[number] = static_cast<std::uint32_t>(arrivals_.size() - 1);
  wait.culprit = numbers_.part(arrival.last.front());
  const Ns early = arrival.at - entries_[number];
  const Ns least = early + job_.clocks.error(culprit, part.rank, arrival.at).lower;
  wait.ordered = wait.known && sure_[number] && arrival.certain && least > 0;
  wait.certain = wait.ordered && !inferred_[number];
  wait.likely = wait.known && (wait.certain || (arrival.likely && spread && early > *spread));
  if (wait.certain) wait.least_exposed = std::min(least, wait.wait);  // exposed part: later
}

void WaitFinder::attend(const MatchedOp& op) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < op.count; ++i)
    all.push_back(numbers_.of(job_.matching.parts[op.first + i]));
  const auto row = static_cast<std::size_t>(&op - job_.matching.ops.data());
  const bool doubted = !job_.clocks.doubted.empty() && job_.clocks.doubted[row];
  const bool evidence = op.whole && op.agreed && !doubted;
  for (const std::uint32_t number : all) {
    sure_[number] = sure_[number] && op.sure;
    inferred_[number] = inferred_[number] || op.by == MatchedBy::inferred;
    wait(number).known = evidence && (attended_[number] == 0 || wait(number).known);
    attended_[number] = 1;
  }
  if (op.pair) {
    sources_[all[1]].push_back(all[0]);
    return;
  }
  const bool zero_split = std::any_of(all.begin(), all.end(), [this](std::uint32_t number) {
    return comm_of(job_, numbers_.part(number)).zero_split;
  });
  const auto has_arrival = [&](const std::vector<std::uint32_t>& candidates) {
    arrivals_.push_back(last_arrival(job_, numbers_, entries_, candidates));
  };
  std::int64_t settled_for = -1;  // what the last arrival is of: -1 nothing, 0 all, 1 the root
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const Needs needs = needs_of(op, i, zero_split);
    if (needs == Needs::unknown) wait(all[i]).known = false;
    if (needs == Needs::nobody) wait(all[i]).estimated = wait(all[i]).known;
    if (needs != Needs::everyone && needs != Needs::root) continue;
    const std::int64_t wanted = needs == Needs::everyone ? 0 : 1;
    if (settled_for != wanted) {
      has_arrival(wanted == 0 ? all
                              : std::vector<std::uint32_t>{all[static_cast<std::size_t>(op.root)]});
      settled_for = wanted;
    }
    settle(all[i], arrivals_.back());
  }
}

// A receiver of several at once needs all of its sources; a sender needs nobody, but may have been
// held by its receiver.
void WaitFinder::attend_pairs() {
  std::vector<std::uint32_t> receivers;
  for (const auto& [receiver, sources] : sources_) receivers.push_back(receiver);
  std::sort(receivers.begin(), receivers.end());
  for (const std::uint32_t receiver : receivers) {
    std::vector<std::uint32_t>& sources = sources_[receiver];
    std::sort(sources.begin(), sources.end());
    arrivals_.push_back(last_arrival(job_, numbers_, entries_, sources));
    settle(receiver, arrivals_.back());
    for (const std::uint32_t source : sources) {
      const Ns busy = comm_of(job_, numbers_.part(source)).time.length();
      const Ns early = std::clamp<Ns>(entries_[receiver] - entries_[source], 0, busy);
      wait(source).doubtful = std::max(wait(source).doubtful, early);
    }
  }
}

void WaitFinder::measure_exposed() {
  for_each_parallel(job_.ranks.size(), threads_, [this](std::size_t rank) {
    for (std::size_t device = 0; device < job_.ranks[rank].devices.size(); ++device) {
      const DeviceTimeline& timeline = job_.ranks[rank].devices[device];
      std::vector<Wait>& waits = waits_.of[rank][device];
      const StretchIndex index(timeline, waits);
      for (std::size_t op = 0; op < waits.size(); ++op) {
        const Ns start = timeline.comm[op].time.start;
        waits[op].exposed = index.exposed({start, start + waits[op].wait});
        waits[op].least_exposed = index.exposed({start, start + waits[op].least_exposed});
      }
    }
  });
}

void WaitFinder::charge(std::uint32_t number) {
  const std::uint32_t waiter = numbers_.part(number).rank;
  const std::vector<std::uint32_t>& culprits = arrivals_[arrival_of_[number]].last;
  const std::vector<Ns> shares =
      split_by_weight(wait(number).wait, std::vector<Ns>(culprits.size(), 1));
  for (std::size_t i = 0; i < culprits.size(); ++i) {
    const std::uint32_t culprit = numbers_.part(culprits[i]).rank;
    waits_.by_rank[culprit].caused += shares[i];
    blame_[std::uint64_t{waiter} << 32U | culprit] += shares[i];
  }
}

void WaitFinder::sum_up() {
  waits_.by_rank.resize(job_.ranks.size());
  for (std::uint32_t number = 0; number < numbers_.size(); ++number) {
    const Part& part = numbers_.part(number);
    const Wait& wait = this->wait(number);
    if (wait.wait == 0 || !device_of(job_, part).exposures[part.op].starts_inside) continue;
    waits_.by_rank[part.rank].waited += wait.wait;
    waits_.by_rank[part.rank].exposed_waited += wait.exposed;
    waits_.total += wait.wait;
    if (!wait.ordered) waits_.undecidable += wait.wait;
    charge(number);
  }
  for (const auto& [key, time] : blame_) {
    waits_.blame[{static_cast<std::uint32_t>(key >> 32U), static_cast<std::uint32_t>(key)}] = time;
  }
}

Waits WaitFinder::run() {
  if (!job_.matching.known || !job_.clocks.known) return {};
  waits_.known = true;
  enter_all();
  for (const MatchedOp& op : job_.matching.ops) {
    if (op.agreed) attend(op);
  }
  attend_pairs();
  measure_exposed();
  sum_up();
  trace_origins(job_, {numbers_, entries_, arrivals_, arrival_of_}, threads_, waits_);
  return std::move(waits_);
}

}  // namespace

Waits find_waits(const Job& job, unsigned threads) { return WaitFinder(job, threads).run(); }

}  // namespace commlens
