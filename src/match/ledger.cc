// Problem: the figures of ranks say how long each computes and communicates in a window of its own.
// What a step of the whole job is made of needs one window for all, each nanosecond in one row, and
// exposed communication taken apart into waiting and moving data.
//
//   job window   |<------------------------------------------>|   first start to last end, of any
//   rank 0       |== compute ==|-- waits ---|-tr-|=== compute =|
//   rank 1         |===== compute =====|----|-tr-|== compute =|
//                 ^ outside its own window: host or unexplained
//
// Method: the job's window in common time is brought to each rank's own clock. Compute, memory and
// idle time come as sums with the rank's figures. Each communication is cut into at most four
// pieces: waiting, not known which, transfer up to the achievable time, transfer beyond it; one
// sweep over their ends gives each instant outside compute to the pieces that are there, 1/k each.
// What the sweep shares out is kept apart by k and rounded once for each, so no nanosecond is lost.
// Cost: O(n log n) for n communications, and their compute once.
//
// Waiting is split by origin as the whole job's exposed waiting is (Waits::origins): the mean over
// ranks needs no more.
#include "match/ledger.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "match/achievable.h"
#include "match/merge.h"
#include "model/shares.h"

namespace commlens {
namespace {

__extension__ using Wide = __int128;

// What becomes of a piece of exposed communication.
enum Piece : std::uint8_t { kWaiting, kUndecided, kTransfer, kDeficit };
constexpr std::size_t kPieces = 4;

// One GPU's part of the job's window, in rows; waiting is not yet split by origin.
enum Row : std::uint8_t { kComputes, kWaits, kOpen, kMoves, kBeyond, kCopies, kHost, kRest };
constexpr std::size_t kRows = 8;
using Rows = std::array<Ns, kRows>;

// A row of the mean.
struct Gpu {
  std::uint32_t rank = 0;
  std::uint32_t device = 0;
  bool placed = false;  // its clock is related to the others'
  Interval window;      // the job's, on its own clock
};

class LedgerMaker {
 public:
  LedgerMaker(const Job& job, const RateOptions& rates)
      : job_(job), numbers_(job), achievable_(job, numbers_, rates) {}
  Ledger make();

 private:
  void choose_gpus();
  void place_windows();
  void judge_waits();
  void count_steps(Ledger& ledger) const;
  Rows rows_of(const Gpu& gpu) const;
  std::array<Ns, kPieces> share_exposed(const Gpu& gpu) const;
  std::array<Ns, kPieces + 1> cuts_of(std::uint32_t number) const;
  void sum_up(Ledger& ledger) const;

  const DeviceTimeline& device_of(const Gpu& gpu) const {
    return job_.ranks[gpu.rank].devices[gpu.device];
  }

  const Job& job_;
  CommNumbers numbers_;
  Achievable achievable_;
  std::vector<Gpu> gpus_;
  Ns length_ = 0;                     // of the job's window
  std::vector<std::uint8_t> judged_;  // by number: how much of it is waiting is known
};

// Absurd times of a damaged file stay inside 64 bits.
Ns later(Ns at, Ns by) {
  Ns sum = 0;
  return __builtin_add_overflow(at, by, &sum) ? std::numeric_limits<Ns>::max() : sum;
}

// Figures of the host are only comparable with each other.
void LedgerMaker::choose_gpus() {
  for (const bool on_gpu : {true, false}) {
    for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
      if (job_.ranks[rank].run > 0) continue;
      const auto& devices = job_.ranks[rank].devices;
      for (std::uint32_t device = 0; device < devices.size(); ++device) {
        if (devices[device].device.has_value() != on_gpu) continue;
        const bool placed = job_.clocks.known && job_.clocks.lines[rank].offset.has_value();
        gpus_.push_back({.rank = rank, .device = device, .placed = placed, .window = {}});
      }
    }
    if (!gpus_.empty()) return;
  }
}

// Of all GPUs of one rank, which share its clock.
Interval window_of(const RankTimeline& rank) {
  Interval window = rank.devices.front().breakdown.window;
  for (const DeviceTimeline& device : rank.devices) {
    const Interval own = device.breakdown.window;
    window = {std::min(window.start, own.start), std::max(window.end, own.end)};
  }
  return window;
}

// From the first start to the last end of any; where a clock is not related to the others', its own
// window is laid at the beginning.
void LedgerMaker::place_windows() {
  std::optional<Interval> job;
  for (const Gpu& gpu : gpus_) {
    const Interval own = window_of(job_.ranks[gpu.rank]);
    length_ = std::max(length_, own.length());
    if (!gpu.placed) continue;
    const Interval common{job_.clocks.common(gpu.rank, own.start),
                          job_.clocks.common(gpu.rank, own.end)};
    job =
        job ? Interval{std::min(job->start, common.start), std::max(job->end, common.end)} : common;
  }
  if (job) length_ = std::max(length_, job->length());
  for (Gpu& gpu : gpus_) {
    const Interval own = window_of(job_.ranks[gpu.rank]);
    gpu.window = {own.start, later(own.start, length_)};
    if (!gpu.placed || !job) continue;
    // Never less than its own window, whatever rounding does.
    gpu.window = {std::min(own.start, job_.clocks.own(gpu.rank, job->start)),
                  std::max(own.end, job_.clocks.own(gpu.rank, later(job->start, length_)))};
  }
}

// A sender's time is judged where its receiver's is.
void LedgerMaker::judge_waits() {
  judged_.assign(numbers_.size(), 0);
  if (!job_.waits.known) return;
  const auto wait_of = [this](std::uint32_t number) -> const Wait& {
    const Part& part = numbers_.part(number);
    return job_.waits.of[part.rank][part.device][part.op];
  };
  for (std::uint32_t number = 0; number < numbers_.size(); ++number)
    judged_[number] = wait_of(number).known && wait_of(number).estimated;
  for (const MatchedOp& op : job_.matching.ops) {
    if (!op.pair || op.count < 2) continue;
    const std::uint32_t sender = numbers_.of(job_.matching.parts[op.first]);
    const Wait& receiver = wait_of(numbers_.of(job_.matching.parts[op.first + 1]));
    if (wait_of(sender).known) judged_[sender] |= receiver.known && receiver.estimated;
  }
}

// Where a communication's pieces begin and end, in their order.
std::array<Ns, kPieces + 1> LedgerMaker::cuts_of(std::uint32_t number) const {
  const Part& part = numbers_.part(number);
  const Interval time = comm_of(job_, part).time;
  const Achievable::Time achievable = achievable_.of(number);
  if (judged_[number] == 0) {
    // It moved its data at least as long as what is measured says; the rest may be either.
    const Ns least = achievable.measured ? std::min(achievable.time, time.length()) : 0;
    return {time.start, time.start, time.end - least, time.end, time.end};
  }
  const Wait& wait = job_.waits.of[part.rank][part.device][part.op];
  const Ns moving = std::min(time.end, time.start + std::max(wait.wait, wait.doubtful));
  const Ns usual =
      achievable.time >= 0 ? std::min(achievable.time, time.end - moving) : time.end - moving;
  return {time.start, time.start + wait.wait, moving, moving + usual, time.end};
}

// The exposed communication of one GPU in the job's window, by what becomes of it.
std::array<Ns, kPieces> LedgerMaker::share_exposed(const Gpu& gpu) const {
  struct Edge {
    Ns at;
    std::uint8_t piece;
    std::int8_t change;
  };
  const DeviceTimeline& device = device_of(gpu);
  std::vector<Edge> edges;
  const std::uint32_t first = numbers_.of({gpu.rank, gpu.device, 0});
  for (std::uint32_t op = 0; op < device.comm.size(); ++op) {
    const auto cuts = cuts_of(first + op);
    for (std::uint8_t piece = 0; piece < kPieces; ++piece) {
      const Interval part = clip({cuts[piece], cuts[piece + 1]}, gpu.window);
      if (part.length() <= 0) continue;
      edges.push_back({part.start, piece, 1});
      edges.push_back({part.end, piece, -1});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });

  // By how many communications there were at once: the time of each kind of piece.
  std::map<Ns, std::array<Wide, kPieces>> sums;
  std::array<Ns, kPieces> there{};
  const auto compute = device.compute_under_comm.parts();
  std::size_t next = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    there[edges[i].piece] += edges[i].change;
    const Interval stretch{edges[i].at, i + 1 < edges.size() ? edges[i + 1].at : edges[i].at};
    const Ns count = std::accumulate(there.begin(), there.end(), Ns{0});
    if (count == 0 || stretch.length() == 0) continue;
    while (next < compute.size() && compute[next].end <= stretch.start) ++next;
    Ns exposed = stretch.length();
    for (std::size_t at = next; at < compute.size() && compute[at].start < stretch.end; ++at)
      exposed -= clip(compute[at], stretch).length();
    for (std::size_t piece = 0; piece < kPieces; ++piece)
      sums[count][piece] += Wide{exposed} * there[piece];
  }

  std::array<Ns, kPieces> total{};
  for (const auto& [count, wide] : sums) {
    std::array<Ns, kPieces> weights{};
    std::array<Ns, kPieces> parts{};
    Ns exposed = 0;
    // In units of 1/count; only absurd times leave 64 bits, and are cut.
    constexpr Wide kMost = Wide{1} << 60U;
    Wide sum = 0;
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      weights[piece] = static_cast<Ns>(std::min(wide[piece], kMost));
      sum += wide[piece];
    }
    exposed = static_cast<Ns>(sum / count);
    split_by_weight(exposed, weights, parts);
    for (std::size_t piece = 0; piece < kPieces; ++piece) total[piece] += parts[piece];
  }
  return total;
}

// The parts of `window` outside `inside`, as far as `recorded` holds them.
Ns recorded_outside(Interval window, Interval inside, Interval recorded) {
  const Interval before = clip(recorded, {window.start, std::max(window.start, inside.start)});
  const Interval behind = clip(recorded, {std::min(window.end, inside.end), window.end});
  return before.length() + behind.length();
}

Rows LedgerMaker::rows_of(const Gpu& gpu) const {
  const DeviceTimeline& device = device_of(gpu);
  const auto exposed = share_exposed(gpu);
  Rows rows{};
  rows[kWaits] = exposed[kWaiting];
  rows[kOpen] = exposed[kUndecided];
  rows[kMoves] = exposed[kTransfer];
  rows[kBeyond] = exposed[kDeficit];
  if (device.wider) {
    rows[kComputes] = device.wider->compute.overlap(gpu.window);
    rows[kCopies] = device.wider->memory_only.overlap(gpu.window);
    rows[kHost] = device.wider->host_idle.overlap(gpu.window);
  } else {
    rows[kComputes] = device.breakdown.compute_only + device.breakdown.hidden_comm;
    rows[kCopies] = device.breakdown.memory_only;
    rows[kHost] = device.breakdown.host_idle;
  }
  // Before its first and after its last activity a GPU has nothing queued, as far as was recorded.
  if (device.launches_known)
    rows[kHost] += recorded_outside(gpu.window, device.extent,
                                    recorded_extent(job_.ranks[gpu.rank].recording));
  const Ns known = std::accumulate(rows.begin(), rows.end(), Ns{0});
  rows[kRest] = std::max<Ns>(0, gpu.window.length() - known);
  // The job's window is of one length for all; a clock that drifts stretches it a little.
  Rows scaled{};
  split_by_weight(length_, rows, scaled);
  return scaled;
}

void LedgerMaker::count_steps(Ledger& ledger) const {
  std::set<std::int64_t> steps;
  for (const Gpu& gpu : gpus_) {
    for (const StepFigures& step : device_of(gpu).step_figures) steps.insert(step.number);
  }
  ledger.steps = static_cast<std::int64_t>(steps.size());
}

// Exposed waiting in the proportion in which the job's came from each cause; the last is what
// cannot be followed.
std::array<Ns, kCauseCount + 1> origin_weights(const Waits& waits) {
  std::array<Ns, kCauseCount + 1> weights{};
  for (const auto& [origin, sums] : waits.origins)
    weights[static_cast<std::size_t>(origin.cause)] += sums.exposed;
  weights[kCauseCount] = waits.unattributed_sums.exposed;
  if (std::all_of(weights.begin(), weights.end(), [](Ns weight) { return weight == 0; }))
    weights[kCauseCount] = 1;
  return weights;
}

// Sums that fit into weights: exact unless times are absurd.
template <std::size_t kCount>
std::array<Ns, kCount> as_weights(std::array<Wide, kCount> sums) {
  constexpr Wide kMost = Wide{1} << 62U;
  while (std::accumulate(sums.begin(), sums.end(), Wide{0}) >= kMost) {
    for (Wide& sum : sums) sum /= 2;
  }
  std::array<Ns, kCount> weights{};
  std::transform(sums.begin(), sums.end(), weights.begin(),
                 [](Wide sum) { return static_cast<Ns>(sum); });
  return weights;
}

void LedgerMaker::sum_up(Ledger& ledger) const {
  std::array<Wide, kRows> all{};
  for (const Gpu& gpu : gpus_) {
    const Rows rows = rows_of(gpu);
    for (std::size_t row = 0; row < kRows; ++row) all[row] += rows[row];
  }
  const std::array<Ns, kRows> sums = as_weights(all);
  std::array<Ns, kCauseCount + 1> waits{};
  split_by_weight(sums[kWaits], origin_weights(job_.waits), waits);
  std::array<Ns, kLedgerRowCount> weights{};
  const auto at = [&weights](LedgerRow row) -> Ns& {
    return weights[static_cast<std::size_t>(row)];
  };
  at(LedgerRow::compute) = sums[kComputes];
  at(LedgerRow::transfer) = sums[kMoves];
  at(LedgerRow::link_deficit) = sums[kBeyond];
  at(LedgerRow::wait_compute) = waits[static_cast<std::size_t>(Cause::compute)];
  at(LedgerRow::wait_host) = waits[static_cast<std::size_t>(Cause::host)];
  at(LedgerRow::wait_link) = waits[static_cast<std::size_t>(Cause::link)];
  at(LedgerRow::wait_imbalance) = waits[static_cast<std::size_t>(Cause::imbalance)];
  at(LedgerRow::wait_undecided) = waits[kCauseCount] + sums[kOpen];
  at(LedgerRow::memory) = sums[kCopies];
  at(LedgerRow::host) = sums[kHost];
  at(LedgerRow::unexplained) = sums[kRest];
  split_by_weight(ledger.step, weights, ledger.rows);
  std::array<Ns, 2> open{};
  split_by_weight(ledger.of(LedgerRow::wait_undecided),
                  std::array<Ns, 2>{waits[kCauseCount], sums[kOpen]}, open);
  ledger.wait_or_transfer = open[1];
}

Ledger LedgerMaker::make() {
  Ledger ledger;
  choose_gpus();
  if (gpus_.empty()) return ledger;
  place_windows();
  judge_waits();
  count_steps(ledger);
  ledger.known = true;
  ledger.window = length_;
  ledger.gpus = static_cast<std::int64_t>(gpus_.size());
  ledger.gpus_placed =
      std::count_if(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.placed; });
  const Ns steps = std::max<Ns>(1, ledger.steps);
  ledger.step = length_ / steps + (length_ % steps * 2 >= steps ? 1 : 0);
  ledger.rates = achievable_.rates();
  sum_up(ledger);
  return ledger;
}

}  // namespace

Ledger find_ledger(const Job& job, const RateOptions& rates) {
  return LedgerMaker(job, rates).make();
}

}  // namespace commlens
