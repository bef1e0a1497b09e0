#include "match/merge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace commlens {
namespace {

// Ids of the piece's tables in the whole's.
class Translation {
 public:
  Translation(Recording& whole, const Recording& piece) : whole_(whole), piece_(piece) {
    translate(piece.streams, whole.streams, streams_);
    translate(piece.threads, whole.threads, threads_);
    for (const CollectiveMeta& meta : piece.metas) {
      whole.metas.push_back(meta);
      CollectiveMeta& copy = whole.metas.back();
      for (StringId* id : {&copy.collective, &copy.dtype, &copy.group_name, &copy.group_description,
                           &copy.group_ranks, &copy.reduction})
        *id = string(*id);
      metas_.push_back(MetaId::from(whole.metas.size() - 1));
    }
  }

  StringId string(StringId id) const {
    return id.valid() ? whole_.strings.intern(piece_.strings.get(id)) : id;
  }
  StreamId stream(StreamId id) const { return StreamId::from(streams_[id.index()]); }
  ThreadId thread(ThreadId id) const { return ThreadId::from(threads_[id.index()]); }
  MetaId meta(MetaId id) const { return id.valid() ? metas_[id.index()] : id; }

 private:
  template <class Row>
  static void translate(const std::vector<Row>& from, std::vector<Row>& to,
                        std::vector<std::size_t>& ids) {
    for (const Row& row : from) {
      auto found = std::find(to.begin(), to.end(), row);
      if (found == to.end()) found = to.insert(to.end(), row);
      ids.push_back(static_cast<std::size_t>(found - to.begin()));
    }
  }

  Recording& whole_;
  const Recording& piece_;
  std::vector<std::size_t> streams_;
  std::vector<std::size_t> threads_;
  std::vector<MetaId> metas_;
};

// How often each row stands in the whole: a row of the piece is the same one as often as that.
template <class Key>
class Present {
 public:
  void add(const Key& key) { ++counts_[key]; }
  // Whether the whole has it already.
  bool take(const Key& key) {
    const auto found = counts_.find(key);
    if (found == counts_.end() || found->second == 0) return false;
    --found->second;
    return true;
  }

 private:
  std::map<Key, std::int64_t> counts_;
};

using ActivityKey = std::tuple<Ns, Ns, std::uint32_t, std::uint32_t, std::uint64_t>;

ActivityKey key_of(const GpuActivities& gpu, std::size_t i) {
  return {gpu.start[i], gpu.end[i], gpu.stream[i].value, gpu.name[i].value, gpu.correlation[i]};
}

void merge_activities(Recording& whole, const Recording& piece, const Translation& to, Ns shift) {
  Present<ActivityKey> present;
  for (std::size_t i = 0; i < whole.gpu.size(); ++i) present.add(key_of(whole.gpu, i));
  GpuActivities& gpu = whole.gpu;
  for (std::size_t i = 0; i < piece.gpu.size(); ++i) {
    const StreamId stream = to.stream(piece.gpu.stream[i]);
    const StringId name = to.string(piece.gpu.name[i]);
    if (present.take({piece.gpu.start[i] + shift, piece.gpu.end[i] + shift, stream.value,
                      name.value, piece.gpu.correlation[i]})) {
      whole.notes.add(Note::duplicate_events,
                      piece.path + ": " + std::string(whole.strings.get(name)));
      continue;
    }
    whole.calls.add(gpu.size(), piece.calls.find(i));
    gpu.start.push_back(piece.gpu.start[i] + shift);
    gpu.end.push_back(piece.gpu.end[i] + shift);
    gpu.correlation.push_back(piece.gpu.correlation[i]);
    gpu.external_id.push_back(piece.gpu.external_id[i]);
    gpu.name.push_back(name);
    gpu.stream.push_back(stream);
    gpu.meta.push_back(to.meta(piece.gpu.meta[i]));
    gpu.kind.push_back(piece.gpu.kind[i]);
  }
}

void merge_launches(Recording& whole, const Recording& piece, const Translation& to, Ns shift) {
  Present<std::tuple<std::uint64_t, Ns, std::uint32_t>> present;
  Launches& launches = whole.launches;
  for (std::size_t i = 0; i < launches.size(); ++i)
    present.add({launches.correlation[i], launches.start[i], launches.thread[i].value});
  for (std::size_t i = 0; i < piece.launches.size(); ++i) {
    const std::uint64_t correlation = piece.launches.correlation[i];
    const Ns start = piece.launches.start[i] + shift;
    const ThreadId thread = to.thread(piece.launches.thread[i]);
    if (present.take({correlation, start, thread.value})) continue;
    launches.correlation.push_back(correlation);
    launches.start.push_back(start);
    launches.thread.push_back(thread);
    launches.external_id.push_back(piece.launches.external_id[i]);
  }
}

void merge_syncs(Recording& whole, const Recording& piece, const Translation& to, Ns shift) {
  Present<std::tuple<Ns, Ns, std::uint64_t, std::uint32_t>> calls;
  for (const SyncCall& call : whole.sync_calls)
    calls.add({call.start, call.end, call.correlation, call.thread.value});
  for (SyncCall call : piece.sync_calls) {
    call.start += shift;
    call.end += shift;
    call.thread = to.thread(call.thread);
    if (!calls.take({call.start, call.end, call.correlation, call.thread.value}))
      whole.sync_calls.push_back(call);
  }
  Present<std::tuple<Ns, std::uint64_t, SyncKind>> records;
  for (const SyncRecord& record : whole.sync_records)
    records.add({record.start, record.correlation, record.kind});
  for (SyncRecord record : piece.sync_records) {
    record.start += shift;
    if (!records.take({record.start, record.correlation, record.kind}))
      whole.sync_records.push_back(record);
  }
}

using RangeKey =
    std::tuple<Ns, Ns, std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t, HostRangeKind>;

RangeKey key_of(const HostRange& range) {
  return {range.start,         range.end,         range.thread.value, range.name.value,
          range.backend.value, range.external_id, range.kind};
}

void merge_host(Recording& whole, const Recording& piece, const Translation& to, Ns shift) {
  Present<RangeKey> present;
  for (const HostRange& range : whole.host_ranges) present.add(key_of(range));
  for (std::size_t i = 0; i < piece.host_ranges.size(); ++i) {
    HostRange range = piece.host_ranges[i];
    range.start += shift;
    range.end += shift;
    range.thread = to.thread(range.thread);
    range.name = to.string(range.name);
    range.backend = to.string(range.backend);
    range.meta = to.meta(range.meta);
    if (present.take(key_of(range))) {
      whole.notes.add(Note::duplicate_events,
                      piece.path + ": " + std::string(whole.strings.get(range.name)));
      continue;
    }
    whole.host_calls.add(whole.host_ranges.size(), piece.host_calls.find(i));
    whole.host_ranges.push_back(range);
  }
  std::vector<Interval> compute(whole.host_compute.parts().begin(),
                                whole.host_compute.parts().end());
  for (const Interval part : piece.host_compute.parts())
    compute.push_back({part.start + shift, part.end + shift});
  whole.host_compute = IntervalSet(std::move(compute));
}

Interval hull(Interval a, Interval b) {
  return {std::min(a.start, b.start), std::max(a.end, b.end)};
}

void merge_steps(Recording& whole, const Recording& piece, Ns shift) {
  std::map<std::int64_t, StepRange> steps;
  for (const StepRange& step : whole.steps) steps[step.number] = step;
  for (StepRange step : piece.steps) {
    step.host = {step.host.start + shift, step.host.end + shift};
    if (step.gpu_annotation)
      step.gpu_annotation =
          Interval{step.gpu_annotation->start + shift, step.gpu_annotation->end + shift};
    const auto [found, inserted] = steps.try_emplace(step.number, step);
    if (inserted) continue;
    StepRange& merged = found->second;
    if (merged.host.length() == 0) {
      merged.host = step.host;
    } else if (step.host.length() > 0) {
      merged.host = hull(merged.host, step.host);
    }
    if (!merged.gpu_annotation) {
      merged.gpu_annotation = step.gpu_annotation;
    } else if (step.gpu_annotation) {
      merged.gpu_annotation = hull(*merged.gpu_annotation, *step.gpu_annotation);
    }
  }
  whole.steps.clear();
  for (const auto& [number, step] : steps) whole.steps.push_back(step);
}

// Assigning {} to a vector empties it and keeps its memory.
template <class Container>
void let_go(Container& container) {
  container = Container();
}

// Its names as those of a pool with fewer; each distinct one is looked up once.
void keep_names(Work& work, const StringPool& all, StringPool& used) {
  std::vector<StringId> kept(all.size());
  Packed<StringId> names;
  for (const StringId name : work.name) {
    if (name.valid() && !kept[name.index()].valid())
      kept[name.index()] = used.intern(all.get(name));
    names.push_back(name.valid() ? kept[name.index()] : name);
  }
  work.name = std::move(names);
}

}  // namespace

Interval recorded_extent(const Recording& recording) {
  if (recording.extent) return *recording.extent;
  std::optional<Interval> extent;
  const auto cover = [&extent](Interval part) { extent = extent ? hull(*extent, part) : part; };
  for (std::size_t i = 0; i < recording.gpu.size(); ++i) cover(recording.gpu.interval(i));
  for (const Ns start : recording.launches.start) cover({start, start});
  for (const HostRange& range : recording.host_ranges) cover({range.start, range.end});
  for (const StepRange& step : recording.steps) {
    if (step.host.length() > 0) cover(step.host);
  }
  return extent.value_or(Interval{});
}

void merge_recording(Recording& whole, const Recording& piece) {
  const Ns shift = piece.clock_base - whole.clock_base;
  const Translation to(whole, piece);
  merge_activities(whole, piece, to, shift);
  merge_launches(whole, piece, to, shift);
  merge_syncs(whole, piece, to, shift);
  merge_host(whole, piece, to, shift);
  merge_steps(whole, piece, shift);
  whole.stored_bytes += piece.stored_bytes;
  whole.events += piece.events;
  whole.notes.add(Note::merged_files, piece.path);
  if (whole.process == kUnknown) whole.process = piece.process;
  if (whole.host.empty()) whole.host = piece.host;
  if (whole.backend.empty()) whole.backend = piece.backend;
  if (whole.nccl_version.empty()) whole.nccl_version = piece.nccl_version;
  if (whole.groups.empty()) whole.groups = piece.groups;
  whole.world_size = std::max(whole.world_size, piece.world_size);
}

void let_go_of_columns(RankTimeline& rank) {
  Recording& recording = rank.recording;
  recording.extent = recorded_extent(recording);
  StringPool used;
  const auto keep = [&](StringId& id) {
    if (id.valid()) id = used.intern(recording.strings.get(id));
  };
  for (DeviceTimeline& device : rank.devices) {
    for (CommOp& op : device.comm) {
      keep(op.name);
      keep(op.dtype);
    }
    device.comm.shrink_to_fit();
    let_go(device.compute);
    let_go(device.memory);
    let_go(device.starts);
  }
  keep_names(rank.work, recording.strings, used);
  recording.strings = std::move(used);
  let_go(recording.gpu);
  let_go(recording.calls);
  let_go(recording.launches);
  let_go(recording.sync_calls);
  let_go(recording.sync_records);
  let_go(recording.host_ranges);
  let_go(recording.host_calls);
  let_go(recording.host_compute);
  let_go(recording.metas);
  let_go(rank.classes);
  let_go(rank.launches);
  rank.peers.shrink_to_fit();
}

}  // namespace commlens
