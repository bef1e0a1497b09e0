// Which recording is which rank, and which recordings are one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/job.h"

namespace commlens {

enum class RankFrom : std::uint8_t { automatic, file, name, order };

struct RunOptions {
  RankFrom rank_from = RankFrom::automatic;
  // Host of a rank, as the user names it (--hosts); empty where the user does not. May be unset.
  std::function<std::string(std::int64_t rank, const std::string& path)> host_of;
  // Reads a recording again whose columns were let go, when it turns out to be a piece of another.
  // May be unset where none were.
  std::function<Recording(const std::string& path)> read_again;
};

// One rank's recordings become one RankTimeline each, or are put together where they are pieces of
// one recording (same process, same time). Fills rank, run, host, recording; world_size,
// missing_ranks, hosts_from and notes of the job. The result does not depend on the order of the
// recordings, except where ranks are given by order.
// Ranks that were put together are no longer `ready`.
Job arrange_runs(std::vector<RankTimeline> ranks, const RunOptions& options);
Job arrange_runs(std::vector<Recording> recordings, const RunOptions& options);

// The rank in a file's name ("rank-3.json", "trace_rank12.pt.json", "rank_7/trace.json"); nothing
// where there is none.
std::optional<std::int64_t> rank_in_name(std::string_view path);

}  // namespace commlens
