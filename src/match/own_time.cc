// Problem: a rank comes late to an operation. Was its GPU working longer, or had the host nothing
// for it to do? An idle GPU looks the same whether its next kernel was never launched, or waits for
// an event or another stream.
//
//   host     L1 L2 L3                          L4
//   GPU          |== 1 ==|== 2 ==|       |= 3 =|         |= 4 =|
//   queued    |..........................|     |  |......|          launched, not begun
//   idle                         |       |     |         |
//                                  gap          host, then gap
//
// Method: while the GPU is idle, the next activity to start is the first of many that wait or will
// be launched. So at an idle instant something is queued if and only if the earliest launch among
// the activities that start later is in the past. Each activity's launch goes to the idle stretch
// before its start, and one walk from the last stretch to the first keeps the earliest. Sums of
// each class up to each communication's start and end follow from one sweep each.
//
// Cost: linear in activities, after the sorts that classification made anyway; 24 bytes for each
// idle stretch while it works.
//
// When it is wrong: where fewer than nine in ten activities have a recorded launch, "nothing
// queued" may only mean "not recorded": all idle time counts as gaps then. Launch and start are
// stamped by two clocks that may lie microseconds apart.
#include "match/own_time.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>

#include "match/launches.h"

namespace commlens {
namespace {

// Share of a device's activities whose launch must be known: 9 in 10.
constexpr std::size_t kKnownOf = 10;
constexpr std::size_t kKnownLeast = 9;

struct IdleStretch {
  Interval time;
  // Of the activities that start between its end and the next one's.
  Ns earliest_launch = std::numeric_limits<Ns>::max();
};

// One device's idle stretches, and how much of them had something queued.
class DeviceQueue {
 public:
  // `at_once` are the starts of activities without length, sorted. A stretch ends where one starts,
  // so that no activity starts inside any.
  DeviceQueue(const DeviceTimeline& device, const IntervalSet& comm,
              const std::vector<Ns>& at_once);

  void add_launch(Ns launch, Ns start);
  bool launches_known() const {
    return launched_ * kKnownOf >= activities_ * kKnownLeast && launched_ > 0;
  }
  // Call it once: the stretches become the parts in which nothing was queued.
  IntervalSet nothing_queued();
  IntervalSet idle() const;

 private:
  void add_stretch(Interval stretch, const std::vector<Ns>& at_once);
  std::size_t first_ending_after(Ns instant);

  std::size_t activities_ = 0;
  std::size_t launched_ = 0;
  std::vector<IdleStretch> stretches_;
  std::size_t next_at_once_ = 0;
  std::size_t last_ = 0;  // where the last question was answered: the next is near
};

// The holes in the union of all work: one merge of the three lists.
DeviceQueue::DeviceQueue(const DeviceTimeline& device, const IntervalSet& comm,
                         const std::vector<Ns>& at_once)
    : activities_(device.starts.size()) {
  std::array<std::span<const Interval>, 3> work = {device.compute.parts(), comm.parts(),
                                                   device.memory.parts()};
  Ns busy_until = device.extent.start;
  while (true) {
    std::span<const Interval>* next = nullptr;
    for (auto& parts : work) {
      if (!parts.empty() && (next == nullptr || parts.front().start < next->front().start))
        next = &parts;
    }
    if (next == nullptr) break;
    const Interval part = next->front();
    *next = next->subspan(1);
    if (part.start > busy_until) add_stretch({busy_until, part.start}, at_once);
    busy_until = std::max(busy_until, part.end);
  }
  if (device.extent.end > busy_until) add_stretch({busy_until, device.extent.end}, at_once);
}

void DeviceQueue::add_stretch(Interval stretch, const std::vector<Ns>& at_once) {
  for (; next_at_once_ < at_once.size() && at_once[next_at_once_] < stretch.end; ++next_at_once_) {
    if (at_once[next_at_once_] <= stretch.start) continue;
    stretches_.push_back({.time = {stretch.start, at_once[next_at_once_]}});
    stretch.start = at_once[next_at_once_];
  }
  stretches_.push_back({.time = stretch});
}

std::size_t DeviceQueue::first_ending_after(Ns instant) {
  constexpr std::size_t kNear = 8;
  const auto ends_after = [&](std::size_t i) { return stretches_[i].time.end > instant; };
  std::size_t at = last_;
  for (std::size_t tried = 0; tried < kNear; ++tried) {
    if (at < stretches_.size() && !ends_after(at)) {
      ++at;
    } else if (at > 0 && ends_after(at - 1)) {
      --at;
    } else {
      return last_ = at;
    }
  }
  const auto found =
      std::partition_point(stretches_.begin(), stretches_.end(),
                           [&](const IdleStretch& s) { return s.time.end <= instant; });
  return last_ = static_cast<std::size_t>(found - stretches_.begin());
}

void DeviceQueue::add_launch(Ns launch, Ns start) {
  ++launched_;
  const std::size_t behind = first_ending_after(start);
  if (behind == 0) return;  // no idle time before it
  Ns& earliest = stretches_[behind - 1].earliest_launch;
  earliest = std::min(earliest, launch);
}

IntervalSet DeviceQueue::idle() const {
  std::vector<Interval> parts;
  parts.reserve(stretches_.size());
  for (const IdleStretch& stretch : stretches_) parts.push_back(stretch.time);
  return IntervalSet(std::move(parts));
}

IntervalSet DeviceQueue::nothing_queued() {
  Ns earliest = std::numeric_limits<Ns>::max();
  for (std::size_t i = stretches_.size(); i-- > 0;) {
    IdleStretch& stretch = stretches_[i];
    earliest = std::min(earliest, stretch.earliest_launch);
    stretch.time.end = std::clamp(earliest, stretch.time.start, stretch.time.end);
  }
  return idle();
}

// What one class adds to the own time before each communication's start and end.
class ClassSums {
 public:
  explicit ClassSums(DeviceTimeline& device) : device_(device), by_end_(device.comm.size()) {
    std::iota(by_end_.begin(), by_end_.end(), 0U);
    const auto& comm = device.comm;
    std::sort(by_end_.begin(), by_end_.end(), [&comm](std::uint32_t a, std::uint32_t b) {
      return comm[a].time.end < comm[b].time.end;
    });
    device.own_at_start.resize(comm.size());
    device.own_at_end.resize(comm.size());
  }

  void add(std::span<const Interval> parts, Ns OwnTime::* sum) {
    Walk starts(parts);
    for (std::size_t i = 0; i < device_.comm.size(); ++i)
      device_.own_at_start[i].*sum = starts.before(device_.comm[i].time.start);
    Walk ends(parts);
    for (const std::uint32_t i : by_end_)
      device_.own_at_end[i].*sum = ends.before(device_.comm[i].time.end);
  }

 private:
  // How much of a set lies before instants that only grow.
  class Walk {
   public:
    explicit Walk(std::span<const Interval> parts) : parts_(parts) {}
    Ns before(Ns instant) {
      for (; !parts_.empty() && parts_.front().end <= instant; parts_ = parts_.subspan(1))
        passed_ += parts_.front().length();
      return passed_ + (parts_.empty() ? 0 : std::max<Ns>(0, instant - parts_.front().start));
    }

   private:
    std::span<const Interval> parts_;
    Ns passed_ = 0;
  };

  DeviceTimeline& device_;
  std::vector<std::uint32_t> by_end_;
};

IntervalSet communication_of(const DeviceTimeline& device) {
  std::vector<Interval> times;
  times.reserve(device.comm.size());
  for (const CommOp& op : device.comm) times.push_back(op.time);
  return IntervalSet(std::move(times));
}

// In no more memory than it takes: it is kept to the end.
IntervalSet trimmed(const IntervalSet& set) {
  return IntervalSet(std::vector<Interval>(set.parts().begin(), set.parts().end()));
}

// The device of each stream, as a row of the rank's devices.
std::vector<std::size_t> device_of_stream(const RankTimeline& rank) {
  std::vector<std::size_t> rows;
  for (const Stream& stream : rank.recording.streams) {
    const auto found =
        std::find_if(rank.devices.begin(), rank.devices.end(),
                     [&](const DeviceTimeline& d) { return d.device == stream.device; });
    rows.push_back(static_cast<std::size_t>(found - rank.devices.begin()));
  }
  return rows;
}

// By device: starts of activities without length, sorted.
std::vector<std::vector<Ns>> starts_without_length(const RankTimeline& rank,
                                                   const std::vector<std::size_t>& device_of) {
  const GpuActivities& gpu = rank.recording.gpu;
  std::vector<std::vector<Ns>> starts(rank.devices.size());
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    if (gpu.start[i] == gpu.end[i])
      starts[device_of[gpu.stream[i].index()]].push_back(gpu.start[i]);
  }
  for (std::vector<Ns>& mine : starts) std::sort(mine.begin(), mine.end());
  return starts;
}

void add_launches(const RankTimeline& rank, const std::vector<std::size_t>& device_of,
                  std::vector<DeviceQueue>& queues) {
  const GpuActivities& gpu = rank.recording.gpu;
  const LaunchIndex launches(rank.recording.launches);
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const Ns start = gpu.start[i];
    if (const auto launch = launches.find(gpu.correlation[i], start))
      queues[device_of[gpu.stream[i].index()]].add_launch(rank.recording.launches.start[*launch],
                                                          start);
  }
}

}  // namespace

std::vector<IntervalSet> find_own_times(RankTimeline& rank) {
  const std::vector<std::size_t> device_of = device_of_stream(rank);
  const auto at_once = starts_without_length(rank, device_of);
  std::vector<IntervalSet> comm;
  std::vector<DeviceQueue> queues;
  for (std::size_t d = 0; d < rank.devices.size(); ++d) {
    comm.push_back(communication_of(rank.devices[d]));
    queues.emplace_back(rank.devices[d], comm[d], at_once[d]);
  }
  add_launches(rank, device_of, queues);

  std::vector<IntervalSet> host_idle;
  for (std::size_t d = 0; d < rank.devices.size(); ++d) {
    DeviceTimeline& device = rank.devices[d];
    ClassSums sums(device);
    sums.add(device.compute.parts(), &OwnTime::compute);
    const IntervalSet memory =
        set_difference(set_difference(device.memory, comm[d]), device.compute);
    sums.add(memory.parts(), &OwnTime::memory);
    sums.add(queues[d].idle().parts(), &OwnTime::gaps);
    device.launches_known = queues[d].launches_known();
    host_idle.push_back(device.launches_known ? queues[d].nothing_queued() : IntervalSet());
    sums.add(host_idle[d].parts(), &OwnTime::host);
    for (auto* own : {&device.own_at_start, &device.own_at_end}) {
      for (OwnTime& time : *own) time.gaps -= time.host;
    }
    device.compute_under_comm = trimmed(set_intersection(device.compute, comm[d]));
  }
  return host_idle;
}

}  // namespace commlens
