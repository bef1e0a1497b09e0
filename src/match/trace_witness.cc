// Problem: profilers write what has ended. A collective in which a rank hangs has no kernel in its
// trace: it shows only as a call on the host whose kernel never came.
//
// Method: by group, the highest number that the host called and the highest that a kernel ended.
// Numbers are the framework's (`Seq`), which host and kernel share. Where a file is cut, or the
// host's calls were not recorded, that is said, and diagnose/ makes nothing of what is absent.
#include "match/trace_witness.h"

#include <algorithm>
#include <map>

#include "match/group_table.h"
#include "model/witness_trace.h"

namespace commlens {
namespace {

bool between_two(Op op) { return op == Op::send || op == Op::recv || op == Op::send_recv; }

class TraceReader {
 public:
  TraceReader(RankTimeline& rank, TraceFacts& facts) : rank_(rank), facts_(facts) {}

  void read() {
    const Recording& recording = rank_.recording;
    facts_.clock_known = recording.clock == ClockBase::epoch;
    for (const Note note : {Note::truncated, Note::corrupt_compression, Note::read_failed}) {
      if (recording.notes.count(note) == 0) continue;
      facts_.cut = true;
      facts_.how_cut = recording.notes.example(note);
    }
    read_calls();
    read_kernels();
    for (auto& [identity, group] : groups_) {
      group.name = identity.name;
      group.description = identity.description == "undefined" ? "" : identity.description;
      group.members = identity.ranks;
      group.size = identity.size;
      facts_.groups.push_back(std::move(group));
    }
  }

 private:
  Ns on_clock(Ns time) const {
    Ns sum = 0;
    return __builtin_add_overflow(time, rank_.recording.clock_base, &sum) ? 0 : sum;
  }

  void extend(Ns start, Ns end) {
    if (facts_.first == 0 || on_clock(start) < facts_.first) facts_.first = on_clock(start);
    facts_.last = std::max(facts_.last, on_clock(end));
  }

  // The host's records, in the order of the file.
  void read_calls() {
    const Recording& recording = rank_.recording;
    GroupTable table(rank_);
    for (std::size_t i = 0; i < recording.host_ranges.size(); ++i) {
      const HostRange& range = recording.host_ranges[i];
      extend(range.start, range.end);
      if (range.kind != HostRangeKind::collective_record || !range.meta.valid()) continue;
      const std::int64_t seq = recording.host_calls.find(i).seq;
      const std::int32_t row = table.row_of(range.meta);
      const auto name = recording.strings.get(recording.metas[range.meta.index()].collective);
      const Op op = op_from_collective_name(name).value_or(Op::unknown);
      if (seq < 0 || row < 0 || between_two(op)) continue;
      facts_.calls_known = true;
      TraceGroup& group = groups_[rank_.groups[static_cast<std::size_t>(row)]];
      if (seq <= group.called) continue;
      group.called = seq;
      group.called_at = on_clock(range.start);
      group.op = op;
    }
    for (std::size_t i = 0; i < recording.launches.size(); ++i)
      extend(recording.launches.start[i], recording.launches.start[i]);
    if (recording.span) extend(recording.span->start, recording.span->end);
  }

  void read_kernels() {
    for (const DeviceTimeline& device : rank_.devices) {
      for (const CommOp& op : device.comm) {
        extend(op.time.start, op.time.end);
        if (op.seq < 0 || op.group < 0 || between_two(op.op)) continue;
        TraceGroup& group = groups_[rank_.groups[static_cast<std::size_t>(op.group)]];
        if (op.seq <= group.ended) continue;
        group.ended = op.seq;
        group.ended_at = on_clock(op.time.end);
      }
      extend(device.extent.start, device.extent.end);
    }
  }

  RankTimeline& rank_;
  TraceFacts& facts_;
  std::map<GroupIdentity, TraceGroup> groups_;
};

}  // namespace

Witness witness_of_timeline(RankTimeline& rank) {
  Witness witness;
  witness.path = rank.recording.path;
  witness.stored_bytes = rank.recording.stored_bytes;
  witness.records = rank.recording.events;
  witness.notes = rank.recording.notes;
  witness.trace = std::make_unique<TraceFacts>();
  witness.trace->rank = rank.recording.rank.value_or(-1);
  TraceReader(rank, *witness.trace).read();
  witness.damaged = witness.trace->cut;
  return witness;
}

}  // namespace commlens
