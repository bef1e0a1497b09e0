#include "diagnose/log_watchdog.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace commlens {
namespace {

// Who wrote the line: the global rank, or where it is not said the process.
std::string writer_of(const WatchdogRef& ref) {
  if (ref.line->rank >= 0) return "r" + std::to_string(ref.line->rank);
  return ref.witness->path + "#" + std::to_string(ref.line->process.value) + "#" +
         std::to_string(ref.line->group_rank);
}

std::vector<WatchdogRef> lines_of(const LogView& view) {
  std::vector<WatchdogRef> lines;
  for (const Witness* witness : view.logs) {
    for (const LogWatchdog& line : witness->log->watchdog) lines.push_back({witness, &line});
  }
  return lines;
}

// Lines that name their group, by who wrote them about which operation, and by operation alone.
struct NamedLines {
  std::map<std::pair<std::string, std::int64_t>, const LogWatchdog*> by_writer;
  struct ByOperation {
    const LogWatchdog* line = nullptr;
    bool several = false;  // groups
  };
  std::map<std::int64_t, ByOperation> by_operation;
};

NamedLines named_lines(const std::vector<WatchdogRef>& lines) {
  NamedLines named;
  for (const WatchdogRef& ref : lines) {
    if (ref.line->group.empty() || ref.line->seq < 0) continue;
    named.by_writer.try_emplace({writer_of(ref), ref.line->seq}, ref.line);
    auto& known = named.by_operation[ref.line->seq];
    known.several =
        known.several || (known.line != nullptr && known.line->group != ref.line->group);
    if (known.line == nullptr) known.line = ref.line;
  }
  return named;
}

// Later lines of a rank say more; a position that is not said changes nothing.
void take(WatchdogRank& rank, const WatchdogRef& ref) {
  const LogWatchdog& line = *ref.line;
  rank.lines.push_back(ref);
  rank.rank = std::max(rank.rank, line.rank);
  if (rank.group_rank < 0) rank.group_rank = line.group_rank;
  if (line.kind == LogWatchdog::Kind::timed_out || line.kind == LogWatchdog::Kind::position) {
    if (line.seq >= 0 && (rank.waits_at < 0 || line.seq < rank.waits_at)) rank.waits_at = line.seq;
    rank.timed_out = rank.timed_out || line.seq >= 0;
  }
  if (line.enqueued != LogWatchdog::kNotSaid)
    rank.enqueued = std::max(rank.enqueued, line.enqueued);
  if (line.completed != LogWatchdog::kNotSaid)
    rank.completed = std::max(rank.completed, line.completed);
  const bool same = line.seq < 0 || line.seq == rank.waits_at;
  if (!line.op.empty() && same) {
    rank.op = line.op;
    rank.in_elements = line.in_elements;
    rank.out_elements = line.out_elements;
    rank.timeout_ms = line.timeout_ms;
  }
}

// A name that is each process's own counter means one group only where the rank in it is everywhere
// the global one: then it is a group of the first ranks, and there is one of these.
bool counts_globally(const WatchdogGroup& group) {
  return group.ranks.size() > 1 &&
         std::all_of(group.ranks.begin(), group.ranks.end(), [](const WatchdogRank& rank) {
           return rank.rank >= 0 && rank.rank == rank.group_rank;
         });
}

// Before PyTorch 2.2 no line names a group, and the rank in it is all there is: in most jobs that
// is the global rank. Where two lines of one such rank contradict each other there were several
// groups.
void take_for_global(WatchdogGroup& group) {
  std::vector<std::int64_t> ranks;
  for (WatchdogRank& rank : group.ranks) {
    if (rank.group_rank < 0) return;
    ranks.push_back(rank.group_rank);
  }
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) return;
  for (WatchdogRank& rank : group.ranks) {
    if (rank.rank < 0) rank.rank = rank.group_rank;
    if (rank.rank != rank.group_rank) return;
  }
  group.comparable = true;
}

// Which group a line is about. "Watchdog caught" does not name it; the same rank's next line about
// that operation does, else the only group of which others wait in the same operation.
const LogWatchdog* group_of(const NamedLines& named, const WatchdogRef& ref) {
  if (!ref.line->group.empty() || ref.line->seq < 0) return ref.line;
  const auto own = named.by_writer.find({writer_of(ref), ref.line->seq});
  if (own != named.by_writer.end()) return own->second;
  const auto others = named.by_operation.find(ref.line->seq);
  if (others == named.by_operation.end() || others->second.several) return ref.line;
  return others->second.line;
}

// The key by which lines of one rank come together: where no line says it, the rank in the group.
std::string rank_key(const WatchdogRef& ref) {
  if (ref.line->rank < 0 && ref.line->group_rank >= 0)
    return "g" + std::to_string(ref.line->group_rank) + "#" + ref.witness->path;
  return writer_of(ref);
}

// "GUID 23(PIPELINE_MODEL_PARALLEL_GROUP)", "PG GUID 5(mesh_pp)": groups made for nothing else.
bool is_of_pipeline(const LogWatchdog& line) {
  return line.text.find("PIPELINE_MODEL_PARALLEL") != std::string::npos ||
         line.text.find("mesh_pp)") != std::string::npos;
}

// When the watchdogs of one hang give up they do so within seconds: the first ends the others.
bool lie_far_apart(const LogTimes& all, const WatchdogGroup& group) {
  constexpr Ns kFar = Ns{120} * 1'000'000'000;
  std::vector<Ns> times;
  for (const WatchdogRank& rank : group.ranks) {
    for (const WatchdogRef& ref : rank.lines) {
      if (ref.line->when >= 0 && ref.line->seq >= 0) times.push_back(all.of(*ref.line));
    }
  }
  std::sort(times.begin(), times.end());
  return std::adjacent_find(times.begin(), times.end(), [](Ns earlier, Ns later) {
           return later - earlier > kFar;
         }) != times.end();
}

// A rank that has enqueued fewer than before has begun anew.
bool counts_back(const WatchdogGroup& group) {
  return std::any_of(group.ranks.begin(), group.ranks.end(), [](const WatchdogRank& rank) {
    std::int64_t enqueued = LogWatchdog::kNotSaid;
    const Witness* witness = nullptr;
    for (const WatchdogRef& ref : rank.lines) {
      if (ref.line->enqueued == LogWatchdog::kNotSaid) continue;
      if (ref.witness == witness && ref.line->enqueued < enqueued) return true;
      witness = ref.witness;
      enqueued = ref.line->enqueued;
    }
    return false;
  });
}

// Whether another process began a communicator between these lines that one began on the same GPU
// before them. Logs that were joined file by file hold such lines of other GPUs only.
bool begins_anew(const LogFacts& log, std::int64_t first, std::int64_t last) {
  using Place = std::tuple<std::string_view, std::int64_t, std::int64_t>;  // host, device, nranks
  std::map<Place, std::set<LogProcessId>> before;
  const auto place_of = [&log](const LogComm& comm) {
    return Place(log.processes[comm.process.index()].host, comm.device, comm.nranks);
  };
  for (const LogComm& comm : log.comms) {
    if (comm.rank >= 0 && comm.parent == 0 && comm.device >= 0 && comm.first_line < first)
      before[place_of(comm)].insert(comm.process);
  }
  return std::any_of(log.comms.begin(), log.comms.end(), [&](const LogComm& comm) {
    if (comm.rank < 0 || comm.parent != 0 || comm.first_line < first || comm.first_line > last)
      return false;
    const auto found = before.find(place_of(comm));
    return found != before.end() && !found->second.contains(comm.process);
  });
}

bool restarts_between(const WatchdogGroup& group) {
  std::map<const Witness*, std::pair<std::int64_t, std::int64_t>> spans;
  for (const WatchdogRank& rank : group.ranks) {
    for (const WatchdogRef& ref : rank.lines) {
      const auto [span, is_new] = spans.try_emplace(ref.witness, ref.line->line, ref.line->line);
      if (!is_new) {
        span->second.first = std::min(span->second.first, ref.line->line);
        span->second.second = std::max(span->second.second, ref.line->line);
      }
    }
  }
  return std::any_of(spans.begin(), spans.end(), [](const auto& row) {
    return begins_anew(*row.first->log, row.second.first, row.second.second);
  });
}

}  // namespace

bool is_pairwise(std::string_view c10d) {
  return c10d == "SEND" || c10d == "RECV" || c10d == "RECVANYSOURCE" || c10d == "COALESCED";
}

std::vector<WatchdogGroup> watchdog_groups(const LogView& view) {
  const std::vector<WatchdogRef> lines = lines_of(view);
  const NamedLines named_by = named_lines(lines);
  std::map<std::string, WatchdogGroup> groups;
  std::map<std::string, std::map<std::string, WatchdogRank>> ranks;
  for (const WatchdogRef& ref : lines) {
    const LogWatchdog* named = group_of(named_by, ref);
    WatchdogGroup& group = groups[named->group];
    group.name = named->group_is_default ? "default group" : named->group;
    if (group.name.starts_with("GUID ")) group.name = "PG " + group.name;
    if (group.name.empty()) group.name = "a group that no line names";
    group.comparable = group.comparable || named->group_is_shared;
    group.is_default = group.is_default || named->group_is_default;
    group.pairwise = group.pairwise || is_pairwise(ref.line->op) || is_of_pipeline(*ref.line);
    take(ranks[named->group][rank_key(ref)], ref);
  }
  std::vector<WatchdogGroup> result;
  for (auto& [name, group] : groups) {
    for (auto& [writer, rank] : ranks[name]) group.ranks.push_back(std::move(rank));
    group.comparable = group.comparable || counts_globally(group);
    // Where no line names the group, several may have been taken for one.
    group.sure = group.comparable && !name.empty();
    if (groups.size() == 1 && name.empty()) take_for_global(group);
    group.several_runs =
        lie_far_apart(view.times, group) || counts_back(group) || restarts_between(group);
    group.comparable = group.comparable && !group.pairwise && !group.several_runs;
    std::stable_sort(group.ranks.begin(), group.ranks.end(),
                     [](const auto& a, const auto& b) { return a.rank < b.rank; });
    result.push_back(std::move(group));
  }
  return result;
}

std::string op_in_words(std::string_view c10d) {
  static const std::map<std::string, Op, std::less<>> kNames = {
      {"ALLREDUCE", Op::all_reduce},
      {"ALLREDUCE_COALESCED", Op::all_reduce},
      {"_ALLREDUCE_SPARSE", Op::all_reduce},
      {"BROADCAST", Op::broadcast},
      {"REDUCE", Op::reduce},
      {"ALLGATHER", Op::all_gather},
      {"_ALLGATHER_BASE", Op::all_gather},
      {"ALLGATHER_COALESCED", Op::all_gather},
      {"GATHER", Op::gather},
      {"SCATTER", Op::scatter},
      {"REDUCE_SCATTER", Op::reduce_scatter},
      {"_REDUCE_SCATTER_BASE", Op::reduce_scatter},
      {"ALLTOALL_BASE", Op::all_to_all},
      {"ALLTOALL", Op::all_to_all},
      {"SEND", Op::send},
      {"RECV", Op::recv},
      {"RECVANYSOURCE", Op::recv},
      {"BARRIER", Op::barrier}};
  const auto found = kNames.find(c10d);
  return found == kNames.end() ? std::string() : std::string(op_name(found->second));
}

std::string at_operation(std::int64_t seq, std::string_view op) {
  std::string text = op.empty() ? "operation" : std::string(op);
  if (seq >= 0) text += " " + std::to_string(seq);
  return text;
}

}  // namespace commlens
