// Problem: to say why a rank was late, its time since the last common operation is needed by class,
// for millions of pairs of operations. Method: compute, copies and idle time come as differences of
// the running sums that each communication carries (match/own_time); what is left of the stretch is
// exposed communication, and that is split in the proportion of its communications' waiting and
// transfer:
//
//   leaves A                                     enters B
//     |== compute ==|-- C waits --|-- C moves --|== compute ==|  idle  |
//
// Communications that lie in the stretch as a whole are differences of running sums too; only those
// that reach over its ends are looked at one by one.
//
// When it is wrong: where several communications are exposed at once, one waiting and one moving
// data, each gets its proportion of that time, not its own instants.
#include "match/stretch.h"

#include <algorithm>
#include <array>
#include <limits>

#include "model/shares.h"

namespace commlens {

StretchIndex::StretchIndex(const DeviceTimeline& device, const std::vector<Wait>& waits)
    : device_(device), waits_(waits) {
  latest_end_.reserve(device.comm.size());
  for (std::vector<Ns>* column : {&before_.waiting, &before_.transfer, &before_.unknown})
    column->reserve(device.comm.size() + 1);
  Ns latest = std::numeric_limits<Ns>::min();
  for (const CommOp& op : device.comm)
    latest_end_.push_back(latest = std::max(latest, op.time.end));
  Ns covered = 0;
  covered_.reserve(device.compute_under_comm.parts().size());
  for (const Interval part : device.compute_under_comm.parts()) {
    covered_.push_back(covered);
    covered += part.length();
  }
  Split sums;
  const auto keep = [this, &sums] {
    before_.waiting.push_back(sums.waiting);
    before_.transfer.push_back(sums.transfer);
    before_.unknown.push_back(sums.unknown);
  };
  for (std::uint32_t op = 0; op < device.comm.size(); ++op) {
    keep();
    sums.add(part_of(op, device.comm[op].time));
  }
  keep();
  if (sums.unknown == 0) before_.unknown = {};
}

void StretchIndex::Split::add(const StretchPart& part) {
  waiting += part.waiting;
  transfer += part.transfer;
  unknown += part.unknown;
}

Ns StretchIndex::exposed(Interval part) const {
  if (part.end <= part.start) return 0;
  const auto compute = device_.compute_under_comm.parts();
  const auto before = [&](Ns at) {
    const auto behind = std::partition_point(compute.begin(), compute.end(),
                                             [at](Interval piece) { return piece.start < at; });
    if (behind == compute.begin()) return Ns{0};
    const auto last = behind - compute.begin() - 1;
    const Interval& piece = compute[static_cast<std::size_t>(last)];
    return covered_[static_cast<std::size_t>(last)] + std::min(at, piece.end) - piece.start;
  };
  return part.length() - (before(part.end) - before(part.start));
}

StretchPart StretchIndex::part_of(std::uint32_t op, Interval stretch) const {
  const Interval time = device_.comm[op].time;
  const Wait& wait = waits_[op];
  StretchPart part{.op = op, .waiting = 0, .transfer = 0, .unknown = 0};
  if (!wait.known) {
    part.unknown = exposed(clip(time, stretch));
    return part;
  }
  // A sender that its receiver may have held up: waiting or not, nobody knows.
  const Ns held = std::max(wait.wait, wait.doubtful);
  const Ns together = time.start + wait.wait;
  const Ns moving = time.start + held;
  part.waiting = exposed(clip({time.start, together}, stretch));
  part.unknown = exposed(clip({together, moving}, stretch));
  part.transfer = exposed(clip({moving, time.end}, stretch));
  return part;
}

// Backwards from `to`: until nothing before can reach into the stretch.
template <class Visit>
void StretchIndex::visit(std::uint32_t from, std::uint32_t to, Visit visit) const {
  const Interval stretch{device_.comm[from].time.end, device_.comm[to].time.start};
  for (std::uint32_t op = to; op-- > 0 && latest_end_[op] > stretch.start;) {
    if (op == from || device_.comm[op].time.end <= stretch.start) continue;
    visit(part_of(op, stretch));
  }
}

std::vector<StretchPart> StretchIndex::parts(std::uint32_t from, std::uint32_t to) const {
  std::vector<StretchPart> found;
  visit(from, to, [&found](const StretchPart& part) { found.push_back(part); });
  return found;
}

// What `visit` would sum up to.
//
//   starts before the stretch | starts and ends in it | may reach over its end   (rows, ascending)
StretchIndex::Split StretchIndex::split(std::uint32_t from, std::uint32_t to) const {
  const Interval stretch{device_.comm[from].time.end, device_.comm[to].time.start};
  Split sums;
  const auto add_part = [&](std::uint32_t op) {
    if (op != from && device_.comm[op].time.end > stretch.start) sums.add(part_of(op, stretch));
  };
  std::uint32_t op = to;
  for (; op > 0 && latest_end_[op - 1] > stretch.end; --op) add_part(op - 1);
  const auto rows = device_.comm.begin();
  const auto inside = std::partition_point(
      rows, rows + op, [&stretch](const CommOp& o) { return o.time.start < stretch.start; });
  const auto first = static_cast<std::uint32_t>(inside - rows);
  sums.waiting += before_.waiting[op] - before_.waiting[first];
  sums.transfer += before_.transfer[op] - before_.transfer[first];
  if (!before_.unknown.empty()) sums.unknown += before_.unknown[op] - before_.unknown[first];
  for (op = first; op > 0 && latest_end_[op - 1] > stretch.start; --op) add_part(op - 1);
  return sums;
}

Stretch StretchIndex::between(std::uint32_t from, std::uint32_t to) const {
  const OwnTime& left = device_.own_at_end[from];
  const OwnTime& entered = device_.own_at_start[to];
  Stretch stretch{.length = device_.comm[to].time.start - device_.comm[from].time.end,
                  .compute = entered.compute - left.compute,
                  .memory = entered.memory - left.memory,
                  .host = entered.host - left.host,
                  .gaps = entered.gaps - left.gaps};
  const Split sums = split(from, to);
  const Ns communication = std::max<Ns>(
      0, stretch.length - stretch.compute - stretch.memory - stretch.host - stretch.gaps);
  const std::array<Ns, 3> weights{sums.waiting, sums.transfer, sums.unknown};
  std::array<Ns, 3> split{};
  split_by_weight(communication, weights, split);
  stretch.waiting = split[0];
  stretch.transfer = split[1];
  stretch.unknown = split[2];
  return stretch;
}

}  // namespace commlens
