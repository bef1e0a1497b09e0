// What every rank will do, before anything has happened: one program of host instructions a rank,
// and the communications that programs take part in.
//
// The plan is where a job is changed before it runs: a slow rank has longer `gpu` times in its
// program, a late host one more `work` instruction, a slow link longer `transfer` of the
// collectives that use it. The engine only executes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "model/operation.h"
#include "simulate/layout.h"
#include "simulate/words.h"

namespace commlens::simulate {

enum class Verb : std::uint8_t {
  work,          // `host` time on the host thread, nothing else
  range_begin,   // enter a range: `range`, `name`
  range_end,     // leave the innermost range
  kernel,        // launch `kernel` on `stream`, taking `gpu`
  memcpy,        // copy `bytes` asynchronously; `name` is the activity's name
  memset,        // set `bytes` asynchronously
  communicate,   // launch the kernel of `member` of `collective` on `stream`
  record_event,  // cudaEventRecord: `event` is done when all earlier work on `stream` is
  wait_event,    // cudaStreamWaitEvent: later work on `stream` starts after `event`
  sync_stream,   // cudaStreamSynchronize: the host waits until `stream` has done all earlier work
};

// What a host range is; `step` has the step's number in its name.
enum class RangeKind : std::uint8_t { cpu_op, record_comms, wait_record, annotation, step };

struct Instruction {
  Verb verb = Verb::work;
  RangeKind range = RangeKind::cpu_op;
  int stream = 0;       // id, as in a trace
  int event = -1;       // of this rank, from 0
  int name = -1;        // index into Plan::names
  int collective = -1;  // index into Plan::collectives; ranges around a communication have it too
  int member = -1;      // index into Collective::members
  const KernelType* kernel = nullptr;  // static
  Ns host = 0;                         // time on the host thread
  Ns gpu = 0;                          // time on the GPU; a communication's is its collective's
  std::int64_t bytes = 0;              // of a copy or set
};

// One rank's part in a communication.
struct Member {
  int rank = -1;
  Op op = Op::unknown;  // send and recv differ within one communication
  // What the rank itself counts: collectives of a group, or its point-to-point calls.
  std::int64_t seq = 0;
  std::int64_t in_elements = 0;  // as PyTorch records them
  std::int64_t out_elements = 0;
  Ns late_exit = 0;  // how long after the others this member leaves
};

// One communication: an operation of all members of a group, or a send with its receive.
struct Collective {
  Op op = Op::unknown;   // Op::send for a pair
  int group = -1;        // index into Layout::groups
  std::int64_t seq = 0;  // n-th of its group, or of its (source, destination); from 1
  bool point_to_point = false;
  std::vector<Member> members{};  // in the order of the group; a pair: source, destination
  // All-to-all: what each member's experts get from every member (or give back to it); the whole
  // matrix would be the square of it, and groups can have thousands of members. Else empty.
  std::vector<std::int64_t> expert_rows{};
  bool to_experts = false;
  Ns transfer = 0;     // from the last entry to the exits
  bool apart = false;  // nobody waits for anybody, nothing is moved: each leaves as it enters
};

inline constexpr std::int64_t kElementBytes = 2;  // everything is BFloat16

// Rows that a member of an all-to-all sends to each member, and receives from each. Empty for any
// other operation.
std::vector<std::int64_t> rows_sent(const Collective& collective, std::size_t member);
std::vector<std::int64_t> rows_received(const Collective& collective, std::size_t member);

// The nccl-tests size of a member's message.
std::int64_t message_bytes_of(const Member& member);

struct Plan {
  JobSpec spec{};
  Layout layout{};
  std::vector<std::string> names{};
  std::vector<Collective> collectives{};
  std::vector<std::vector<Instruction>> programs{};  // by rank
};

// Validates the spec and writes the programs.
Plan make_plan(const JobSpec& spec);

// Whether the ranks of a communication are on several hosts.
bool crosses_hosts(const Layout& layout, const Collective& collective);

// How long the transfer of a communication takes on its links, without noise: see docs/simulate.md.
Ns ideal_transfer(const JobSpec& spec, const Layout& layout, const Collective& collective);

// The same with the noise that this communication of the plan has.
Ns noisy_transfer(const Plan& plan, std::size_t collective);

}  // namespace commlens::simulate
