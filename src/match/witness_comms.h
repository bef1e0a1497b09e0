// What a log says of one communicator on one rank: its calls, what the tuner chose, which way its
// data goes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "match/comm_sequence.h"
#include "model/witness.h"
#include "model/witness_log.h"

namespace commlens {

struct TunerChoice {
  std::string algorithm;
  std::string protocol;
  std::int64_t channels = -1;  // -1: not said
  friend auto operator<=>(const TunerChoice&, const TunerChoice&) = default;
};

// A send or a receive as it was called.
struct PairCall {
  Op op = Op::send;
  std::int64_t peer = kUnknown;  // rank in the communicator
  std::int64_t bytes = kUnknown;
};

struct CommWitness {
  const LogComm* comm = nullptr;
  std::uint32_t row = 0;         // of LogFacts::comms
  std::vector<CommEvent> calls;  // of collectives, in order, with nccl-tests sizes
  std::vector<PairCall> pairs;   // sends and receives, in order
  // Lines lost before each of `calls`, by opCount; empty where that does not rise with each call.
  std::vector<std::int64_t> lost_before;
  bool from_start = false;     // all calls since the initialisation are here, as far as can be seen
  std::set<std::string> ways;  // "P2P/CUMEM", "NET/IB/GDRDMA"
  std::set<std::string> adapters;  // "mlx5_0:1/RoCE"
  // The same of sends and receives, which have connections of their own; by peer.
  std::map<std::int64_t, std::set<std::string>> pair_ways;
  std::map<std::int64_t, std::set<std::string>> pair_adapters;
};

// Of one operation and size, as the first rank of the communicator wrote them.
using TunerChoices = std::map<std::pair<Op, std::int64_t>, std::set<TunerChoice>>;

// Those of each process, in the order of their first lines.
std::map<LogProcessId, std::vector<CommWitness>> comms_by_process(const Witness& log);

// By row of LogFacts::comms, of those in which the process is the first rank.
std::map<std::uint32_t, TunerChoices> tuner_choices(const Witness& log);

// The nccl-tests size of a call; nothing where the type is not known.
std::optional<std::int64_t> call_bytes(const LogCall& call, std::int64_t nranks);

}  // namespace commlens
