// All logs of a job together: which lines of different processes speak of one communicator, and
// which rank a process is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnosis.h"
#include "model/witness.h"
#include "model/witness_log.h"

namespace commlens {

// Lines of evidence that a finding shows at most.
inline constexpr std::size_t kMostLogEvidence = 8;

// One rank's side of a communicator.
struct LogMember {
  const Witness* witness = nullptr;
  LogCommId comm;
  std::int64_t rank = -1;  // in the communicator; -1: unknown
  bool rank_said = false;  // by an initialisation line; false: from a launcher's mark or the device

  const LogComm& facts() const { return witness->log->comms[comm.index()]; }
};

struct LogGroup {
  std::string name;  // commId, or what joined its members
  std::int64_t nranks = 0;
  bool joined_by_id = false;  // false: by size alone, so that two groups of one size may be mixed
  std::vector<LogMember> members;  // by rank, unknown ones last
};

struct LogRanks;  // which process is which rank, by process

// How the times of a job's lines compare, which mostly do not say their year: lines of December and
// January are of one job, and January's are the later ones.
struct LogTimes {
  bool dated = true;  // every line with a time says its year
  Ns begins = 0;      // in the year: what is earlier is of the next one

  // -1: not said.
  template <class Line>
  Ns of(const Line& line) const {
    constexpr Ns kYear = Ns{366} * 86'400 * 1'000'000'000;  // February 29 has a place in each
    if (dated || line.when < 0) return dated ? line.dated : -1;
    return line.when < begins ? line.when + kYear : line.when;
  }
};

struct LogView {
  std::vector<const Witness*> logs;
  std::vector<LogGroup> groups;
  LogTimes times;                                 // of the lines that tell errors and time-outs
  mutable std::shared_ptr<const LogRanks> ranks;  // made when first asked for
};

LogView make_log_view(const std::vector<Witness>& witnesses);

// The global rank of a process (with several GPUs: of the thread's device); nothing where no line
// tells it.
std::optional<std::int64_t> rank_of_process(const LogView& view, const Witness& witness,
                                            LogProcessId process, std::int64_t device);

// "rank 3 (node-a, pid 42)", "pid 42 on node-a, device 3", as far as known.
std::string who_wrote(const LogView& view, const Witness& witness, LogProcessId process,
                      std::int64_t device, std::int64_t said_rank);

// "run.log:12: text"
std::string evidence_line(const Witness& witness, std::int64_t line, std::string_view text);

// "ranks 0-3, 7"; "rank 2"
std::string ranks_in_words(const std::vector<std::int64_t>& ranks);

// The hosts that wrote lines, that nccl-tests lists, by name.
std::vector<std::string> hosts_of(const LogView& view);
// Whether the job surely runs on more than one host, or surely on one; nothing where neither is
// known.
std::optional<bool> spans_hosts(const LogView& view);

}  // namespace commlens
