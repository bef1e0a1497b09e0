// One operation seen by all ranks that took part in it.
//
// match/collectives fills this from the communications of a job; clocks and waiting build on it.
// "Row" is an index into a vector; nothing here points into recordings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/operation.h"

namespace commlens {

// One rank's part in an operation: where its communication stands.
struct Part {
  std::uint32_t rank = 0;    // row of Job::ranks
  std::uint32_t device = 0;  // row of its devices
  std::uint32_t op = 0;      // row of that device's comm
  friend auto operator<=>(const Part&, const Part&) = default;
};

// How it is known that these parts are one operation. From the strongest to the weakest.
enum class MatchedBy : std::uint8_t {
  comms_id,   // the framework's identifier of the operation
  sequence,   // the group's counter, checked to be one
  steps,      // n-th of its group in the same training step, where all ranks count the same there
  alignment,  // the groups' sequences of (op, dtype, size), laid side by side
  inferred,   // no group data: streams whose kernels end together, again and again
};
inline constexpr int kMatchedByCount = static_cast<int>(MatchedBy::inferred) + 1;
std::string_view matched_by_name(MatchedBy by);

struct MatchedOp {
  Op op = Op::unknown;      // Op::send_recv for a send with its receive
  std::int32_t group = -1;  // row of Matching::groups
  std::int64_t seq = -1;    // as the framework counts; -1 where it does not
  std::uint32_t first = 0;  // its parts: Matching::parts [first, first + count), by rank;
  std::uint32_t count = 0;  // of a pair: the source, then the destination
  std::int32_t root = -1;   // which of its parts is the root (0 .. count-1); -1: none, or not known
  MatchedBy by = MatchedBy::alignment;
  bool pair = false;   // a send with its receive
  bool whole = true;   // every member of the group is here
  bool agreed = true;  // op, dtype and size agree as far as the operation asks for it
  bool sure = true;    // no other match fits as well: not so for a shift that cannot be decided
};

// A group of ranks as all of them together know it.
struct MatchGroup {
  std::string label;                // "mesh_tp[0,1]"; of a pair: "0->1"
  std::string description;          // may be empty
  std::vector<std::int64_t> ranks;  // global, sorted; of a pair: source, destination
  bool inferred = false;            // from kernels that end together
  bool pair = false;
};

// Events that are in no whole operation, and why; equal reasons of one group are one row.
struct Mismatch {
  std::string_view kind;            // "missing_member", "op", "dtype", "bytes", "unmatched", ...
  std::string group;                // label; empty where the group is not known
  std::int64_t seq = -1;            // of the first, as the framework counts; -1: not known
  std::vector<std::int64_t> ranks;  // whose events these are; of a mismatch: the odd ones out
  std::int64_t count = 0;           // events
  std::string reason;               // one sentence
};

struct Matching {
  bool known = false;  // false: nothing could be matched at all (one rank, no communication)
  std::vector<MatchGroup> groups;
  std::vector<Part> parts;
  std::vector<MatchedOp> ops;  // by group, then in the group's order
  std::vector<Mismatch> mismatches;
  // Operations: all members there and agreed; some members missing; disagreeing. Then events that
  // found no partner at all.
  std::int64_t matched = 0;
  std::int64_t partial = 0;
  std::int64_t mismatched = 0;
  std::int64_t unmatched = 0;
};

}  // namespace commlens
