// Problem: a rank comes late to an operation. Was its GPU working longer, or had the host nothing
// for it to do? An idle GPU looks the same whether its next kernel was never launched, or waits for
// an event or another stream.
//
//   launches   1 2 3                                  4
//   GPU             |== 1 ==|== 2 ==|       |== 3 ==|       |== 4 ==|
//   queued     |............................|         |.....|
//   idle                            |. gap .|       |h|gap.|
//                                       h: the host is late; queued: launched, not begun
//
// Method: while the GPU is idle, the next activity to start is the first of many that wait or will
// be launched. So at an idle instant something is queued if and only if the earliest launch among
// the activities that start later is in the past. Each activity's launch goes to the idle stretch
// before its start, and one walk from the last stretch to the first keeps the earliest. Activities
// without length can start inside a stretch: their waits are taken out afterwards. Sums of each
// class up to each communication's start and end follow from one sweep each.
//
// Cost: linear in activities, after the sorts that classification made anyway; 24 bytes for each
// idle stretch while it works.
//
// When it is wrong: where fewer than nine in ten activities have a recorded launch, "nothing
// queued" may only mean "not recorded": all idle time counts as gaps then. Launch and start are
// stamped by two clocks that may lie microseconds apart.
#include "match/own_time.h"

#include <algorithm>
#include <limits>
#include <span>

#include "match/device_rows.h"

namespace commlens {
namespace {

// Share of a device's activities whose launch must be known: 9 in 10.
constexpr std::size_t kKnownOf = 10;
constexpr std::size_t kKnownLeast = 9;

// One device's idle stretches, and how much of them had something queued.
class DeviceQueue {
 public:
  DeviceQueue(const DeviceTimeline& device, const IntervalSet& comm);

  void add_launch(Ns launch, Interval activity);
  bool launches_known() const {
    return launched_ > 0 && launched_ * kKnownOf >= activities_ * kKnownLeast;
  }
  const std::vector<Interval>& idle() const { return idle_; }
  // The parts of `idle` in which nothing was queued.
  IntervalSet nothing_queued() &&;

 private:
  std::size_t first_ending_after(Ns instant);

  std::size_t activities_ = 0;
  std::size_t launched_ = 0;
  std::vector<Interval> idle_;  // sorted; no activity with any length starts inside one
  // By stretch: the earliest launch of activities that start between its end and the next one's.
  std::vector<Ns> earliest_;
  std::vector<Interval> waits_at_once_;  // of activities without length, which may start inside one
  std::size_t last_ = 0;                 // where the last question was answered: the next is near
};

// The holes in the union of all work: one merge of compute with the rest, which is less by far.
DeviceQueue::DeviceQueue(const DeviceTimeline& device, const IntervalSet& comm)
    : activities_(device.starts.size()) {
  const IntervalSet others = set_union(comm, device.memory);
  auto other = others.parts().begin();
  Ns busy_until = device.extent.start;
  const auto cover = [&](Interval part) {
    if (part.start > busy_until) idle_.push_back({busy_until, part.start});
    busy_until = std::max(busy_until, part.end);
  };
  for (const Interval part : device.compute.parts()) {
    for (; other != others.parts().end() && other->start < part.start; ++other) cover(*other);
    cover(part);
  }
  for (; other != others.parts().end(); ++other) cover(*other);
  if (device.extent.end > busy_until) idle_.push_back({busy_until, device.extent.end});
  earliest_.assign(idle_.size(), std::numeric_limits<Ns>::max());
}

std::size_t DeviceQueue::first_ending_after(Ns instant) {
  constexpr int kNear = 8;
  std::size_t at = last_;
  for (int tried = 0; tried < kNear; ++tried) {
    if (at < idle_.size() && idle_[at].end <= instant) {
      ++at;
    } else if (at > 0 && idle_[at - 1].end > instant) {
      --at;
    } else {
      return last_ = at;
    }
  }
  const auto found = std::partition_point(
      idle_.begin(), idle_.end(), [instant](Interval stretch) { return stretch.end <= instant; });
  return last_ = static_cast<std::size_t>(found - idle_.begin());
}

void DeviceQueue::add_launch(Ns launch, Interval activity) {
  ++launched_;
  if (activity.length() == 0) waits_at_once_.push_back({launch, activity.start});
  const std::size_t behind = first_ending_after(activity.start);
  if (behind == 0) return;  // no idle time before it
  earliest_[behind - 1] = std::min(earliest_[behind - 1], launch);
}

IntervalSet DeviceQueue::nothing_queued() && {
  Ns earliest = std::numeric_limits<Ns>::max();
  for (std::size_t i = idle_.size(); i-- > 0;) {
    earliest = std::min(earliest, earliest_[i]);
    idle_[i].end = std::clamp(earliest, idle_[i].start, idle_[i].end);
  }
  std::erase_if(idle_, [](Interval part) { return part.length() == 0; });
  return set_difference(IntervalSet(std::move(idle_)), IntervalSet(std::move(waits_at_once_)));
}

// What one class adds to the own time before each communication's start and end.
class ClassSums {
 public:
  explicit ClassSums(DeviceTimeline& device) : device_(device) {
    const auto count = static_cast<std::uint32_t>(device.comm.size());
    moments_.reserve(2 * device.comm.size());
    for (std::uint32_t op = 0; op < count; ++op)
      moments_.push_back({device.comm[op].time.start, op, false});
    for (std::uint32_t op = 0; op < count; ++op)
      moments_.push_back({device.comm[op].time.end, op, true});
    const auto earlier = [](const Moment& a, const Moment& b) { return a.at < b.at; };
    const auto ends = moments_.begin() + count;
    std::sort(ends, moments_.end(), earlier);
    std::inplace_merge(moments_.begin(), ends, moments_.end(), earlier);
    device.own_at_start.resize(device.comm.size());
    device.own_at_end.resize(device.comm.size());
  }

  // `parts` are sorted and disjoint.
  void add(std::span<const Interval> parts, Ns OwnTime::* sum) {
    Ns passed = 0;
    auto part = parts.begin();
    for (const Moment& moment : moments_) {
      for (; part != parts.end() && part->end <= moment.at; ++part) passed += part->length();
      const bool inside = part != parts.end() && part->start < moment.at;
      OwnTime& own = (moment.end ? device_.own_at_end : device_.own_at_start)[moment.op];
      own.*sum = passed + (inside ? moment.at - part->start : 0);
    }
  }

 private:
  struct Moment {
    Ns at = 0;
    std::uint32_t op = 0;
    bool end = false;
  };

  DeviceTimeline& device_;
  std::vector<Moment> moments_;  // in time
};

IntervalSet communication_of(const DeviceTimeline& device) {
  std::vector<Interval> times;
  times.reserve(device.comm.size());
  for (const CommOp& op : device.comm) times.push_back(op.time);
  return IntervalSet(std::move(times));
}

// In no more memory than it takes: it is kept to the end.
IntervalSet compute_under(const IntervalSet& compute, const IntervalSet& comm) {
  std::vector<Interval> under;
  const auto end = compute.parts().end();
  auto first = compute.parts().begin();
  for (const Interval part : comm.parts()) {
    while (first != end && first->end <= part.start) ++first;
    for (auto met = first; met != end && met->start < part.end; ++met)
      under.push_back(clip(*met, part));
  }
  under.shrink_to_fit();
  return IntervalSet(std::move(under));
}

void add_launches(const RankTimeline& rank, const std::vector<std::size_t>& device_of,
                  std::vector<DeviceQueue>& queues) {
  const GpuActivities& gpu = rank.recording.gpu;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const Interval activity = gpu.interval(i);
    if (const auto launch = rank.launch_of(i))
      queues[device_of[gpu.stream[i].index()]].add_launch(rank.recording.launches.start[*launch],
                                                          activity);
  }
}

}  // namespace

std::vector<IntervalSet> find_own_times(RankTimeline& rank) {
  const std::vector<std::size_t> device_of = device_of_stream(rank);
  std::vector<IntervalSet> comm;
  std::vector<DeviceQueue> queues;
  for (std::size_t d = 0; d < rank.devices.size(); ++d) {
    comm.push_back(communication_of(rank.devices[d]));
    queues.emplace_back(rank.devices[d], comm[d]);
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
    sums.add(queues[d].idle(), &OwnTime::gaps);
    device.launches_known = queues[d].launches_known();
    host_idle.push_back(device.launches_known ? std::move(queues[d]).nothing_queued()
                                              : IntervalSet());
    sums.add(host_idle[d].parts(), &OwnTime::host);
    for (auto* own : {&device.own_at_start, &device.own_at_end}) {
      for (OwnTime& time : *own) time.gaps -= time.host;
    }
    device.compute_under_comm = compute_under(device.compute, comm[d]);
  }
  return host_idle;
}

}  // namespace commlens
