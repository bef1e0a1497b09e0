// Problem: a kernel's name is the weakest witness of what it does. NCCL runs many operations
// through one entry point (all-to-all shows as SendRecv, RCCL shows "Generic"), other libraries
// hide in templates, and a copy kernel launched for a collective is compute.
//
// Method: for each activity the first of these that speaks: metadata on the activity; the host
// operation it is linked to, by the external id on it or on its launch; the host range it was
// launched in; its name by the built-in rules; its name by the user's. Metadata and links make
// anything communication, copies too. Nesting alone does not: such a range can last while the
// thread launches other work, so there the name must say communication, and the range says which.
//
// Cost: names are judged once per distinct name; host look-ups are a binary search each.
//
// When it is wrong: a library that the rules don't know, outside any metadata, counts as compute;
// names that speak of communication all the same are reported as possible communication.
#include "match/classify.h"

#include <algorithm>
#include <map>

#include "match/call_facts.h"
#include "match/group_table.h"
#include "match/host_links.h"
#include "match/kernel_times.h"
#include "match/launches.h"
#include "model/bandwidth.h"

namespace commlens {
namespace {

// What one activity turned out to be.
struct Judged {
  ActivityClass kind = ActivityClass::compute;
  Op op = Op::unknown;
  Evidence evidence = Evidence::kernel_name;
  bool name_may_lie = false;
  MetaId meta;
  std::string_view dtype;  // from the name, where no metadata says it
};

// A name's verdicts, judged once.
struct JudgedName {
  NameVerdict built_in;
  const NameRule* rule = nullptr;
  bool judged = false;
};

class Classifier {
 public:
  Classifier(RankTimeline& rank, const std::vector<NameRule>& rules, bool keep_columns)
      : rank_(rank),
        keep_columns_(keep_columns),
        recording_(rank.recording),
        rules_(rules),
        links_(rank),
        groups_(rank),
        names_(rank.recording.strings.size()),
        kernel_times_(rank.recording.strings.size()) {}

  void run() {
    const GpuActivities& gpu = recording_.gpu;
    rank_.classes.resize(gpu.size());
    make_room();
    for (std::size_t i = 0; i < gpu.size(); ++i) add(i, judge(i));
    describe_calls();
    rank_.kernel_times = kernel_times_.most(recording_.strings);
    if (gpu.size() == 0) add_host_timeline();
    // What only classification reads is let go before the unions take their memory.
    if (!keep_columns_) let_go();
    for (auto& [device, lane] : lanes_) finish(device, lane);
    note_doubts();
  }

 private:
  // What is collected for one device before its unions are made.
  struct Lane {
    DeviceTimeline timeline;
    std::vector<Interval> memory;
    std::vector<std::size_t> streams;  // its rows of streams_
    std::size_t activities = 0;        // how many there will be
    std::size_t with_meta = 0;         // of these, with metadata: communication
    bool covers = false;               // anything so far

    void cover(Interval activity) {
      Interval& extent = timeline.extent;
      extent = covers ? Interval{std::min(extent.start, activity.start),
                                 std::max(extent.end, activity.end)}
                      : activity;
      covers = true;
    }
  };

  // Starts and compute intervals are kept per stream: in file order they are usually sorted there,
  // and sorting is most of the cost of a union.
  struct StreamLane {
    Lane* device = nullptr;
    std::vector<Interval> compute;
    std::size_t activities = 0;
    std::size_t next_start = 0;  // where its next start goes among the device's
  };

  // Memory for exactly what will come: a vector that grows by doubling holds three times as much at
  // its worst.
  void make_room() {
    streams_.resize(recording_.streams.size());
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      streams_[s].device = &lanes_[recording_.streams[s].device];
      streams_[s].device->streams.push_back(s);
    }
    for (std::size_t i = 0; i < recording_.gpu.size(); ++i) {
      StreamLane& stream = streams_[recording_.gpu.stream[i].index()];
      ++stream.activities;
      ++stream.device->activities;
      stream.device->with_meta += recording_.gpu.meta[i].valid() ? 1 : 0;
    }
    for (auto& [device, lane] : lanes_) {
      lane.timeline.starts.resize(lane.activities);
      std::size_t behind = 0;
      for (const std::size_t s : lane.streams) {
        streams_[s].next_start = behind;
        behind += streams_[s].activities;
      }
      lane.timeline.comm.reserve(lane.with_meta);
    }
  }

  Judged judge(std::size_t i) {
    const GpuActivities& gpu = recording_.gpu;
    const MetaId meta = gpu.meta[i];
    if (meta.valid()) return from_meta(meta, Evidence::metadata);
    if (const auto link = links_.by_external_id(gpu.external_id[i]))
      return from_host(*link, Evidence::host_operation, i);
    if (const auto link = links_.by_launch(gpu.correlation[i]))
      return from_host(*link, Evidence::host_operation, i);
    if (gpu.kind[i] != ActivityKind::kernel)
      return {.kind = ActivityClass::memory,
              .evidence = Evidence::kernel_name,
              .meta = {},
              .dtype = {}};
    return judge_by_name(i);
  }

  Judged from_meta(MetaId meta, Evidence evidence) const {
    const std::string_view collective =
        recording_.strings.get(recording_.metas[meta.index()].collective);
    return {.kind = ActivityClass::communication,
            .op = op_from_collective_name(collective).value_or(Op::unknown),
            .evidence = evidence,
            .meta = meta,
            .dtype = {}};
  }

  // A host operation that is surely communication but does not say which: the name may.
  Judged from_host(const HostLink& link, Evidence evidence, std::size_t i) {
    Judged verdict{.kind = ActivityClass::communication,
                   .op = link.op,
                   .evidence = evidence,
                   .meta = link.meta,
                   .dtype = {}};
    if (link.op != Op::unknown || recording_.gpu.kind[i] != ActivityKind::kernel) return verdict;
    if (const auto nested = links_.by_nesting(i))
      return from_host(*nested, Evidence::host_nesting, i);
    const JudgedName& name = judged(recording_.gpu.name[i]);
    if (name.built_in.kind != NameClass::communication) return verdict;
    verdict.op = name.built_in.op;
    verdict.name_may_lie = name.built_in.op_may_lie;
    verdict.dtype = name.built_in.dtype;
    return verdict;
  }

  Judged judge_by_name(std::size_t i) {
    const JudgedName& name = judged(recording_.gpu.name[i]);
    const bool by_rule = name.rule != nullptr && rule_decides(name);
    const bool communicates = by_rule ? name.rule->kind == NameClass::communication
                                      : name.built_in.kind == NameClass::communication;
    if (!communicates) {
      return {.kind = ActivityClass::compute,
              .evidence = by_rule ? Evidence::user_rule : Evidence::kernel_name,
              .meta = {},
              .dtype = {}};
    }
    const auto link = links_.by_nesting(i);
    if (link) {
      Judged verdict = from_host(*link, Evidence::host_nesting, i);
      verdict.dtype = name.built_in.dtype;
      return verdict;
    }
    if (by_rule)
      return {.kind = ActivityClass::communication,
              .op = name.rule->op,
              .evidence = Evidence::user_rule,
              .meta = {},
              .dtype = {}};
    return {.kind = ActivityClass::communication,
            .op = name.built_in.op,
            .evidence = Evidence::kernel_name,
            .name_may_lie = name.built_in.op_may_lie,
            .meta = {},
            .dtype = name.built_in.dtype};
  }

  // A user's rule speaks where the built-in rules say compute, unknown or "may lie", and where it
  // says compute.
  static bool rule_decides(const JudgedName& name) {
    return name.rule->kind == NameClass::compute || name.built_in.kind == NameClass::compute ||
           name.built_in.op == Op::unknown || name.built_in.op_may_lie;
  }

  JudgedName& judged(StringId id) {
    JudgedName& name = names_[id.index()];
    if (name.judged) return name;
    const std::string_view text = recording_.strings.get(id);
    name = {
        .built_in = classify_kernel_name(text), .rule = match_rule(rules_, text), .judged = true};
    return name;
  }

  void add(std::size_t i, const Judged& verdict) {
    const GpuActivities& gpu = recording_.gpu;
    const StreamId stream = gpu.stream[i];
    StreamLane& stream_lane = streams_[stream.index()];
    Lane& lane = *stream_lane.device;
    const Interval time = gpu.interval(i);
    const StringId name = gpu.name[i];
    rank_.classes[i] = verdict.kind;
    lane.cover(time);
    lane.timeline.starts[stream_lane.next_start++] = time.start;
    switch (verdict.kind) {
      case ActivityClass::compute:
        if (stream_lane.compute.empty()) stream_lane.compute.reserve(stream_lane.activities);
        stream_lane.compute.push_back(time);
        kernel_times_.add(name, time.length());
        if (possible(name)) possible_[name] += time.length();
        return;
      case ActivityClass::memory: lane.memory.push_back(time); return;
      case ActivityClass::communication: break;
    }
    ++rank_.evidence[static_cast<std::size_t>(verdict.evidence)];
    CommOp op{.time = time,
              .source = i,
              .stream = stream,
              .name = name,
              .dtype = {},
              .op = verdict.op,
              .evidence = verdict.evidence,
              .name_may_lie = verdict.name_may_lie,
              .bytes = {}};
    if (!verdict.dtype.empty()) op.dtype = recording_.strings.intern(verdict.dtype);
    if (verdict.meta.valid()) take_metadata(verdict.meta, op);
    lane.timeline.comm.push_back(op);
  }

  bool possible(StringId name) { return judged(name).built_in.possible; }

  void take_metadata(MetaId id, CommOp& op) {
    const CollectiveMeta& meta = recording_.metas[id.index()];
    const std::string_view dtype = recording_.strings.get(meta.dtype);
    if (meta.dtype.valid() && !meta.counts_bytes) op.dtype = meta.dtype;
    op.reduction = meta.reduction;
    op.group = groups_.row_of(id);
    op.group_size =
        op.group >= 0 ? rank_.groups[static_cast<std::size_t>(op.group)].size : meta.group_size;
    if (const auto size = element_bytes(dtype))
      op.bytes = message_bytes(op.op, meta.in_elements, meta.out_elements, *size);
  }

  // What tells each communication from the others, now that all of them are known.
  void describe_calls() {
    CallFacts facts(rank_, links_, groups_);
    for (auto& [device, lane] : lanes_) {
      for (CommOp& op : lane.timeline.comm) facts.describe(op);
    }
  }

  // A recording without GPU work whose backend moves data on the host: its ranges are the
  // communication.
  void add_host_timeline() {
    Lane lane;
    CallFacts facts(rank_, links_, groups_);
    for (std::size_t i = 0; i < recording_.host_ranges.size(); ++i) {
      const HostRange& range = recording_.host_ranges[i];
      const std::string_view backend = recording_.strings.get(range.backend);
      if (backend != "gloo" && backend != "mpi" && backend != "ucc") continue;
      CommOp op{
          .time = {range.start, range.end},
          .source = i,
          .stream = {},
          .name = range.name,
          .dtype = {},
          .op = op_from_collective_name(recording_.strings.get(range.name)).value_or(Op::unknown),
          .evidence = Evidence::host_interval,
          .bytes = {}};
      // The framework's record of the call, around the range, has what the range lacks.
      const auto call = links_.around(range.thread, range.start);
      const bool recorded = call && call->op == op.op && call->meta.valid();
      if (recorded) take_metadata(call->meta, op);
      facts.describe_range(op, recorded ? call->record : std::nullopt);
      lane.timeline.comm.push_back(op);
      ++rank_.evidence[static_cast<std::size_t>(Evidence::host_interval)];
    }
    if (lane.timeline.comm.empty()) {
      rank_.notes.add(Note::no_gpu_events);
      return;
    }
    rank_.notes.add(Note::host_intervals, recording_.backend,
                    static_cast<std::int64_t>(lane.timeline.comm.size()));
    const auto cover = [&lane](Interval part) {
      lane.cover(part);
      lane.timeline.starts.push_back(part.start);
    };
    for (const CommOp& op : lane.timeline.comm) cover(op.time);
    lane.timeline.compute = recording_.host_compute;
    for (const Interval part : recording_.host_compute.parts()) cover(part);
    finish(std::nullopt, lane);
  }

  void finish(std::optional<std::int64_t> device, Lane& lane) {
    DeviceTimeline& timeline = lane.timeline;
    timeline.device = device;
    for (const std::size_t s : lane.streams) {
      if (streams_[s].compute.empty()) continue;
      IntervalSet of_stream(std::move(streams_[s].compute));
      timeline.compute =
          timeline.compute.empty() ? std::move(of_stream) : set_union(timeline.compute, of_stream);
    }
    timeline.memory = IntervalSet(std::move(lane.memory));
    std::sort(timeline.comm.begin(), timeline.comm.end(), [this](const CommOp& a, const CommOp& b) {
      if (a.time.start != b.time.start) return a.time.start < b.time.start;
      if (a.stream != b.stream) return stream_order(a.stream) < stream_order(b.stream);
      return a.source < b.source;
    });
    sort_starts(lane);
    if (timeline.comm.empty() && device) rank_.notes.add(Note::no_communication);
    rank_.devices.push_back(std::move(timeline));
  }

  // Each stream's, then two neighbours' at a time: any number of streams adds only its logarithm.
  void sort_starts(Lane& lane) const {
    std::vector<Ns>& starts = lane.timeline.starts;
    std::vector<std::ptrdiff_t> bounds{0};
    for (const std::size_t s : lane.streams)
      bounds.push_back(static_cast<std::ptrdiff_t>(streams_[s].next_start));
    if (lane.streams.empty()) bounds.push_back(static_cast<std::ptrdiff_t>(starts.size()));
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto first = starts.begin() + bounds[i];
      const auto last = starts.begin() + bounds[i + 1];
      if (!std::is_sorted(first, last)) std::sort(first, last);
    }
    while (bounds.size() > 2) {
      std::vector<std::ptrdiff_t> fewer{0};
      for (std::size_t i = 2; i < bounds.size(); i += 2) {
        std::inplace_merge(starts.begin() + bounds[i - 2], starts.begin() + bounds[i - 1],
                           starts.begin() + bounds[i]);
        fewer.push_back(bounds[i]);
      }
      if (fewer.back() != bounds.back()) fewer.push_back(bounds.back());
      bounds = std::move(fewer);
    }
  }

  Stream stream_order(StreamId id) const {
    return id.valid() ? recording_.streams[id.index()] : Stream{};
  }

  void let_go() {
    recording_.gpu.external_id.clear();
    recording_.gpu.meta.clear();
    recording_.gpu.kind.clear();
    recording_.launches.external_id.clear();
    recording_.calls = Calls();
    recording_.host_calls = Calls();
  }

  void note_doubts() {
    for (const auto& [name, time] : possible_) {
      rank_.notes.add(Note::possible_communication, std::string(recording_.strings.get(name)) +
                                                        " (" + std::to_string(time) + " ns)");
    }
    for (const DeviceTimeline& device : rank_.devices) {
      for (const CommOp& op : device.comm) {
        if (op.name_may_lie)
          rank_.notes.add(Note::op_from_name_only, recording_.strings.get(op.name));
        if (!op.bytes) rank_.notes.add(Note::unknown_size, recording_.strings.get(op.name));
      }
    }
    if (recording_.gpu.size() == 0) return;
    for (const HostRange& range : recording_.host_ranges) {
      const std::string_view backend = recording_.strings.get(range.backend);
      if (backend == "gloo" || backend == "mpi" || backend == "ucc")
        rank_.notes.add(Note::host_communication, backend);
    }
  }

  RankTimeline& rank_;
  const bool keep_columns_;
  Recording& recording_;
  const std::vector<NameRule>& rules_;
  HostLinks links_;
  GroupTable groups_;
  std::vector<JudgedName> names_;
  KernelTimes kernel_times_;
  std::map<std::int64_t, Lane> lanes_;  // by device
  std::vector<StreamLane> streams_;     // by StreamId
  std::map<StringId, Ns> possible_;
};

}  // namespace

void classify(RankTimeline& rank, const std::vector<NameRule>& rules, bool keep_columns) {
  find_launches(rank);
  Classifier(rank, rules, keep_columns).run();
}

}  // namespace commlens
