// What the measured files of one job say together. match/measured_match fills it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/measured.h"

namespace commlens {

// One operation of one communicator, over all ranks whose records are there.
struct MeasuredSequence {
  std::string group = {};  // id
  std::string name = {};   // of the communicator; empty: none
  Op op = Op::unknown;
  std::int64_t size = 0;        // ranks of the communicator; 0: not told
  std::int64_t reporting = 0;   // ranks with any record of it
  std::int64_t matched = 0;     // calls that all ranks recorded
  std::int64_t partial = 0;     // calls that only some did: their records may have been dropped
  std::int64_t alone = 0;       // calls that only one did
  std::int64_t mismatched = 0;  // calls whose ranks do not agree on the size
  std::int64_t gaps = 0;        // numbers without a record, over all ranks
  std::int64_t repeated = 0;    // records of a call that its rank had recorded already
};

// One rank of one communicator in the calls that all ranks recorded and left together.
struct MeasuredRankWaits {
  std::string group = {};
  std::int64_t rank = 0;      // in the communicator
  std::string host = {};      // empty: not told
  std::int64_t process = -1;  // -1: not told
  std::int64_t calls = 0;
  std::int64_t last = 0;  // calls that it entered last, alone
  Ns waited = 0;
  Ns caused = 0;
};

struct MeasuredWaits {
  bool known = false;  // some call tells waiting
  Ns total = 0;
  Ns undecidable = 0;  // whose culprit could be another within the clocks' resolution
  std::vector<MeasuredRankWaits> by_rank;  // by group, then rank
  // (waiter, culprit), rows of `by_rank`.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ns> blame;
  // Every process has a rank in one communicator of all: `global` is that rank, by row of
  // `by_rank`.
  bool ranks_known = false;
  std::int64_t world_size = 0;  // of that communicator; 0: not known
  std::vector<std::int64_t> global;
  std::int64_t not_together = 0;  // matched calls that ranks may leave at different times
  std::int64_t untimed = 0;       // matched calls without a duration of every rank
  std::int64_t not_gpu = 0;       // matched calls that were not all timed by the GPU: undecidable
};

struct MeasuredJob {
  std::vector<Measured> files;
  std::vector<MeasuredSequence> sequences;  // by group, then operation
  MeasuredWaits waits;

  bool empty() const { return files.empty(); }
};

}  // namespace commlens
