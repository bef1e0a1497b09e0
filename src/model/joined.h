// What other witnesses of the same job (logs, dumps) know of the operations of its timelines: which
// call on the host, which algorithm, over which way. match/joined fills it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/operation.h"
#include "model/stragglers.h"

namespace commlens {

// How it is known that a witness speaks of an operation. From the strongest to the weakest.
enum class JoinedBy : std::uint8_t {
  communicator,  // both name the communicator by its identifier
  sequence,      // both number the operations of the group
  order,         // the calls of one communicator, and no other, are those of the group, in order
  members,       // no calls are recorded; of all communicators one has these members
};
std::string_view joined_by_name(JoinedBy by);

// Communications of one kind in one group, over all ranks. Empty text: no witness says it, or they
// say several things.
struct JoinedRow {
  std::string group;  // label, as in groups[].id; empty: the group is not known
  Op op = Op::unknown;
  std::optional<std::int64_t> bytes;  // of one
  std::int64_t count = 0;             // communications on the timelines
  std::int64_t witnessed = 0;         // of these, with a call of a witness
  std::string kernel;                 // as the timelines name it; the most frequent
  std::string host_call;              // "ncclAllReduce", "all_reduce (train.py:42 step)"
  std::string algorithm;              // "RING": by logs and plugins only
  std::string protocol;               // "LL128"
  std::optional<std::int64_t> channels;
  std::string transport;               // "P2P/CUMEM", "NET/IB/GDRDMA", several with commas
  std::string nic;                     // "mlx5_0:1/RoCE", several with commas
  std::vector<std::string> witnesses;  // formats of those that say any of it
  std::optional<JoinedBy> by;
  std::optional<Confidence> confidence;  // nothing where no witness speaks of the group at all
  std::string reason;                    // why not joined, or not for certain; empty: it is
};

struct JoinedInput {
  std::string path;
  std::string format;
  std::int64_t calls = 0;   // of collectives, sends and receives
  std::int64_t joined = 0;  // that have an operation
  std::string reason;       // why all of it, or one process of it, is refused; empty: nothing is
};

struct Joined {
  bool asked = false;           // there are other witnesses beside timelines
  std::vector<JoinedRow> rows;  // by group, op, size
  std::vector<JoinedInput> inputs;
  std::int64_t operations = 0;       // communications on the timelines
  std::int64_t without_witness = 0;  // of these
  std::int64_t calls = 0;            // of all witnesses
  std::int64_t calls_without_operation = 0;
};

}  // namespace commlens
