#include "model/builder.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"

namespace commlens {
namespace {

constexpr Ns kSecond = 1'000'000'000;
constexpr Ns kHour = 3600 * kSecond;
constexpr Ns kDay = 24 * kHour;

// Removes the rows of one column for which `drop` says so.
template <class Values>
void compact(Values& column, const std::vector<bool>& drop) {
  Values kept;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!drop[i]) kept.push_back(column[i]);
  }
  column = std::move(kept);
}

// The calls of the rows that stay, by their new rows.
Calls kept_calls(const Calls& calls, const std::vector<bool>& drop) {
  Calls kept;
  std::size_t dropped = 0;
  std::size_t row = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (; row < calls.row(i); ++row) dropped += drop[row] ? 1 : 0;
    if (!drop[row]) kept.add(row - dropped, calls.key(i));
  }
  return kept;
}

void remove_rows(GpuActivities& gpu, const std::vector<bool>& drop) {
  compact(gpu.start, drop);
  compact(gpu.end, drop);
  compact(gpu.correlation, drop);
  compact(gpu.external_id, drop);
  compact(gpu.name, drop);
  compact(gpu.stream, drop);
  compact(gpu.meta, drop);
  compact(gpu.kind, drop);
}

// `from` counts its rows from `offset` on.
void append_calls(Calls& to, const Calls& from, std::size_t offset) {
  for (std::size_t i = 0; i < from.size(); ++i) to.add(offset + from.row(i), from.key(i));
}

// From the first to the last moment that the host's records cover.
std::optional<Interval> host_hull(const Recording& recording) {
  std::optional<Interval> hull;
  const auto cover = [&hull](Interval part) {
    hull = hull ? Interval{std::min(hull->start, part.start), std::max(hull->end, part.end)} : part;
  };
  for (const Ns start : recording.launches.start) cover({start, start});
  for (const HostRange& range : recording.host_ranges) cover({range.start, range.end});
  for (const StepRange& step : recording.steps) {
    if (step.host.length() > 0) cover(step.host);
  }
  return hull;
}

}  // namespace

TraceBuilder::TraceBuilder(std::string_view path, std::string_view format) {
  recording_.path = path;
  recording_.format = format;
}

MetaId TraceBuilder::add_meta(const CollectiveMeta& meta) {
  const auto [found, inserted] = metas_.try_emplace(meta, MetaId::from(recording_.metas.size()));
  if (inserted) recording_.metas.push_back(meta);
  return found->second;
}

ThreadId TraceBuilder::thread(std::int64_t process, std::int64_t thread) {
  const std::pair key{process, thread};
  if (last_thread_.valid() && key == last_thread_key_) return last_thread_;
  const auto [found, inserted] =
      threads_.try_emplace(key, ThreadId::from(recording_.threads.size()));
  if (inserted) recording_.threads.push_back(key);
  last_thread_key_ = key;
  last_thread_ = found->second;
  return found->second;
}

void TraceBuilder::add_activity(const ActivityInput& activity) {
  if (!last_stream_.valid() || recording_.streams[last_stream_.index()] != activity.stream) {
    const auto [found, inserted] =
        streams_.try_emplace(activity.stream, StreamId::from(streams_.size()));
    if (inserted) recording_.streams.push_back(activity.stream);
    last_stream_ = found->second;
  }
  GpuActivities& gpu = recording_.gpu;
  if (activity.meta.valid()) recording_.calls.add(gpu.size(), activity.call);
  gpu.start.push_back(activity.start);
  gpu.end.push_back(std::max(activity.start, activity.end));
  gpu.correlation.push_back(activity.correlation);
  const bool own_number = activity.external_id == activity.correlation;
  if (own_number && activity.external_id != 0) ++external_equals_correlation_;
  gpu.external_id.push_back(own_number ? 0 : activity.external_id);
  gpu.name.push_back(recording_.strings.intern(activity.name));
  gpu.stream.push_back(last_stream_);
  gpu.meta.push_back(activity.meta);
  gpu.kind.push_back(activity.kind);
}

void TraceBuilder::add_launch(std::uint64_t correlation, Ns start, ThreadId thread,
                              std::uint64_t external_id) {
  recording_.launches.correlation.push_back(correlation);
  recording_.launches.start.push_back(start);
  recording_.launches.thread.push_back(thread);
  recording_.launches.external_id.push_back(external_id == correlation ? 0 : external_id);
}

void TraceBuilder::add_host_range(const HostRange& range, const CallKey& call) {
  if (range.meta.valid()) recording_.host_calls.add(recording_.host_ranges.size(), call);
  recording_.host_ranges.push_back(range);
}

void TraceBuilder::add_host_compute(Interval interval, ThreadId thread) {
  if (host_compute_.size() <= thread.index()) host_compute_.resize(thread.index() + 1);
  // Host operations nest: what lies inside the one before adds nothing to the union, and most do.
  std::vector<Interval>& mine = host_compute_[thread.index()];
  if (!mine.empty() && mine.back().start <= interval.start && interval.end <= mine.back().end)
    return;
  mine.push_back(interval);
}

void TraceBuilder::add_step(std::int64_t number, Interval range, bool on_gpu) {
  recording_.steps.push_back(
      on_gpu ? StepRange{.number = number, .host = {}, .gpu_annotation = range}
             : StepRange{.number = number, .host = range, .gpu_annotation = {}});
}

void TraceBuilder::append(TraceBuilder&& later) {
  append_about(later.recording_);
  append_host(later.recording_);
  append_activities(later.recording_);
  for (std::size_t t = 0; t < later.host_compute_.size(); ++t) {
    const auto [process, number] = later.recording_.threads[t];
    for (const Interval interval : later.host_compute_[t])
      add_host_compute(interval, thread(process, number));
  }
  external_equals_correlation_ += later.external_equals_correlation_;
}

// What is said twice counts as it was said last.
void TraceBuilder::append_about(Recording& later) {
  recording_.events += later.events;
  recording_.notes.merge(later.notes);
  if (later.rank) recording_.rank = later.rank;
  if (later.world_size != 0) recording_.world_size = later.world_size;
  if (later.span) recording_.span = later.span;
  if (later.clock != ClockBase::unknown) {
    recording_.clock = later.clock;
    recording_.clock_base = later.clock_base;
  }
  if (recording_.process == kUnknown) recording_.process = later.process;
  if (!later.backend.empty()) recording_.backend = std::move(later.backend);
  if (!later.nccl_version.empty()) recording_.nccl_version = std::move(later.nccl_version);
  if (!later.host.empty()) recording_.host = std::move(later.host);
  for (ProcessGroup& group : later.groups) recording_.groups.push_back(std::move(group));
}

// Column by column, each let go before the next: two pieces and their sum need not fit at once.
void TraceBuilder::append_activities(Recording& later) {
  GpuActivities& to = recording_.gpu;
  GpuActivities& from = later.gpu;
  const auto move_column = [](auto& target, auto& source, auto translate) {
    for (const auto& value : source) target.push_back(translate(value));
    source.clear();
  };
  const auto same = [](auto value) { return value; };
  std::vector<StringId> names;
  for (std::size_t i = 0; i < later.strings.size(); ++i)
    names.push_back(recording_.strings.intern(later.strings.get(StringId::from(i))));
  const auto name = [&names](StringId id) { return id.valid() ? names[id.index()] : id; };
  std::vector<StreamId> streams;
  for (const Stream& stream : later.streams) {
    const auto [found, inserted] = streams_.try_emplace(stream, StreamId::from(streams_.size()));
    if (inserted) recording_.streams.push_back(stream);
    streams.push_back(found->second);
  }
  std::vector<MetaId> metas;
  for (CollectiveMeta meta : later.metas) {
    for (StringId* id : {&meta.collective, &meta.dtype, &meta.group_name, &meta.group_description,
                         &meta.group_ranks, &meta.reduction})
      *id = name(*id);
    metas.push_back(add_meta(meta));
  }
  const auto meta_of = [&metas](MetaId id) { return id.valid() ? metas[id.index()] : id; };
  append_calls(recording_.calls, later.calls, to.size());
  append_calls(recording_.host_calls, later.host_calls, recording_.host_ranges.size());
  move_column(to.start, from.start, same);
  move_column(to.end, from.end, same);
  move_column(to.correlation, from.correlation, same);
  move_column(to.external_id, from.external_id, same);
  move_column(to.kind, from.kind, same);
  move_column(to.name, from.name, name);
  move_column(to.stream, from.stream, [&streams](StreamId id) { return streams[id.index()]; });
  move_column(to.meta, from.meta, meta_of);
  for (HostRange range : later.host_ranges) {
    range.thread = thread(later.threads[range.thread.index()].first,
                          later.threads[range.thread.index()].second);
    range.name = name(range.name);
    range.backend = name(range.backend);
    range.meta = meta_of(range.meta);
    recording_.host_ranges.push_back(range);
  }
}

void TraceBuilder::append_host(Recording& later) {
  for (const auto& [process, number] : later.threads) thread(process, number);
  for (std::size_t i = 0; i < later.launches.size(); ++i) {
    const auto [process, number] = later.threads[later.launches.thread[i].index()];
    add_launch(later.launches.correlation[i], later.launches.start[i], thread(process, number),
               later.launches.external_id[i]);
  }
  later.launches = {};
  for (const SyncRecord& record : later.sync_records) add_sync_record(record);
  for (SyncCall call : later.sync_calls) {
    const auto [process, number] = later.threads[call.thread.index()];
    call.thread = thread(process, number);
    add_sync_call(call);
  }
  recording_.steps.insert(recording_.steps.end(), later.steps.begin(), later.steps.end());
}

Recording TraceBuilder::finish() {
  // A recording window without time is none: every event would be longer.
  if (recording_.span && recording_.span->length() <= 0) recording_.span.reset();
  merge_steps();
  distrust_external_ids();
  drop_lost_times();
  cut_absurd_durations();
  note_odd_names();
  std::vector<Interval> host;
  for (const auto& thread : host_compute_) host.insert(host.end(), thread.begin(), thread.end());
  recording_.host_compute = IntervalSet(std::move(host));
  return std::move(recording_);
}

// One row a step, sorted: its host range and the hull of its copies on the GPU's streams.
void TraceBuilder::merge_steps() {
  const auto hull = [](Interval a, Interval b) {
    return Interval{std::min(a.start, b.start), std::max(a.end, b.end)};
  };
  std::map<std::int64_t, StepRange> by_number;
  for (const StepRange& step : recording_.steps) {
    const auto [found, inserted] = by_number.try_emplace(step.number, step);
    if (inserted) continue;
    StepRange& merged = found->second;
    if (step.gpu_annotation) {
      merged.gpu_annotation = merged.gpu_annotation
                                  ? hull(*merged.gpu_annotation, *step.gpu_annotation)
                                  : step.gpu_annotation;
    } else {
      merged.host = merged.host.length() > 0 ? hull(merged.host, step.host) : step.host;
    }
  }
  recording_.steps.clear();
  for (const auto& [number, step] : by_number) recording_.steps.push_back(step);
}

// Old writers print an activity's own correlation as its external id where no operation is linked.
// Where that holds for most, what is left may equal an unrelated operation's id by chance.
void TraceBuilder::distrust_external_ids() {
  GpuActivities& gpu = recording_.gpu;
  if (external_equals_correlation_ * 2 <= gpu.size()) return;
  gpu.external_id.assign(gpu.size(), 0);
  recording_.launches.external_id.assign(recording_.launches.size(), 0);
  recording_.notes.add(Note::unlinked_external_ids);
}

void TraceBuilder::note_odd_names() {
  for (std::size_t i = 0; i < recording_.strings.size(); ++i) {
    const std::string_view name = recording_.strings.get(StringId::from(i));
    if (!is_utf8(name)) recording_.notes.add(Note::invalid_utf8, name);
  }
}

void TraceBuilder::drop_lost_times() {
  GpuActivities& gpu = recording_.gpu;
  const Ns earliest =
      recording_.span ? recording_.span->start - kHour : std::numeric_limits<Ns>::min();
  std::vector<bool> lost(gpu.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    lost[i] = (gpu.start[i] == 0 && !zero_is_a_time_) || gpu.start[i] < earliest;
    if (!lost[i]) continue;
    ++count;
    recording_.notes.add(Note::zero_timestamp, recording_.strings.get(gpu.name[i]));
  }
  if (count == 0) return;
  recording_.calls = kept_calls(recording_.calls, lost);
  remove_rows(gpu, lost);
}

// A duration beyond the whole recording is an end that was never recorded.
void TraceBuilder::cut_absurd_durations() {
  GpuActivities& gpu = recording_.gpu;
  const std::optional<Interval> bounds = recording_.span ? recording_.span : host_hull(recording_);
  const Ns longest = recording_.span ? recording_.span->length()
                     : bounds        ? bounds->length() + kHour
                                     : kDay;
  const Ns most = std::min(longest, kDay);
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    if (gpu.end[i] - gpu.start[i] <= most) continue;
    const Ns end = bounds ? std::max(gpu.start[i], bounds->end) : gpu.start[i];
    // Bounds may be as absurd; sums over days of busy time must not leave 64 bits.
    gpu.end.set(i, end - gpu.start[i] > kDay ? gpu.start[i] : end);
    recording_.notes.add(Note::absurd_duration, recording_.strings.get(gpu.name[i]));
  }
}

}  // namespace commlens
