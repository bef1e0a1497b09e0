#include "match/comm_sequence.h"

#include <algorithm>

namespace commlens {
namespace {

// Times of hostile files stay so far inside 64 bits (nine years before the epoch to 73 behind it)
// that differences of differences do too.
constexpr Ns kEarliest = -(Ns{1} << 58);
constexpr Ns kLatest = Ns{1} << 61;

Ns on_clock(Ns time, Ns base) {
  Ns sum = 0;
  if (__builtin_add_overflow(time, base, &sum)) sum = time < 0 ? kEarliest : kLatest;
  return std::clamp(sum, kEarliest, kLatest);
}

}  // namespace

bool synchronises(Op op) {
  switch (op) {
    case Op::all_reduce:
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::barrier:
    case Op::moe_dispatch:
    case Op::moe_combine: return true;
    default: return false;
  }
}

bool size_may_differ(Op op) {
  switch (op) {
    case Op::all_reduce:
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::broadcast:
    case Op::reduce:
    case Op::barrier: return false;
    default: return true;
  }
}

bool fits(const CommEvent& a, const CommEvent& b) {
  if (a.any_op || b.any_op) return true;
  if (a.op != b.op) return false;
  if (a.dtype != 0 && b.dtype != 0 && a.dtype != b.dtype) return false;
  return a.bytes == kUnknown || b.bytes == kUnknown || a.bytes == b.bytes;
}

bool share_clock(const Member& a, const Member& b) {
  if (!a.clock_known || !b.clock_known) return false;
  return a.row == b.row || (!a.host.empty() && a.host == b.host);
}

std::size_t longest_member(const std::vector<Member>& members) {
  const auto longest = std::max_element(
      members.begin(), members.end(),
      [](const Member& a, const Member& b) { return a.events.size() < b.events.size(); });
  return static_cast<std::size_t>(longest - members.begin());
}

Member EventReader::member(std::size_t row, std::size_t device) const {
  const RankTimeline& rank = job_.ranks[row];
  return {.row = row,
          .device = device,
          .rank = rank.rank,
          .host = rank.host,
          .clock_known = rank.recording.clock == ClockBase::epoch,
          .events = {}};
}

CommEvent EventReader::event(std::size_t row, std::size_t device, std::uint32_t op) {
  const RankTimeline& rank = job_.ranks[row];
  const CommOp& comm = rank.devices[device].comm[op];
  const Ns base = rank.recording.clock_base;
  return {.start = on_clock(comm.time.start, base),
          .end = on_clock(comm.time.end, base),
          .bytes = size_may_differ(comm.op) ? kUnknown : comm.bytes.value_or(kUnknown),
          .seq = comm.seq,
          .step = comm.step,
          .comms_id = comm.comms_id,
          .row = op,
          .dtype = dtype(row, comm.dtype),
          .op = comm.op,
          .any_op = comm.op == Op::unknown || comm.name_may_lie};
}

std::uint32_t EventReader::dtype(std::size_t row, StringId id) {
  if (!id.valid()) return 0;
  std::vector<std::uint32_t>& known = dtypes_by_row_[row];
  if (known.size() <= id.index()) known.resize(id.index() + 1);
  std::uint32_t& number = known[id.index()];
  if (number != 0) return number;
  const std::string_view text = job_.ranks[row].recording.strings.get(id);
  if (text.empty()) return 0;
  auto found = dtypes_.find(text);
  if (found == dtypes_.end())
    found = dtypes_.emplace(text, static_cast<std::uint32_t>(dtypes_.size() + 1)).first;
  number = found->second;
  return number;
}

}  // namespace commlens
