// One rank's GPU work as the nodes of a dependency graph, and what each of them had to wait for.
//
// match/dependencies fills this from a recording while its columns are there; replay/ joins the
// ranks (docs/critical-path.md). Times are nanoseconds of the recording's clock until
// replay/common_time puts them on the common one. Indices are into the columns of the same rank.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/id.h"
#include "base/packed.h"
#include "model/sync_kind.h"

namespace commlens {

enum class ActivityClass : std::uint8_t { compute, communication, memory };

inline constexpr std::uint32_t kNoNode = std::numeric_limits<std::uint32_t>::max();
inline constexpr Ns kNoLaunch = std::numeric_limits<Ns>::min();

// Why one activity cannot start before another has ended, besides being behind it on its stream.
enum class EdgeKind : std::uint8_t {
  event,     // recorded: its stream waited for an event
  inferred,  // nothing says so but the times and the order of launches
  graph,     // of one CUDA graph: launched together, run in this order
};

struct WorkEdge {
  std::uint32_t node = 0;
  std::uint32_t source = 0;
  EdgeKind kind = EdgeKind::event;
  friend auto operator<=>(const WorkEdge&, const WorkEdge&) = default;
};

// A stretch of a host thread between two calls that wait for the GPU: whatever moves its begin
// moves all of its launches by as much.
//
//   thread  [launch launch launch [== sync ==][launch launch ...
//            stretch 0             call        stretch 1 starts where the call returns
struct HostStretch {
  Ns start = 0;                    // the blocking call returns; of a thread's first: its first call
  Ns call = 0;                     // where that call began; `start` where there is none
  std::uint32_t before = kNoNode;  // stretch of the same thread that made the call
  std::uint32_t other = kNoNode;   // stretch of another thread that handed work over
  Ns other_at = 0;                 // its instant of that
  std::uint32_t thread = 0;        // row of Recording::threads
  SyncKind kind = SyncKind::device_sync;  // of the blocking call; means nothing where there is none

  bool behind_call() const { return call < start; }
};

struct HostEdge {
  std::uint32_t stretch = 0;
  std::uint32_t source = 0;  // node that the blocking call waited for
  bool inferred = false;
  friend auto operator<=>(const HostEdge&, const HostEdge&) = default;
};

// What is typical on this rank, from a dependency's end to the start of what waited for it.
struct Latencies {
  Ns stream = 0;       // between kernels queued on one stream
  Ns launch = 0;       // from the begin of the call to the start on an idle stream
  Ns comm_launch = 0;  // the same of communication, whose launch configures more
  Ns event = 0;
  Ns sync = 0;  // from the end on the GPU to the return of the call
};

// A communication's node, and its row in the timeline.
struct CommNode {
  std::uint32_t node = 0;
  std::uint32_t device = 0;
  std::uint32_t op = 0;  // of DeviceTimeline::comm
};

// Of each node; packed, since a job of many ranks has millions.
struct Work {
  bool known = false;
  // By stream, then start: what a stream ran before a node is the row before, unless a stream
  // begins there.
  Packed<Ns> start;
  Packed<Ns> end;
  Packed<Ns> launch;  // begin of the call; kNoLaunch: not recorded, or behind another of its graph
  Packed<std::uint32_t> stretch;  // that launched it; kNoNode without launch
  Packed<StringId> name;
  Packed<ActivityClass> kind;
  std::vector<std::uint32_t> stream_begins;  // ascending; then the number of nodes
  std::vector<WorkEdge> edges;               // by node
  std::vector<HostStretch> stretches;        // by thread, then start
  std::vector<HostEdge> host_edges;          // by stretch
  std::vector<CommNode> comm;                // by node
  Latencies latencies;
  bool recorded_waits = false;      // the trace says which stream waited for which
  std::int64_t inferred_edges = 0;  // of edges and host_edges

  std::size_t size() const { return start.size(); }
};

}  // namespace commlens
