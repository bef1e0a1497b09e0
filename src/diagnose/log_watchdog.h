// What the watchdogs of all ranks say together: how far each rank is in each group.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnose/log_view.h"

namespace commlens {

// One line, and the file it stands in.
struct WatchdogRef {
  const Witness* witness = nullptr;
  const LogWatchdog* line = nullptr;
};

// How far one rank is in one group.
struct WatchdogRank {
  std::int64_t rank = -1;  // global; -1: not said
  std::int64_t group_rank = -1;
  std::int64_t waits_at = LogWatchdog::kNotSaid;  // the operation that timed out
  std::int64_t enqueued = LogWatchdog::kNotSaid;
  std::int64_t completed = LogWatchdog::kNotSaid;
  std::string op;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t timeout_ms = -1;
  bool timed_out = false;  // false: only a position is known
  std::vector<WatchdogRef> lines;
};

struct WatchdogGroup {
  std::string name;         // "PG GUID 119", "default group"; empty: not said
  bool comparable = false;  // one group, the same on all its ranks here
  bool sure = false;        // false: the lines do not name it, and are taken for one of all ranks
  bool is_default = false;
  // Sends and receives are among its operations: these count on the two ranks they concern alone,
  // so that a number is another operation on each rank.
  bool pairwise = false;
  // Lines of several runs of the job, so that numbers of one do not count for the other.
  bool several_runs = false;
  std::vector<WatchdogRank> ranks;  // by global rank
};

std::vector<WatchdogGroup> watchdog_groups(const LogView& view);

// Whether an operation by c10d's name concerns some ranks of its group only. COALESCED is what a
// batch of sends and receives is called, as of collectives.
bool is_pairwise(std::string_view c10d);

// An operation by c10d's name ("_ALLGATHER_BASE") in the project's words; empty where it is not
// known.
std::string op_in_words(std::string_view c10d);
// "all_reduce 9"; "operation" where it is not known.
std::string at_operation(std::int64_t seq, std::string_view op);

}  // namespace commlens
