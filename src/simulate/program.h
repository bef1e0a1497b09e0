// Writes one rank's program: the instruction sequences behind "run these kernels", "all-reduce
// that", "wait for it", in the way PyTorch issues them.
//
// A collective in PyTorch, which `communicate` and `wait` spell out (compute stream C,
// communication stream N):
//
//   c10d::allreduce_ { record_param_comms { nccl:all_reduce {
//       record event a on C; N waits for a; launch the kernel on N; record event b on N } } }
//   ... other work ...
//   record_param_comms "wait" { C waits for b }
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "simulate/plan.h"
#include "simulate/prng.h"

namespace commlens::simulate {

// Stream ids. Point-to-point has one stream for each neighbour and direction, so that a send never
// queues behind an unrelated receive.
inline constexpr int kComputeStream = 7;
inline constexpr int kTensorStream = 20;
inline constexpr int kDataStream = 24;
inline constexpr int kExpertStream = 28;
inline constexpr int kSendNextStream = 32;
inline constexpr int kRecvPreviousStream = 36;
inline constexpr int kSendPreviousStream = 40;
inline constexpr int kRecvNextStream = 44;

// Lets names be looked up without making a string.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// The names and communications that all ranks' programs share.
class SharedParts {
 public:
  explicit SharedParts(Plan& plan) : plan_(plan) {}

  int name(std::string_view text);
  // The n-th communication of a group (or of a pair, `source` and `destination` being ranks), made
  // by whichever rank's program comes to it first. Its members are blank until their ranks fill
  // them.
  int collective(Op op, int group, std::int64_t n, int source = -1, int destination = -1);

 private:
  Plan& plan_;
  std::unordered_map<std::string, int, NameHash, std::equal_to<>> names_;
  std::map<std::tuple<int, int, int>, std::vector<int>> collectives_;
};

// A rank's ticket for something asynchronous: what `wait` needs.
struct Pending {
  int event = -1;
  int collective = -1;
  int member = -1;
};

class ProgramWriter {
 public:
  ProgramWriter(Plan& plan, SharedParts& shared, int rank);

  void work(Ns mean);
  // Launches kernels on the compute stream that share `time` between them.
  void kernels(std::span<const KernelShare> shares, Ns time);
  void copy(std::string_view name, std::int64_t bytes, Ns time);
  void set(std::int64_t bytes, Ns time);
  void begin(RangeKind kind, std::string_view name, int collective = -1, int member = -1);
  void end();
  void sync_compute();

  // Issues the next operation of `group`; elements as PyTorch records them.
  Pending communicate(Op op, GroupKind kind, int stream, std::int64_t in, std::int64_t out);
  // All-to-all in the expert group: each member's experts get (or give back) these rows from (to)
  // every member.
  Pending exchange(const std::vector<std::int64_t>& expert_rows, bool to_experts);
  Pending send(int peer, int stream, std::int64_t elements);
  Pending receive(int peer, int stream, std::int64_t elements);
  // Later work on the compute stream starts after it.
  void wait(const Pending& pending);

  const Place& place() const { return place_; }

 private:
  Instruction& emit(Verb verb, Ns host);
  int new_event() { return events_++; }
  Member& join(int collective, std::size_t member);
  Pending launch(int collective, std::size_t member, int stream);
  Pending pair(Op op, int peer, int stream, std::int64_t elements);
  std::string annotation(Op op, int peer) const;

  Plan& plan_;
  SharedParts& shared_;
  int rank_;
  const Place& place_;
  Prng gpu_chance_;
  Prng host_chance_;
  std::int64_t noise_ppm_;
  int events_ = 0;
  std::vector<std::int64_t> calls_;                    // collectives issued so far, by group
  std::int64_t pair_calls_ = 0;                        // point-to-point calls issued so far
  std::map<std::pair<int, int>, std::int64_t> pairs_;  // of them, by (source, destination)
};

}  // namespace commlens::simulate
