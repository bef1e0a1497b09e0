#include "diagnose/log_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/utf8.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

std::string hex_text(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15U]);
    value >>= 4U;
  } while (value != 0);
  return "0x" + text;
}

void sort_members(LogGroup& group) {
  std::stable_sort(group.members.begin(), group.members.end(), [](const auto& a, const auto& b) {
    return static_cast<std::uint64_t>(a.rank) < static_cast<std::uint64_t>(b.rank);
  });
}

// Same commId: one communicator, whatever the pointers are. A rank that is there twice was
// initialised twice; the first counts.
void add_known_groups(LogView& view) {
  std::map<std::uint64_t, LogGroup> by_id;
  std::set<std::pair<std::uint64_t, std::int64_t>> seen;
  for (const Witness* witness : view.logs) {
    const auto& comms = witness->log->comms;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      if (comms[i].id == 0) continue;
      LogGroup& group = by_id[comms[i].id];
      group.name = "commId " + hex_text(comms[i].id);
      group.nranks = std::max(group.nranks, comms[i].nranks);
      group.joined_by_id = true;
      if (seen.insert({comms[i].id, comms[i].rank}).second)
        group.members.push_back({witness, LogCommId::from(i), comms[i].rank, comms[i].rank >= 0});
    }
  }
  for (auto& [id, group] : by_id) view.groups.push_back(std::move(group));
}

bool all_distinct(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

const LogProcess& process_of(const LogMember& member) {
  return member.witness->log->processes[member.facts().process.index()];
}

// Ranks that no line says: by the launcher's marks, or, on one host, by device. Only if every
// member gets one and they are distinct.
void guess_ranks(LogGroup& group) {
  std::vector<std::int64_t> hints;
  std::vector<std::int64_t> devices;
  std::set<std::string> hosts;
  for (const LogMember& member : group.members) {
    if (member.rank >= 0) return;
    const LogProcess& process = process_of(member);
    const bool usable = !process.hint_varies && member.witness->log->hints_are_ranks;
    hints.push_back(usable ? process.hint : -1);
    devices.push_back(member.facts().device);
    hosts.insert(process.host);
  }
  const auto usable = [&group](const std::vector<std::int64_t>& ranks) {
    return all_distinct(ranks) &&
           std::all_of(ranks.begin(), ranks.end(),
                       [&group](std::int64_t rank) { return rank >= 0 && rank < group.nranks; });
  };
  const bool by_device = hosts.size() == 1 && usable(devices);
  if (!usable(hints) && !by_device) return;
  const auto& ranks = usable(hints) ? hints : devices;
  for (std::size_t i = 0; i < group.members.size(); ++i) group.members[i].rank = ranks[i];
}

// Whether these can be the sides of one communicator: no more than it has ranks, each rank once.
bool can_be_one(const LogGroup& group) {
  if (static_cast<std::int64_t>(group.members.size()) > group.nranks) return false;
  std::vector<std::int64_t> ranks;
  std::set<std::tuple<const Witness*, std::uint32_t, std::int64_t>> places;
  for (const LogMember& member : group.members) {
    if (member.rank >= 0) ranks.push_back(member.rank);
    // Two of one process and one device are two communicators.
    if (!places.insert({member.witness, member.facts().process.value, member.facts().device})
             .second)
      return false;
  }
  return all_distinct(ranks);
}

// Communicators without a commId (before 2.17, or only call lines): those of one size, if they can
// be one at all.
void add_guessed_groups(LogView& view) {
  std::map<std::int64_t, LogGroup> by_size;
  for (const Witness* witness : view.logs) {
    const auto& comms = witness->log->comms;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      if (comms[i].id != 0 || comms[i].nranks < 1) continue;
      LogGroup& group = by_size[comms[i].nranks];
      group.name = "communicator of " + std::to_string(comms[i].nranks) + " ranks";
      group.nranks = comms[i].nranks;
      group.members.push_back({witness, LogCommId::from(i), comms[i].rank, comms[i].rank >= 0});
    }
  }
  for (auto& [size, group] : by_size) {
    if (!can_be_one(group)) continue;
    guess_ranks(group);
    view.groups.push_back(std::move(group));
  }
}

// No job lasts for half a year: where its lines leave more than that out between two of them, the
// year has turned elsewhere.
LogTimes times_of(const std::vector<const Witness*>& logs) {
  constexpr Ns kHalf = Ns{183} * 86'400 * 1'000'000'000;
  LogTimes times;
  std::vector<Ns> whens;
  const auto add = [&times, &whens](const auto& line) {
    if (line.when < 0) return;
    times.dated = times.dated && line.dated >= 0;
    whens.push_back(line.when);
  };
  for (const Witness* witness : logs) {
    std::for_each(witness->log->events.begin(), witness->log->events.end(), add);
    std::for_each(witness->log->watchdog.begin(), witness->log->watchdog.end(), add);
  }
  std::sort(whens.begin(), whens.end());
  const auto gap = std::adjacent_find(whens.begin(), whens.end(),
                                      [](Ns earlier, Ns later) { return later - earlier > kHalf; });
  if (gap != whens.end()) times.begins = *std::next(gap);
  return times;
}

std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

}  // namespace

// Everything that tells ranks, by what it is looked up with: a log can be of ten thousand
// processes.
struct LogRanks {
  using Process = std::pair<const Witness*, std::uint32_t>;
  std::map<Process, std::vector<const LogComm*>> comms;
  std::map<std::tuple<const Witness*, std::int64_t, std::string_view>,
           std::vector<const LogFacts::TestRank*>>
      tests;  // by pid and host
  // Who bears a launcher's mark; a second one makes it a node's.
  struct Marked {
    const LogProcess* first = nullptr;
    bool several = false;
  };
  std::map<std::int64_t, Marked> marks;
};

namespace {

LogRanks make_log_ranks(const LogView& view) {
  LogRanks ranks;
  for (const Witness* witness : view.logs) {
    const LogFacts& log = *witness->log;
    for (const LogComm& comm : log.comms) {
      if (comm.rank >= 0 && comm.parent == 0)
        ranks.comms[{witness, comm.process.value}].push_back(&comm);
    }
    for (const auto& row : log.test_ranks)
      ranks.tests[{witness, row.pid, short_name(row.host)}].push_back(&row);
    for (const LogProcess& process : log.processes) {
      if (process.hint < 0 || process.pid < 0) continue;
      LogRanks::Marked& mark = ranks.marks[process.hint];
      if (mark.first == nullptr) mark.first = &process;
      mark.several =
          mark.several || process.pid != mark.first->pid || process.host != mark.first->host;
    }
  }
  return ranks;
}

const LogRanks& ranks_of(const LogView& view) {
  if (view.ranks == nullptr) view.ranks = std::make_shared<const LogRanks>(make_log_ranks(view));
  return *view.ranks;
}

std::optional<std::int64_t> test_rank(const LogRanks& ranks, const Witness& witness,
                                      const LogProcess& process, std::int64_t device) {
  const auto rows = ranks.tests.find({&witness, process.pid, short_name(process.host)});
  if (rows == ranks.tests.end()) return std::nullopt;
  std::optional<std::int64_t> found;
  for (const auto* row : rows->second) {
    if (!found || row->device == device) found = row->rank;
  }
  return found;
}

// The largest communicator is the one of all ranks, if any is.
std::optional<std::int64_t> comm_rank(const std::vector<const LogComm*>& comms,
                                      std::int64_t device) {
  const LogComm* best = nullptr;
  bool several = false;
  for (const LogComm* comm : comms) {
    if (best == nullptr || comm->nranks > best->nranks) {
      best = comm;
      several = false;
    } else if (comm->nranks == best->nranks && comm->rank != best->rank) {
      several = true;
      if (comm->device == device && best->device != device) best = comm;
    }
  }
  if (best != nullptr && (!several || best->device == device)) return best->rank;
  return std::nullopt;
}

}  // namespace

LogView make_log_view(const std::vector<Witness>& witnesses) {
  LogView view;
  for (const Witness& witness : witnesses) {
    if (witness.log) view.logs.push_back(&witness);
  }
  add_known_groups(view);
  add_guessed_groups(view);
  for (LogGroup& group : view.groups) sort_members(group);
  view.times = times_of(view.logs);
  return view;
}

std::optional<std::int64_t> rank_of_process(const LogView& view, const Witness& witness,
                                            LogProcessId process, std::int64_t device) {
  const LogRanks& ranks = ranks_of(view);
  if (const auto comms = ranks.comms.find({&witness, process.value}); comms != ranks.comms.end()) {
    if (const auto rank = comm_rank(comms->second, device)) return rank;
  }
  const LogProcess& facts = witness.log->processes[process.index()];
  if (const auto rank = test_rank(ranks, witness, facts, device)) return rank;
  if (facts.pid < 0 || facts.hint < 0 || facts.hint_varies || !witness.log->hints_are_ranks)
    return std::nullopt;
  // A mark that stands before lines of several processes is a node's, not a rank's.
  if (ranks.marks.at(facts.hint).several) return std::nullopt;
  return facts.hint;
}

std::string who_wrote(const LogView& view, const Witness& witness, LogProcessId process,
                      std::int64_t device, std::int64_t said_rank) {
  const LogProcess& facts = witness.log->processes[process.index()];
  const auto rank =
      said_rank >= 0 ? said_rank : rank_of_process(view, witness, process, device).value_or(-1);
  std::string where;
  if (facts.pid >= 0) where = "pid " + std::to_string(facts.pid);
  if (!facts.host.empty()) where += " on " + printable(facts.host);
  if (rank >= 0) return "rank " + std::to_string(rank) + (where.empty() ? "" : " (" + where + ")");
  if (device >= 0)
    where += std::string(where.empty() ? "" : ", ") + "device " + std::to_string(device);
  return where.empty() ? "a process that the log does not name" : where;
}

std::string evidence_line(const Witness& witness, std::int64_t line, std::string_view text) {
  return witness.path + ":" + std::to_string(line) + ": " + std::string(text);
}

std::string ranks_in_words(const std::vector<std::int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks);
}

std::vector<std::string> hosts_of(const LogView& view) {
  std::set<std::string> hosts;
  const auto add = [&hosts](const std::string& host) {
    if (!host.empty()) hosts.insert(host.substr(0, host.find('.')));
  };
  for (const Witness* witness : view.logs) {
    for (const LogProcess& process : witness->log->processes) add(process.host);
    for (const auto& row : witness->log->test_ranks) add(row.host);
  }
  return {hosts.begin(), hosts.end()};
}

std::optional<bool> spans_hosts(const LogView& view) {
  if (hosts_of(view).size() > 1) return true;
  std::optional<bool> spans;
  for (const Witness* witness : view.logs) {
    for (const LogComm& comm : witness->log->comms) {
      if (comm.nodes > 1) return true;
      if (comm.nodes == 1 || comm.nranks == 1) spans = false;
    }
    for (const LogChannel& channel : witness->log->channels) {
      if (channel.transport == LogTransport::net && channel.from != channel.to) spans = true;
    }
  }
  if (spans) return spans;
  // All ranks of the largest communicator on one host.
  for (const LogGroup& group : view.groups) {
    if (static_cast<std::int64_t>(group.members.size()) == group.nranks) return false;
  }
  return std::nullopt;
}

}  // namespace commlens
