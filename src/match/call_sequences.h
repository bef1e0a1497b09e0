// What witnesses of any kind wrote of a rank's calls in one group, in one form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "match/comm_sequence.h"
#include "match/witness_comms.h"
#include "model/job.h"
#include "model/measured.h"
#include "model/witness.h"

namespace commlens {

// The calls of one rank in one group or communicator.
struct CallSequence {
  std::size_t witness = 0;           // row of the witnesses; behind these, of what was measured
  std::uint64_t communicator = 0;    // commId; 0: not said
  std::string name;                  // of the process group; empty: the witness knows communicators
  std::vector<int> members;          // global ranks; empty: not known
  std::int64_t size = -1;            // ranks; -1: not known
  std::int64_t place = -1;           // of this rank among them; -1: not known
  bool same_process = false;         // known by the process id, not by the rank alone
  bool numbered = false;             // CommEvent::seq of the calls counts the group's operations
  std::vector<CommEvent> calls;      // of collectives
  std::vector<std::uint32_t> texts;  // by call: row of CallSequences::texts
  std::vector<Ns> made;              // by call: since the epoch, 0: not known; empty: none is
  std::vector<std::uint32_t> ways;   // by call: row of CallSequences::ways; empty: not said
  const CommWitness* facts = nullptr;  // of logs
  // How many calls are known to be lost before each; empty: not known.
  std::vector<std::int64_t> lost_before = {};
  std::int64_t lost = 0;  // all of these
};

// Sends and receives of one rank in one group or communicator, in the order of their calls.
struct PairSequence {
  std::size_t witness = 0;
  std::uint64_t communicator = 0;
  std::string name;
  std::vector<int> members;
  std::int64_t size = -1;
  std::int64_t place = -1;
  bool same_process = false;
  std::vector<PairCall> calls;
  std::vector<std::uint32_t> texts;   // by call, as in CallSequence
  std::vector<std::int64_t> numbers;  // by call: as the framework counts, -1: not said; or empty
  std::vector<Ns> made;
  std::vector<std::uint32_t> ways;
  const CommWitness* facts = nullptr;
};

struct CallSequences {
  // Kept because sequences point into them; by witness.
  std::vector<std::map<LogProcessId, std::vector<CommWitness>>> comms;
  std::vector<std::map<std::uint32_t, TunerChoices>> choices;
  std::vector<std::vector<CallSequence>> of_rank;        // by row of Job::ranks
  std::vector<std::vector<PairSequence>> pairs_of_rank;  // the same
  std::vector<std::string> texts;                        // what was called on the host
  std::vector<TunerChoice> ways;                         // how single calls were carried out
  std::vector<std::string_view> formats;                 // by witness, as CallSequence counts them
  std::vector<std::string> refused;  // by witness: why nothing of it can be used
  std::vector<std::int64_t> calls;   // by witness
};

CallSequences collect_calls(const Job& job, const std::vector<Witness>& witnesses,
                            const std::vector<Measured>& measured);

// "0x5af3" as a number; 0 where it is none.
std::uint64_t communicator_number(std::string_view name);
// The reverse.
std::string communicator_name(std::uint64_t number);

// Barriers are all-reduces to those who carry them out: comparable ones of both.
CommEvent as_called(CommEvent event);

}  // namespace commlens
