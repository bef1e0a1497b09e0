// Problem: a log of another run of the same job looks alike in every line. What differs is the
// process: its id and host stand before each of its lines, and in the timeline.
//
// Method: the process with the timeline's id on the timeline's host. Containers count from 1, so
// that several hosts have a process of one id; then the rank in the communicator of all ranks
// tells. Where that communicator says another rank, it is another process. Where either side has no
// ids, the rank counts, if exactly one process on no other host has it. A process that can be that
// of several ranks is given to none of them: its calls were made by one.
#include "match/witness_processes.h"

#include <algorithm>
#include <set>

#include "match/same_time.h"

namespace commlens {
namespace {

std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

bool can_share_host(std::string_view a, std::string_view b) {
  return a.empty() || b.empty() || short_name(a) == short_name(b);
}

// The job's rank of a process, by the communicator of all ranks; nothing where none says it, or
// several say different ones (several GPUs).
std::optional<std::int64_t> rank_in_job(const LogFacts& log, LogProcessId process,
                                        std::int64_t world) {
  std::set<std::int64_t> ranks;
  for (const LogComm& comm : log.comms) {
    if (comm.process == process && comm.rank >= 0 && comm.nranks == world && world > 0)
      ranks.insert(comm.rank);
  }
  if (ranks.size() != 1) return std::nullopt;
  return *ranks.begin();
}

std::int64_t size_of_job(const Job& job, const LogFacts& log) {
  if (job.world_size > 0) return job.world_size;
  std::int64_t largest = 0;
  for (const LogComm& comm : log.comms) largest = std::max(largest, comm.nranks);
  return largest;
}

class ProcessFinder {
 public:
  ProcessFinder(const Job& job, const LogFacts& log) : job_(job), log_(log) {
    const std::int64_t world = size_of_job(job, log);
    for (std::size_t i = 0; i < log.processes.size(); ++i) {
      ranks_.push_back(rank_in_job(log, LogProcessId::from(i), world));
      any_id_ = any_id_ || log.processes[i].pid >= 0;
    }
    find_lines();
  }

  ProcessOfRank find(const RankTimeline& rank) const {
    const bool ids = names_ids(rank);
    std::vector<LogProcessId> found;
    for (std::size_t i = 0; i < log_.processes.size(); ++i) {
      if (can_be(rank, i)) found.push_back(LogProcessId::from(i));
    }
    const std::string who = "rank " + std::to_string(rank.rank) +
                            (ids ? " (pid " + std::to_string(rank.recording.process) + ")" : "");
    if (found.size() > 1) return refused("several of its processes can be that of " + who);
    if (found.size() == 1 && ranks_that_can_be(found.front()).size() > 1)
      return refused("several timelines can be of its process or rank");
    if (found.size() == 1) {
      const std::size_t i = found.front().index();
      std::string other = why_other_time(log_.processes[i].written, lines_[i], rank, kAnyZone);
      if (!other.empty()) return refused(std::move(other));
    }
    if (found.size() == 1) return {found.front(), ids, false, {}};
    if (const auto other = ids ? of_other_rank(rank) : std::nullopt) return refused(*other);
    return {
        {}, false, false, "none of its processes is that of " + who + ": it may be of another run"};
  }

 private:
  // Which lines of each process tell of communications.
  void find_lines() {
    lines_.resize(log_.processes.size());
    const auto add = [this](LogCommId comm, std::int64_t line, bool call) {
      SpokenLines& lines = lines_[log_.comms[comm.index()].process.index()];
      if (lines.first == 0) lines.first = line;
      lines.last = std::max(lines.last, line);
      lines.calls = lines.calls || call;
    };
    for (std::size_t i = 0; i < log_.comms.size(); ++i)
      add(LogCommId::from(i), log_.comms[i].first_line, false);
    for (const LogCall& call : log_.calls) add(call.comm, call.line, true);
  }
  static ProcessOfRank refused(std::string reason) { return {{}, false, true, std::move(reason)}; }
  // The process with the timeline's id says another rank.
  std::optional<std::string> of_other_rank(const RankTimeline& rank) const {
    for (std::size_t i = 0; i < log_.processes.size(); ++i) {
      if (!ranks_[i] || !same_process(rank, i)) continue;
      if (!ranks_that_can_be(LogProcessId::from(i)).empty()) continue;
      const LogProcess& process = log_.processes[i];
      return "its process " + std::to_string(process.pid) +
             (process.host.empty() ? "" : " on " + process.host) + " is rank " +
             std::to_string(*ranks_[i]) + " there, but rank " + std::to_string(rank.rank) +
             " by the timeline";
    }
    return std::nullopt;
  }
  bool names_ids(const RankTimeline& rank) const { return any_id_ && rank.recording.process >= 0; }
  bool can_be(const RankTimeline& rank, std::size_t i) const {
    const bool same = names_ids(rank) ? same_process(rank, i) : has_rank(rank, i);
    return same && !(ranks_[i] && *ranks_[i] != rank.rank);
  }
  // Several recordings of one rank are of one process.
  std::set<std::int64_t> ranks_that_can_be(LogProcessId process) const {
    std::set<std::int64_t> ranks;
    for (const RankTimeline& rank : job_.ranks) {
      if (can_be(rank, process.index())) ranks.insert(rank.rank);
    }
    return ranks;
  }
  bool same_process(const RankTimeline& rank, std::size_t i) const {
    const LogProcess& process = log_.processes[i];
    return process.pid == rank.recording.process && can_share_host(rank.host, process.host);
  }
  // What the user calls a host need not be its name; what the recording says of itself is.
  bool has_rank(const RankTimeline& rank, std::size_t i) const {
    const LogProcess& process = log_.processes[i];
    if (!can_share_host(rank.recording.host, process.host)) return false;
    if (ranks_[i]) return *ranks_[i] == rank.rank;
    return log_.hints_are_ranks && !process.hint_varies && process.hint == rank.rank;
  }

  const Job& job_;
  const LogFacts& log_;
  std::vector<std::optional<std::int64_t>> ranks_;  // by process
  std::vector<SpokenLines> lines_;                  // by process
  bool any_id_ = false;
};

}  // namespace

std::vector<ProcessOfRank> find_processes(const Job& job, const Witness& log) {
  const ProcessFinder finder(job, *log.log);
  std::vector<ProcessOfRank> processes;
  for (const RankTimeline& rank : job.ranks) processes.push_back(finder.find(rank));
  return processes;
}

}  // namespace commlens
