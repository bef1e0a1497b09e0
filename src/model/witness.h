// What one file of a crashed or hung job tells: which communications each process called, how far
// they got, who belongs to which group. Filled by the readers of ingest/witness_formats.cc, read by
// diagnose/. A file can speak for one rank (a dump) or for many (a log).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "model/notes.h"
#include "model/operation.h"

namespace commlens {

struct LogFacts;    // model/witness_log.h
struct TraceFacts;  // model/witness_trace.h
struct RasFacts;    // model/witness_ras.h

// Where a call stood when the file was written. Not all writers know more than "enqueued".
enum class CallState : std::uint8_t { unknown, scheduled, started, completed };
std::string_view state_name(CallState state);

// A process group, or a communicator, as this file names it.
struct WitnessGroup {
  std::string name;         // by which processes of one job agree: "72", a hash, a commId
  std::string description;  // the program's word for it; empty: none
  std::vector<int>
      members;            // global ranks in the order of their ranks in the group; empty: unknown
  std::int64_t size = 0;  // how many members; 0: unknown
};

// One call of a communication, by one rank.
struct WitnessCall {
  std::uint32_t group = 0;  // index into Witness::groups
  Op op = Op::unknown;
  CallState state = CallState::unknown;
  bool p2p = false;               // send or recv: numbered apart from collectives
  bool closes_coalesced = false;  // stands for a whole group of calls, see `op_text`
  bool gave_up = false;           // the writer stopped waiting for it: it timed out or failed
  std::int64_t rank = -1;         // global; -1: unknown
  std::int64_t group_rank = -1;   // in the group; -1: unknown
  std::int64_t number = -1;  // of the launch within its group and kind (p2p or not); -1: unknown
  std::int64_t record = -1;  // position in the writer's own order; -1: unknown
  std::int64_t peer = -1;    // p2p: the other side's rank in the group
  std::int64_t root = -1;    // rank in the group; -1: none or unknown
  std::int64_t in_elements = -1;  // of all tensors together; -1: unknown
  std::int64_t out_elements = -1;
  std::int64_t created_ns = 0;  // since the epoch, by the host's clock; 0: unknown
  std::int64_t timeout_ms = 0;  // 0: unknown
  std::int64_t where = -1;      // line or byte, by Witness::counts_lines
  StringId op_text;             // as recorded: "_all_gather_base"
  StringId in_shape;            // as recorded: "[[2048,5120]]"; none: unknown
  StringId out_shape;
  StringId in_dtype;  // as recorded: "BFloat16", several with commas
  StringId out_dtype;
  StringId thread;  // of the host; none: unknown
  StringId code;    // "train.py:42 step", the caller nearest to the program; none: unknown
};

// How far one rank says to be in one group, in the numbers of `WitnessCall::number`. -1: none yet;
// kNotSaid: the file does not say.
struct WitnessProgress {
  static constexpr std::int64_t kNotSaid = -2;
  std::uint32_t group = 0;
  std::int64_t rank = -1;  // global
  std::int64_t enqueued = kNotSaid;
  std::int64_t started = kNotSaid;
  std::int64_t completed = kNotSaid;
  std::int64_t where = -1;
};

// Two calls that the program itself found to contradict each other; of which group is not said.
struct CallPair {
  WitnessCall first;
  WitnessCall second;
  StringId first_device;  // of its tensors: "cuda", several with commas; none: unknown
  StringId second_device;
};

struct Witness {
  Witness();
  Witness(Witness&&) noexcept;
  Witness& operator=(Witness&&) noexcept;
  ~Witness();

  std::string path;
  std::string_view format;
  std::int64_t stored_bytes = -1;  // as on disk; -1: unknown
  std::int64_t records = 0;        // entries or lines read
  std::int64_t rank =
      -1;               // global, of the process that wrote the whole file; -1: unknown, or several
  std::string version;  // of the format; empty: not said
  std::string library;  // "NCCL 2.27.3"; empty: not said
  bool counts_lines = false;  // `where` is a line, not a byte
  // The file was written to tell all calls of `rank` that were not complete: one that is absent was
  // either completed, or never made. False: it may only be missing here.
  bool lists_pending = false;
  bool only_pending = false;  // completed calls were left out on purpose
  bool entries_lost = false;  // it has entries, and none of them could be used
  bool damaged = false;       // cut or broken: what is absent may have stood in the lost part
  Notes notes;

  StringPool strings;
  std::vector<WitnessGroup> groups;
  std::vector<WitnessCall> calls;  // in the order of the file
  std::vector<WitnessProgress> progress;
  std::vector<CallPair> contradictions;
  std::unique_ptr<LogFacts> log;      // of logs only
  std::unique_ptr<TraceFacts> trace;  // of timelines only
  std::unique_ptr<RasFacts> ras;      // of RAS output only

  std::string_view text(StringId id) const { return strings.get(id); }
};

}  // namespace commlens
