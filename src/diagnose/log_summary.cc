// Nothing is concluded here: versions, networks, communicators, connections, choices and calls as
// the lines say them, summed up over processes. A log is never complete, so what stands in no row
// may have been all the same.
#include "diagnose/log_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "diagnose/log_causes.h"
#include "diagnose/log_view.h"

namespace commlens {
namespace {

Table log_table(std::string_view name, std::string title, std::vector<Column> columns) {
  return {.name = std::string(name),
          .section = "logs",
          .title = std::move(title),
          .columns = std::move(columns),
          .rows = {},
          .text_rows = 8};
}

Cell text_or_unknown(const std::string& text) { return text.empty() ? Cell() : Cell(text); }
Cell known_number(std::int64_t number) { return number < 0 ? Cell() : Cell(number); }

std::vector<std::string> listed(const std::set<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// --- Hosts ---

struct HostRow {
  std::int64_t processes = 0;
  std::set<std::int64_t> ranks;
  std::set<std::string> versions;
  std::set<std::string> unsigned_versions;  // of lines that no process signs
  std::set<std::string> cuda;
  std::set<std::string> networks;
  std::set<std::string> adapters;
};

// The host on which all processes of a log run, where it is one.
std::optional<std::string> only_host(const LogFacts& log) {
  std::optional<std::string> only;
  for (const LogProcess& process : log.processes) {
    if (process.host.empty() || process.host == only) continue;
    if (only) return std::nullopt;
    only = process.host;
  }
  return only;
}

Table hosts_table(const LogView& view) {
  // Finding a process's rank looks at all communicators: of more, ranks stand in "communicators".
  constexpr std::size_t kMostSearched = 4096;
  std::size_t processes = 0;
  for (const Witness* witness : view.logs) processes += witness->log->processes.size();
  const bool few = processes <= kMostSearched;
  std::map<std::string, HostRow> hosts;
  for (const Witness* witness : view.logs) {
    const LogFacts& log = *witness->log;
    for (std::size_t i = 0; i < log.processes.size(); ++i) {
      const LogProcess& process = log.processes[i];
      HostRow& row = hosts[process.host];
      ++row.processes;
      if (!process.version.empty())
        row.versions.insert((process.rccl ? "RCCL " : "NCCL ") + process.version);
      if (!process.cuda.empty()) row.cuda.insert(process.cuda);
      if (!process.network.empty()) row.networks.insert(process.network);
      if (!few) continue;
      if (const auto rank = rank_of_process(view, *witness, LogProcessId::from(i), -1))
        row.ranks.insert(*rank);
    }
    const std::optional<std::string> only = only_host(log);
    hosts[only.value_or("")].unsigned_versions.insert(log.unsigned_versions.begin(),
                                                      log.unsigned_versions.end());
    for (const LogInterfaces& list : log.interfaces) {
      if (list.kind == LogInterfaces::Kind::bootstrap) continue;
      HostRow& row = hosts[log.processes[list.process.index()].host];
      row.adapters.insert(list.names.begin(), list.names.end());
    }
  }
  Table table = log_table("hosts", "Hosts",
                          {{"host", Unit::none, "host"},
                           {"processes", Unit::count, "processes"},
                           {"ranks", Unit::none, "ranks"},
                           {"versions", Unit::none, "version"},
                           {"cuda", Unit::none, ""},
                           {"networks", Unit::none, "network"},
                           {"adapters", Unit::none, "adapters"}});
  for (auto& [host, row] : hosts) {
    // Where processes say theirs, that stands.
    if (row.versions.empty()) row.versions = row.unsigned_versions;
    // Lines of nobody known, which say none of this.
    if (host.empty() && row.ranks.empty() && row.versions.empty() && row.networks.empty()) continue;
    table.rows.push_back({text_or_unknown(host), row.processes,
                          std::vector<std::int64_t>(row.ranks.begin(), row.ranks.end()),
                          listed(row.versions), listed(row.cuda), listed(row.networks),
                          listed(row.adapters)});
  }
  return table;
}

// --- Communicators ---

// Of which communicator a line of a process speaks, while it is set up: the only one that is then.
class SetUp {
 public:
  explicit SetUp(const LogFacts& log) {
    for (std::uint32_t i = 0; i < log.comms.size(); ++i) {
      const LogComm& comm = log.comms[i];
      if (comm.complete_line > 0) spans_[comm.process.value].push_back({comm, i});
    }
    for (auto& [process, spans] : spans_) {
      std::stable_sort(spans.begin(), spans.end(),
                       [](const Span& a, const Span& b) { return a.first < b.first; });
      std::int64_t reach = 0;
      for (Span& span : spans) span.reach = reach = std::max(reach, span.last);
    }
  }
  // Row of LogFacts::comms; nothing where several can be meant.
  std::optional<std::uint32_t> at(LogProcessId process, std::int64_t line) const {
    const auto found = spans_.find(process.value);
    if (found == spans_.end()) return std::nullopt;
    const std::vector<Span>& spans = found->second;
    auto span = std::upper_bound(spans.begin(), spans.end(), line,
                                 [](std::int64_t at, const Span& one) { return at < one.first; });
    std::optional<std::uint32_t> only;
    while (span != spans.begin() && (--span)->reach >= line) {
      if (line > span->last) continue;
      if (only) return std::nullopt;
      only = span->row;
    }
    return only;
  }

 private:
  struct Span {
    Span(const LogComm& comm, std::uint32_t number)
        : first(comm.first_line), last(comm.complete_line), row(number) {}
    std::int64_t first;
    std::int64_t last;
    std::int64_t reach = 0;  // the last line of it and of all that begin before it
    std::uint32_t row;
  };
  std::map<std::uint32_t, std::vector<Span>> spans_;  // by process
};

// By witness and row of its communicators: the group's name.
using GroupNames = std::map<std::pair<const Witness*, std::uint32_t>, std::string>;

GroupNames names_of_groups(const LogView& view) {
  GroupNames names;
  for (const LogGroup& group : view.groups) {
    for (const LogMember& member : group.members)
      names[{member.witness, member.comm.value}] = group.name;
  }
  return names;
}

std::map<const LogGroup*, std::int64_t> calls_of_groups(const LogView& view) {
  std::map<std::pair<const Witness*, std::uint32_t>, std::int64_t> calls;
  for (const Witness* witness : view.logs) {
    for (const LogCall& call : witness->log->calls) ++calls[{witness, call.comm.value}];
  }
  std::map<const LogGroup*, std::int64_t> found;
  for (const LogGroup& group : view.groups) {
    for (const LogMember& member : group.members)
      found[&group] += calls[{member.witness, member.comm.value}];
  }
  return found;
}

Table communicators_table(const LogView& view) {
  Table table = log_table("communicators", "Communicators",
                          {{"communicator", Unit::none, "communicator"},
                           {"size", Unit::none, "ranks"},
                           {"seen", Unit::none, "seen"},
                           {"nodes", Unit::none, "nodes"},
                           {"initialised", Unit::count, "initialised"},
                           {"ended", Unit::count, ""},
                           {"aborted", Unit::count, ""},
                           {"calls", Unit::count, "calls"}});
  const auto calls = calls_of_groups(view);
  for (const LogGroup& group : view.groups) {
    std::set<std::int64_t> ranks;
    std::int64_t nodes = -1;
    std::int64_t initialised = 0;
    std::int64_t ended = 0;
    std::int64_t aborted = 0;
    for (const LogMember& member : group.members) {
      const LogComm& comm = member.facts();
      if (member.rank >= 0) ranks.insert(member.rank);
      nodes = std::max(nodes, comm.nodes);
      initialised += comm.complete_line > 0 ? 1 : 0;
      ended += comm.end_line > 0 ? 1 : 0;
      aborted += comm.abort_line > 0 ? 1 : 0;
    }
    const auto count = calls.find(&group);
    table.rows.push_back(
        {text_or_unknown(group.name), group.nranks > 0 ? Cell(group.nranks) : Cell(),
         std::vector<std::int64_t>(ranks.begin(), ranks.end()), known_number(nodes), initialised,
         ended, aborted, count == calls.end() ? std::int64_t{0} : count->second});
  }
  return table;
}

// --- Initialisation, phase by phase ---

struct PhaseRow {
  std::int64_t count = 0;
  double sum = 0;
  double most = 0;
  void add(double seconds) {
    ++count;
    sum += seconds;
    most = std::max(most, seconds);
  }
};

Ns from_seconds(double seconds) {
  constexpr double kLongest = 1e9;
  return static_cast<Ns>(std::clamp(seconds, 0.0, kLongest) * 1e9 + 0.5);
}

Table phases_table(const LogView& view) {
  std::map<std::string, PhaseRow> phases;
  PhaseRow total;
  for (const Witness* witness : view.logs) {
    for (const LogInitTimings& timings : witness->log->timings) {
      total.add(timings.total);
      for (const LogInitTimings::Phase& phase : timings.phases)
        phases[phase.name].add(phase.seconds);
    }
  }
  Table table = log_table("init_phases", "Initialisation",
                          {{"phase", Unit::none, "phase"},
                           {"count", Unit::count, "times"},
                           {"mean_ns", Unit::nanoseconds, "mean"},
                           {"max_ns", Unit::nanoseconds, "longest"}});
  const auto add = [&table](const std::string& name, const PhaseRow& row) {
    table.rows.push_back({name, row.count, from_seconds(row.sum / static_cast<double>(row.count)),
                          from_seconds(row.most)});
  };
  if (total.count > 0) add("total", total);
  std::vector<std::pair<std::string, PhaseRow>> sorted(phases.begin(), phases.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.most > b.second.most; });
  for (const auto& [name, row] : sorted) add(name, row);
  return table;
}

// --- Connections ---

// "NET/IB/GDRDMA": without the adapter's number.
std::string kind_of_way(const LogChannel& channel) {
  if (channel.transport == LogTransport::p2p || channel.transport == LogTransport::shm)
    return channel.via;
  const std::string network = channel.network.empty() ? "" : "/" + channel.network;
  return (channel.transport == LogTransport::net ? "NET" : "COLLNET") + network +
         (channel.gdr ? "/GDRDMA" : "");
}

struct WayRow {
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> pairs;  // communicator, from, to
  std::int64_t channels = 0;
};

void append_connections(const LogView& view, std::vector<Table>& tables) {
  const GroupNames names = names_of_groups(view);
  std::map<std::string, WayRow> ways;
  // Both ends write of a connection over the network: it is one.
  std::set<
      std::tuple<std::string, std::int64_t, std::int64_t, std::string, std::int64_t, std::int64_t>>
      channels;
  for (const Witness* witness : view.logs) {
    const SetUp set_up(*witness->log);
    for (const LogChannel& channel : witness->log->channels) {
      const auto comm = set_up.at(channel.process, channel.line);
      const auto name = comm ? names.find({witness, *comm}) : names.end();
      channels.insert({name == names.end() ? std::string() : name->second, channel.from, channel.to,
                       kind_of_way(channel), channel.channel, channel.connection});
    }
  }
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::string>, std::int64_t> pairs;
  for (const auto& [name, from, to, way, channel, connection] : channels) {
    ways[way].pairs.insert({name, from, to});
    ++ways[way].channels;
    ++pairs[{name, from, to, way}];
  }
  Table by_way = log_table("transports", "Transports",
                           {{"transport", Unit::none, "transport"},
                            {"pairs", Unit::count, "pairs of ranks"},
                            {"channels", Unit::count, "channels"}});
  for (const auto& [way, row] : ways)
    by_way.rows.push_back({way, static_cast<std::int64_t>(row.pairs.size()), row.channels});
  Table by_pair = log_table("pairs", "",
                            {{"communicator", Unit::none, ""},
                             {"from", Unit::none, ""},
                             {"to", Unit::none, ""},
                             {"transport", Unit::none, ""},
                             {"channels", Unit::count, ""}});
  for (const auto& [key, count] : pairs) {
    const auto& [name, from, to, way] = key;
    by_pair.rows.push_back(
        {text_or_unknown(name), known_number(from), known_number(to), way, count});
  }
  tables.push_back(std::move(by_way));
  tables.push_back(std::move(by_pair));
}

// --- Choices and calls ---

Table tuning_table(const LogView& view) {
  using Key = std::tuple<Op, std::int64_t, std::string, std::string, std::int64_t>;
  std::map<Key, std::int64_t> choices;
  for (const Witness* witness : view.logs) {
    for (const LogTuning& row : witness->log->tuning)
      ++choices[{row.op, row.bytes, row.algorithm, row.protocol, row.channels}];
  }
  Table table = log_table("tuning", "Choices of the tuner",
                          {{"op", Unit::none, "operation"},
                           {"bytes", Unit::bytes, "size"},
                           {"algorithm", Unit::none, "algorithm"},
                           {"protocol", Unit::none, "protocol"},
                           {"channels", Unit::none, "channels"},
                           {"count", Unit::count, "times"}});
  for (const auto& [key, count] : choices) {
    const auto& [op, bytes, algorithm, protocol, channels] = key;
    table.rows.push_back({op == Op::unknown ? Cell() : Cell(std::string(op_name(op))), bytes,
                          text_or_unknown(algorithm), text_or_unknown(protocol),
                          known_number(channels), count});
  }
  return table;
}

Table calls_table(const LogView& view) {
  const GroupNames names = names_of_groups(view);
  std::map<std::tuple<std::string, Op, std::int64_t>, std::int64_t> rows;
  for (const Witness* witness : view.logs) {
    for (const LogCall& call : witness->log->calls) {
      const auto name = names.find({witness, call.comm.value});
      const std::int64_t element = log_datatype_bytes(call.datatype);
      std::int64_t bytes = -1;
      if (element <= 0 || __builtin_mul_overflow(element, call.count, &bytes)) bytes = -1;
      ++rows[{name == names.end() ? std::string() : name->second, call.op, bytes}];
    }
  }
  Table table = log_table("calls", "Calls",
                          {{"communicator", Unit::none, "communicator"},
                           {"op", Unit::none, "operation"},
                           {"bytes", Unit::bytes, "count times type"},
                           {"count", Unit::count, "calls"}});
  for (const auto& [key, count] : rows) {
    const auto& [name, op, bytes] = key;
    table.rows.push_back(
        {text_or_unknown(name), std::string(op_name(op)), known_number(bytes), count});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a.back()) > std::get<std::int64_t>(b.back());
  });
  return table;
}

Table settings_table(const LogView& view) {
  std::map<std::pair<std::string, std::string>, std::set<std::pair<const Witness*, std::uint32_t>>>
      settings;
  for (const Witness* witness : view.logs) {
    for (const LogSetting& setting : witness->log->settings)
      settings[{setting.name, setting.value}].insert({witness, setting.process.value});
  }
  Table table = log_table("settings", "Settings that NCCL named",
                          {{"name", Unit::none, "name"},
                           {"value", Unit::none, "value"},
                           {"processes", Unit::count, "processes"}});
  for (const auto& [key, processes] : settings)
    table.rows.push_back({key.first, key.second, static_cast<std::int64_t>(processes.size())});
  return table;
}

}  // namespace

std::vector<std::string> unfinished_setups(const std::vector<Witness>& witnesses) {
  constexpr std::size_t kMost = 4;
  const LogView view = make_log_view(witnesses);
  std::set<std::pair<const Witness*, std::uint32_t>> called;
  for (const Witness* witness : view.logs) {
    for (const LogCall& call : witness->log->calls) called.emplace(witness, call.comm.value);
  }
  std::vector<std::string> sentences;
  for (const LogGroup& group : view.groups) {
    std::vector<std::int64_t> unfinished;
    std::set<std::int64_t> seen;
    bool used = false;
    for (const LogMember& member : group.members) {
      const LogComm& comm = member.facts();
      used = used || called.contains({member.witness, member.comm.value}) || comm.end_line > 0;
      if (member.rank < 0) continue;
      seen.insert(member.rank);
      // Versions that write the identifier when they begin write when they have finished, too.
      if (comm.id != 0 && comm.complete_line == 0 && comm.abort_line == 0)
        unfinished.push_back(member.rank);
    }
    if (group.nranks < 2 || unfinished.empty() || used || sentences.size() == kMost) continue;
    std::sort(unfinished.begin(), unfinished.end());
    std::vector<std::int64_t> absent;
    for (std::int64_t rank = 0; rank < std::min<std::int64_t>(group.nranks, 1 << 16); ++rank) {
      if (!seen.contains(rank)) absent.push_back(rank);
    }
    std::string text = ranks_in_words(unfinished) + " began to set up " + group.name +
                       ", and no line says that they finished";
    if (!absent.empty()) text += "; " + ranks_in_words(absent) + " wrote nothing of it";
    sentences.push_back(text + "; if the job hangs, look at these first");
  }
  return sentences;
}

std::vector<std::string> open_warnings(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  const std::vector<LogEventRef> survived = survived_warnings(view);
  std::set<const LogEvent*> over;
  for (const LogEventRef& warning : survived) over.insert(warning.event);
  std::vector<LogEventRef> unknown;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind == LogEventKind::other_warning && !over.contains(&event))
        unknown.push_back({witness, &event});
    }
  }
  std::vector<std::string> sentences;
  const auto add = [&sentences](const std::vector<LogEventRef>& warnings, std::string_view one,
                                std::string_view several) {
    if (warnings.empty()) return;
    const LogEventRef& first = warnings.front();
    sentences.push_back((warnings.size() == 1 ? "1 warning " + std::string(one) + ": "
                                              : std::to_string(warnings.size()) + " warnings " +
                                                    std::string(several) + ", first ") +
                        evidence_line(*first.witness, first.event->line, first.event->text));
  };
  add(unknown, "is not understood", "are not understood");
  constexpr std::string_view kOver =
      "came to nothing (all ranks of its communicators called on and destroyed them)";
  add(survived, kOver, kOver);
  return sentences;
}

std::vector<Table> summarize_logs(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  if (view.logs.empty()) return {};
  std::vector<Table> tables{hosts_table(view), communicators_table(view), phases_table(view)};
  append_connections(view, tables);
  tables.push_back(tuning_table(view));
  tables.push_back(calls_table(view));
  tables.push_back(settings_table(view));
  return tables;
}

}  // namespace commlens
