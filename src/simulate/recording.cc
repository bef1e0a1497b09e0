// Pushes what the profiler kept to the builder, in the order in which the file would hold it: the
// order of the rows, texts and ids is that of reading the file.
#include "simulate/recording.h"

#include <string_view>

#include "model/builder.h"
#include "simulate/profile.h"

namespace commlens::simulate {
namespace {

class RankRecorder {
 public:
  explicit RankRecorder(const Profile& profile)
      : profile_(profile),
        trace_(profile.trace()),
        builder_("rank-" + std::to_string(profile.rank()) + ".json", "kineto") {}

  Recording record();

 private:
  void describe();
  void describe_groups();
  void add_range(const HostRange& range, int index);
  void add_call(const RuntimeCall& call, int index);
  void add_sync(const RuntimeCall& call, int index);
  void add_activity(const GpuEvent& event);
  void add_gpu_steps();
  MetaId meta(int collective, int member, bool on_host);
  CallKey call(int collective, int member, bool on_host) const;
  ThreadId thread() { return builder_.thread(profile_.process(), profile_.process()); }
  std::int64_t& events() { return builder_.about().events; }

  const Profile& profile_;
  const RankTrace& trace_;
  TraceBuilder builder_;
};

void RankRecorder::describe_groups() {
  const Layout& layout = profile_.job().layout;
  for (const int index : layout.places[static_cast<std::size_t>(profile_.rank())].group) {
    if (index < 0) continue;
    const Group& group = layout.groups[static_cast<std::size_t>(index)];
    builder_.about().groups.push_back({.name = group.name,
                                       .description = std::string(group.description),
                                       .size = static_cast<std::int64_t>(group.ranks.size()),
                                       .ranks = group.ranks});
  }
  builder_.about().nccl_version = "2.26.2";
}

void RankRecorder::describe() {
  Recording& about = builder_.about();
  about.rank = profile_.rank();
  about.world_size = profile_.job().spec.world();
  about.backend = "nccl";
  about.host = profile_.host();
  about.clock = ClockBase::epoch;
  about.clock_base = kBaseNs;
  about.span = profile_.span();
  if (profile_.options().metadata) describe_groups();
}

MetaId RankRecorder::meta(int collective, int member, bool on_host) {
  if (!profile_.options().metadata) return {};
  const CommsRecord comms = profile_.comms(collective, member);
  const Group& group = comms.group();
  return builder_.add_meta({.collective = builder_.intern(op_words(comms.member.op).collective),
                            .dtype = builder_.intern(kDtype),
                            .in_elements = comms.member.in_elements,
                            .out_elements = comms.member.out_elements,
                            .group_size = static_cast<std::int64_t>(group.ranks.size()),
                            .group_name = builder_.intern(group.name),
                            .group_description = builder_.intern(group.description),
                            .group_ranks = builder_.intern(comms.ranks_text()),
                            .group_start = on_host ? group.ranks[0] : kUnknown,
                            .group_stride = on_host ? comms.group_stride() : kUnknown});
}

// Kernels bear numbers only where the recorder is new enough, and never the rank in the group.
CallKey RankRecorder::call(int collective, int member, bool on_host) const {
  if (!profile_.options().metadata) return {};
  const CommsRecord comms = profile_.comms(collective, member);
  const bool numbered = comms.with_seq && (on_host || profile_.options().kernel_seq);
  const bool pair = comms.collective.point_to_point;
  return {.comms_id = numbered && !on_host ? comms.comms_id() : 0,
          .seq = numbered ? comms.seq : kUnknown,
          .rank = on_host ? comms.rank_in_group() : -1,
          .source = pair ? comms.source() : -1,
          .destination = pair ? comms.destination() : -1,
          .zero_split = comms.may_have_zero_split()};
}

// Operators are of no interest to readers, but for the records of collectives.
void RankRecorder::add_range(const HostRange& range, int index) {
  ++events();
  const Interval own = profile_.own(range.start, range.end);
  const std::string_view name = profile_.name(range.name);
  if (range.kind == RangeKind::step) {
    const std::int64_t number = std::stoll(std::string(name.substr(name.find('#') + 1)));
    builder_.add_step(number, own, false);
  } else if (range.kind == RangeKind::annotation) {
    constexpr std::string_view kBackend = "nccl";
    builder_.add_host_range({.start = own.start,
                             .end = own.end,
                             .thread = thread(),
                             .name = builder_.intern(name.substr(kBackend.size() + 1)),
                             .backend = builder_.intern(kBackend),
                             .meta = {}});
  } else if (range.kind == RangeKind::record_comms) {
    builder_.add_host_range({.start = own.start,
                             .end = own.end,
                             .thread = thread(),
                             .name = {},
                             .backend = {},
                             .meta = meta(range.collective, range.member, true),
                             .external_id = static_cast<std::uint64_t>(Profile::external_id(index)),
                             .kind = HostRangeKind::collective_record},
                            call(range.collective, range.member, true));
  }
}

bool starts_gpu_work(CallKind kind) {
  return kind == CallKind::launch || kind == CallKind::launch_communication ||
         kind == CallKind::memcpy || kind == CallKind::memset;
}

void RankRecorder::add_call(const RuntimeCall& call, int index) {
  const bool synchronises =
      call.kind == CallKind::stream_wait || call.kind == CallKind::stream_sync;
  const bool starts = starts_gpu_work(call.kind);
  events() += 1 + (synchronises && profile_.options().sync_records ? 1 : 0) +
              (starts && profile_.options().flows ? 1 : 0);
  if (synchronises) add_sync(call, index);
  if (!starts) return;
  const std::int64_t external = call.range >= 0 ? Profile::external_id(call.range) : 0;
  builder_.add_launch(static_cast<std::uint64_t>(Profile::correlation(index)),
                      profile_.at(call.start), thread(), static_cast<std::uint64_t>(external));
}

void RankRecorder::add_sync(const RuntimeCall& call, int index) {
  const auto correlation = static_cast<std::uint64_t>(Profile::correlation(index));
  const Interval own = profile_.own(call.start, call.end);
  const bool waits = call.kind == CallKind::stream_wait;
  builder_.add_sync_call({.start = own.start,
                          .end = own.end,
                          .correlation = correlation,
                          .thread = thread(),
                          .kind = waits ? SyncKind::stream_wait : SyncKind::stream_sync});
  if (!profile_.options().sync_records) return;
  const auto stream = [this](std::int64_t number) {
    return Stream{.device = profile_.device(), .context = 1, .stream = number};
  };
  SyncRecord record{.start = own.start,
                    .correlation = correlation,
                    .stream = stream(call.stream),
                    .source = stream(kUnknown),
                    .kind = waits ? SyncKind::stream_wait : SyncKind::stream_sync};
  if (waits) {
    record.source = stream(profile_.call(call.record_call).stream);
    record.record_correlation = static_cast<std::uint64_t>(Profile::correlation(call.record_call));
  }
  builder_.add_sync_record(record);
}

ActivityKind activity_kind(GpuKind kind) {
  switch (kind) {
    case GpuKind::memcpy: return ActivityKind::memcpy;
    case GpuKind::memset: return ActivityKind::memset;
    default: return ActivityKind::kernel;
  }
}

void RankRecorder::add_activity(const GpuEvent& event) {
  const bool arrow = profile_.options().flows && profile_.options().launches;
  events() += 1 + (arrow ? 1 : 0) + (event.collective >= 0 ? 1 : 0);  // its annotation
  const Interval own = profile_.own(event.start, event.end);
  const int range = profile_.call(event.call).range;
  const bool communicates = event.collective >= 0;
  const MetaId described = communicates ? meta(event.collective, event.member, false) : MetaId();
  builder_.add_activity(
      {.kind = activity_kind(event.kind),
       .start = own.start,
       .end = own.end,
       .name = event.kernel != nullptr ? event.kernel->name : profile_.name(event.name),
       .stream = {.device = profile_.device(), .context = 1, .stream = event.stream},
       .correlation = static_cast<std::uint64_t>(Profile::correlation(event.call)),
       .external_id = static_cast<std::uint64_t>(range >= 0 ? Profile::external_id(range) : 0),
       .meta = described,
       .call = communicates ? call(event.collective, event.member, false) : CallKey()});
}

void RankRecorder::add_gpu_steps() {
  for (const GpuStep& step : profile_.gpu_steps()) {
    ++events();
    const std::string& name =
        profile_.name(trace_.ranges[static_cast<std::size_t>(step.range)].name);
    builder_.add_step(std::stoll(name.substr(name.find('#') + 1)),
                      {step.span.start - 1, step.span.end + 1}, true);
  }
}

Recording RankRecorder::record() {
  describe();
  for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
    if (profile_.kept(trace_.ranges[i])) add_range(trace_.ranges[i], static_cast<int>(i));
  }
  for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
    if (profile_.kept(trace_.calls[i])) add_call(trace_.calls[i], static_cast<int>(i));
  }
  for (std::size_t i = 0; i < trace_.gpu.size(); ++i) {
    if (profile_.kept_activity(i)) add_activity(trace_.gpu[i]);
  }
  add_gpu_steps();
  // Names of processes, threads and streams; the recording's window.
  constexpr std::int64_t kNameEvents = 8;
  constexpr std::int64_t kWindow = 3;
  events() += kNameEvents + 2 * static_cast<std::int64_t>(profile_.streams().size()) + kWindow;
  builder_.about().process = profile_.process();
  return builder_.finish();
}

}  // namespace

Recording record_rank(const SimulatedJob& job, int rank, const RecordOptions& options) {
  const Profile profile(job, rank, options);
  return RankRecorder(profile).record();
}

}  // namespace commlens::simulate
