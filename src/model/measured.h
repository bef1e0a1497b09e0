// What one file tells of communications that were measured without a timeline: how often, how
// large, how long, but not when beside what else. NCCL Inspector's records, the example profiler
// plugin's events, tables of nccl-tests, frameworks' communication logs, execution traces. Filled
// by the readers of ingest/measured_formats.cc; match/measured_match finds which rows of different
// ranks are one call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/strings.h"
#include "model/notes.h"
#include "model/operation.h"
#include "model/written_span.h"

namespace commlens {

// By what clock a duration was taken; what it includes depends on it.
enum class TimedBy : std::uint8_t {
  nothing,         // there is none
  kernel_gpu,      // the GPU's own timer, in the kernel: until late peers came, too
  kernel_cpu,      // a host thread that noticed the kernel's start and end
  collective_cpu,  // the same, from the first channel's start to the last one's end
  unsaid,          // by one of the three above; the record does not say which
  blocking_call,   // the caller's clock around a call that was made to block
  test_loop,       // mean of a benchmark's iterations
  enqueue_loop,    // the same, of the host's calls alone: not what the operations took
};
inline constexpr int kTimedByCount = static_cast<int>(TimedBy::enqueue_loop) + 1;
std::string_view timed_by_name(TimedBy by);

// A communicator or process group, as this file names it.
struct MeasuredGroup {
  std::string id = {};     // by which ranks agree: "0x7f8c496ae9f661", "tp-0"; empty: not told
  std::string name = {};   // the program's word for it: "DP Group 0"; empty: none
  std::int64_t size = 0;   // ranks; 0: not told
  std::int64_t nodes = 0;  // 0: not told
  std::vector<std::int64_t> ranks = {};  // global, sorted; empty: not told
  friend bool operator==(const MeasuredGroup&, const MeasuredGroup&) = default;
};

// One call of a communication by one rank, or several that the source sums up.
struct MeasuredCall {
  std::uint32_t group = 0;  // index into Measured::groups
  Op op = Op::unknown;
  TimedBy timed_by = TimedBy::nothing;
  bool in_place = false;       // of nccl-tests, which measures both ways
  bool repeated = false;       // recorded before: counts in no sum (match/measured_match finds it)
  std::int32_t rank = -1;      // of the caller in the group; -1: not told
  std::int32_t peer = -1;      // the other side's, of send and recv; -1: none, or not told
  std::int32_t channels = -1;  // -1: not told
  std::int64_t count = 1;      // calls that it stands for; -1: not told
  // Within its group and operation where `Measured::numbered`: equal on all ranks. -1: not told
  std::int64_t number = -1;
  std::int64_t bytes = -1;       // of one call, as nccl-tests counts (numbers.md); -1: not known
  std::int64_t message = -1;     // of one call, as the source counts (of one rank); -1: not told
  std::int64_t message_hi = -1;  // where `message` is known as a range only: its end, not in it
  Ns time = -1;                  // of all its calls together; -1: not told
  Ns straggle = -1;  // of that: beyond what the fastest rank took, as the source says; -1: not told
  double printed_busbw = -1;  // as printed, where it cannot be computed; -1: none
  double bus_factor = -1;     // where it is known and `op` is not; -1: follows from `op`
  // Instants, on Measured::clock_is_epoch; -1: not told.
  Ns enqueue_begin = -1;  // the host's call
  Ns enqueue_end = -1;
  Ns begin = -1;  // the kernel's, as a host thread noticed
  Ns end = -1;
  std::int32_t run = 0;     // of a file with several benchmarks: which; 0: not told
  StringId node;            // of sums of one GPU's calls: whose; none: of a rank, or not told
  StringId gpu;             // "GPU0" there
  StringId op_text;         // as recorded: "AllReduce", "all_gather_into_tensor"
  StringId caller;          // the program's function that called; none: not told
  StringId dtype;           // as recorded; none: not told
  StringId algorithm;       // "RING"; none: not told
  StringId protocol;        // "LL128"; none: not told
  std::int64_t where = -1;  // line, or byte of the text
};

// A host's own stopwatch around a part of the training loop (Megatron). They overlap, and hold more
// than communication.
struct MeasuredTimer {
  std::string name;
  std::int64_t iteration = -1;  // of the training line before it; -1: none
  std::int64_t slowest = -1;    // the global rank that `most` is of; -1: several, or not told
  Ns least = -1;                // per iteration, over ranks; -1: not told
  Ns most = -1;                 // likewise
  Ns one = -1;                  // per iteration, of a rank that is not told; -1: of all ranks
  std::int64_t where = -1;      // line
};

// A line about one interval of training.
struct MeasuredIteration {
  std::int64_t iteration = -1;
  std::int64_t of = -1;        // planned; -1: not told
  Ns time = -1;                // per iteration; -1: not told
  double tflops_per_gpu = -1;  // -1: not told
  std::int64_t where = -1;     // line
};

struct Measured {
  std::string path;
  std::string_view format;
  std::int64_t stored_bytes = -1;  // as on disk; -1: not known
  std::int64_t records = 0;        // of any kind that were read
  std::int64_t rank = -1;          // global, of the process that wrote it; -1: not known
  std::int64_t world_size = 0;     // 0: not told
  std::string host;                // of that process; empty: not told
  std::int64_t process = -1;       // its id there; -1: not told
  Ns resolution = 1;               // of durations: what lies below is cut off
  bool numbered = false;           // calls' numbers are equal on all ranks of a group
  bool drops_records = false;      // the source keeps a sample: what is absent may have run
  WrittenSpan written;             // of the lines about calls
  bool clock_is_epoch = false;     // instants count from 1970; else from the source's own origin
  Notes notes;

  StringPool strings;
  std::vector<MeasuredGroup> groups;
  std::vector<MeasuredCall> calls;  // in the order of the file
  std::vector<MeasuredTimer> timers;
  std::vector<MeasuredIteration> iterations;

  std::string_view text(StringId id) const { return strings.get(id); }
  bool empty() const { return calls.empty() && timers.empty() && iterations.empty(); }
  // The index of this group, which is kept once.
  std::uint32_t add_group(const MeasuredGroup& group);
};

// What `message` bytes of one rank are in nccl-tests' count (numbers.md) in a group of `size`
// ranks, where the source counts as NCCL's calls do; -1 where that is not known.
std::int64_t tests_bytes(Op op, std::int64_t message, std::int64_t size);

}  // namespace commlens
