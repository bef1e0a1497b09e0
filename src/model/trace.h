// What a recording of one process holds, whatever the file format: compact columns, ids into small
// tables.
//
// Nothing here points into the input's bytes. Times are nanoseconds; `clock_base` added to each
// gives nanoseconds since the epoch where the recording's clock is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/blocks.h"
#include "base/id.h"
#include "base/packed.h"
#include "base/strings.h"
#include "model/calls.h"
#include "model/interval_set.h"
#include "model/notes.h"
#include "model/sync_kind.h"

namespace commlens {

using StreamId = Id<struct StreamTag>;
using ThreadId = Id<struct ThreadTag>;
using MetaId = Id<struct MetaTag>;

inline constexpr std::int64_t kUnknown = -1;

// A queue of one GPU: the same stream number in another context is another stream.
struct Stream {
  std::int64_t device = 0;  // ordinal as the process sees it
  std::int64_t context = kUnknown;
  std::int64_t stream = 0;
  friend auto operator<=>(const Stream&, const Stream&) = default;
};

// What the framework recorded about one collective call. Each distinct combination is kept once.
struct CollectiveMeta {
  StringId collective;                   // as written: "_allgather_base"; never "wait" or "init"
  StringId dtype;                        // as written: "BFloat16"
  bool counts_bytes = false;             // elements are bytes: what type these have is not known
  StringId reduction = {};               // "sum"; none: not told
  std::int64_t in_elements = kUnknown;   // of this rank's input tensors
  std::int64_t out_elements = kUnknown;  // of this rank's output tensors
  std::int64_t group_size = 0;           // ranks in the group; 0 is unknown
  StringId group_name;                   // process-local: two ranks may name different groups "3"
  StringId group_description;            // "default_pg", "mesh_tp", ...
  StringId group_ranks;                  // as written: "[0, 1, 2, ...]"; may be cut or empty
  std::int64_t group_start = kUnknown;   // global rank of the first member, and the distance of
  std::int64_t group_stride = kUnknown;  // each to the next where all are equal; records only
  friend auto operator<=>(const CollectiveMeta&, const CollectiveMeta&) = default;
};

enum class ActivityKind : std::uint8_t { kernel, memcpy, memset };

// GPU activities in file order: packed, since millions of them are kept.
struct GpuActivities {
  Packed<Ns> start;
  Packed<Ns> end;                     // >= start
  Packed<std::uint64_t> correlation;  // of the launch; 0 is none
  Packed<std::uint64_t> external_id;  // of the host operation; 0 is none (or not to be trusted)
  Packed<StringId> name;
  Packed<StreamId> stream;
  Packed<MetaId> meta;  // collective metadata on the activity itself
  Packed<ActivityKind> kind;

  std::size_t size() const { return start.size(); }
  Interval interval(std::size_t i) const { return {start[i], end[i]}; }
};

// Calls on the host that can start GPU work (cudaLaunchKernel and the like, copies, graph
// launches).
struct Launches {
  Packed<std::uint64_t> correlation;
  Packed<Ns> start;
  Packed<ThreadId> thread;
  Packed<std::uint64_t> external_id;  // of the host operation; 0 is none (or not to be trusted)
  std::size_t size() const { return start.size(); }
};

// A call on the host that returns only when the GPU has done something.
struct SyncCall {
  Ns start = 0;
  Ns end = 0;
  std::uint64_t correlation = 0;  // 0 is none
  ThreadId thread;
  SyncKind kind = SyncKind::device_sync;
};

// What the profiler says of such a call, or of one that makes a stream wait: for what.
struct SyncRecord {
  Ns start = 0;                          // of the call
  std::uint64_t correlation = 0;         // of the call; 0 is none
  std::uint64_t record_correlation = 0;  // of the call that recorded the event; 0: none, not known
  // Stream::stream is kUnknown where it is not known or there is none. They need not be among
  // Recording::streams, which have work.
  Stream stream;  // that waits, or whose work the host waits for
  Stream source;  // the event's
  SyncKind kind = SyncKind::device_sync;
};

enum class HostRangeKind : std::uint8_t {
  collective_record,  // the framework's record of one collective call, with or without metadata
  annotation,         // a range named after a collective ("nccl:all_reduce", "gloo:broadcast")
};

// A range on a host thread that names a communication.
struct HostRange {
  Ns start = 0;
  Ns end = 0;
  ThreadId thread;
  StringId name;                  // annotation: the name behind its backend prefix; record: empty
  StringId backend;               // annotation: "nccl", "gloo", ...; record: empty
  MetaId meta;                    // record: its metadata; else none
  std::uint64_t external_id = 0;  // 0 is none
  HostRangeKind kind = HostRangeKind::annotation;
};

// One training step, "ProfilerStep#N": its host range, and the span of its copies on GPU streams.
struct StepRange {
  std::int64_t number = 0;
  Interval host;  // empty where only GPU copies were seen
  std::optional<Interval> gpu_annotation;
};

// A process group as the recording describes it.
struct ProcessGroup {
  std::string name;
  std::string description;
  std::int64_t size = 0;   // 0 is unknown
  std::vector<int> ranks;  // global ranks, sorted; empty where unknown or cut
};

// How a recording's times relate to other recordings'.
enum class ClockBase : std::uint8_t {
  epoch,    // nanoseconds since the epoch, by that host's clock
  unknown,  // relative to something that the file does not say
};

// One recording of one process, as read from one file (or several of the same recording, put
// together).
struct Recording {
  std::string path;  // the input's name; the first one where several were put together
  std::string format;
  std::int64_t stored_bytes = 0;  // as on disk
  std::int64_t events = 0;        // entries of any kind in the file
  std::optional<std::int64_t> rank;
  std::int64_t world_size = 0;  // 0 is unknown
  std::string backend;          // "nccl", "gloo", "cpu:gloo,cuda:nccl"; empty is unknown
  std::string nccl_version;     // empty is unknown
  std::string gpu_name;         // of the GPUs that the process saw; empty: not known, or several
  std::string host;             // host name; empty is unknown
  std::int64_t process = kUnknown;  // operating system's process id
  std::vector<ProcessGroup> groups;
  Ns clock_base = 0;
  ClockBase clock = ClockBase::unknown;
  std::string session;  // recordings that name the same one count by one clock; empty is unknown
  std::optional<Interval> extent;  // of all that was recorded, once the columns below are gone
  std::optional<Interval> span;    // of the recording window, where the file says

  StringPool strings;
  std::vector<Stream> streams;
  std::vector<std::pair<std::int64_t, std::int64_t>> threads;  // process, thread; by ThreadId
  std::vector<CollectiveMeta> metas;
  GpuActivities gpu;
  Calls calls;  // of GPU activities with metadata
  Launches launches;
  std::vector<SyncCall> sync_calls;      // in file order
  std::vector<SyncRecord> sync_records;  // the same; most recordings have none
  Blocks<HostRange> host_ranges;
  Calls host_calls;              // of host ranges with metadata
  std::vector<StepRange> steps;  // sorted by number
  IntervalSet host_compute;      // filled only for recordings without GPU events
  Notes notes;
};

}  // namespace commlens
