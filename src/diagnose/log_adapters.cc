// What the logs say of network adapters: hosts and ranks with different ones, and connections from
// one rail to another.
//
//   NIC 0 of host a ---- rail 0 ---- NIC 0 of host b       a fabric of separate rails has no way
//   NIC 1 of host a ---- rail 1 ---- NIC 1 of host b       from NIC 0 to NIC 1
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/log_misconfiguration.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

using Hosts = std::set<std::string>;

std::string list_hosts(const Hosts& hosts) {
  std::string text;
  for (const std::string& host : hosts) text += (text.empty() ? "" : ", ") + host;
  return text;
}

constexpr std::string_view kCompareHosts =
    "compare ibstat and NCCL_IB_HCA of the hosts: all should use the same adapters and plugins";

// Hosts of one job that use different networks.
std::optional<DiagnosisFinding> find_differing_networks(const LogView& view) {
  std::map<std::string, Hosts> hosts;
  auto finding = misconfiguration(Confidence::likely, {}, std::string(kCompareHosts));
  for (const Witness* witness : view.logs) {
    for (const LogProcess& process : witness->log->processes) {
      if (process.network.empty()) continue;
      if (hosts[process.network].insert(process.host).second)
        add_log_evidence(finding, *witness, process.network_line,
                         process.host + ": Using network " + process.network);
    }
  }
  // One host with both ran two things behind each other.
  if (hosts.size() != 2) return std::nullopt;
  for (const std::string& host : hosts.begin()->second) {
    if (hosts.rbegin()->second.contains(host)) return std::nullopt;
  }
  finding.message = "hosts use different networks:";
  for (const auto& [network, users] : hosts)
    finding.message += " " + network + " on " + list_hosts(users) + ";";
  finding.message.pop_back();
  return finding;
}

// --- Adapters of hosts and ranks ---

using Adapters = std::vector<std::string>;  // "mlx5_0:1/RoCE", sorted

struct Equipped {
  const Witness* witness = nullptr;
  LogProcessId process;
  Adapters adapters;
  std::int64_t line = 0;

  const std::string& host() const { return witness->log->processes[process.index()].host; }
};

// What each process listed last, whole.
std::vector<Equipped> adapters_of_processes(const LogView& view) {
  std::vector<Equipped> found;
  for (const Witness* witness : view.logs) {
    std::map<std::uint32_t, Equipped> by_process;
    for (const LogInterfaces& list : witness->log->interfaces) {
      if (list.kind != LogInterfaces::Kind::ib || list.cut) continue;
      Equipped equipped{witness, list.process, list.names, list.line};
      std::sort(equipped.adapters.begin(), equipped.adapters.end());
      by_process.insert_or_assign(list.process.value, std::move(equipped));
    }
    for (auto& [process, equipped] : by_process) found.push_back(std::move(equipped));
  }
  return found;
}

std::string adapter_words(const Adapters& adapters) {
  constexpr std::size_t kMostNamed = 8;
  if (adapters.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < std::min(adapters.size(), kMostNamed); ++i)
    text += (i > 0 ? ", " : "") + adapters[i];
  if (adapters.size() > kMostNamed)
    text += " and " + std::to_string(adapters.size() - kMostNamed) + " more";
  return text;
}

void add_line(DiagnosisFinding& finding, const Equipped& equipped) {
  add_log_evidence(finding, *equipped.witness, equipped.line,
                   equipped.host() + ": NET/IB : Using " + adapter_words(equipped.adapters));
}

// Ranks of one host that were given each its own adapter are as they should be; where most have
// the same ones, others are odd.
std::optional<DiagnosisFinding> find_odd_ranks(const LogView& view) {
  std::map<std::string, std::map<Adapters, std::vector<Equipped>>> hosts;
  for (Equipped& equipped : adapters_of_processes(view)) {
    auto& alike = hosts[equipped.host()][equipped.adapters];
    alike.push_back(std::move(equipped));
  }
  auto finding = misconfiguration(Confidence::likely, {},
                                  "give all ranks of a host the same NCCL_IB_HCA, or each the one "
                                  "that is nearest to its GPU; a container may see fewer devices");
  for (const auto& [host, sets] : hosts) {
    std::size_t all = 0;
    for (const auto& [adapters, users] : sets) all += users.size();
    const auto most = std::max_element(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    if (sets.size() < 2 || all < 3 || 2 * most->second.size() <= all) continue;
    for (const auto& [adapters, users] : sets) {
      if (adapters == most->first) continue;
      for (const Equipped& odd : users) {
        finding.message += (finding.message.empty() ? "" : "; ") +
                           who_wrote(view, *odd.witness, odd.process, -1, -1) + " uses " +
                           adapter_words(adapters);
        if (const auto rank = rank_of_process(view, *odd.witness, odd.process, -1))
          finding.differing.push_back(
              {*rank, "adapters", adapter_words(adapters), adapter_words(most->first)});
        add_line(finding, odd);
      }
    }
    finding.message += ", and the other " + std::to_string(most->second.size()) + " processes of " +
                       host + " " + adapter_words(most->first);
    add_line(finding, most->second.front());
  }
  if (finding.message.empty()) return std::nullopt;
  finding.message = "ranks of one host use different network adapters: " + finding.message;
  return finding;
}

bool same_kinds(const Adapters& a, const Adapters& b) {
  const auto kinds = [](const Adapters& adapters) {
    std::set<std::string> found;
    for (const std::string& name : adapters)
      found.insert(name.substr(std::min(name.rfind('/'), name.size())));
    return found;
  };
  return kinds(a) == kinds(b);
}

// Hosts of one job that have different adapters. A host whose processes do not agree was given
// different ones on purpose, or find_odd_ranks tells of it.
std::optional<DiagnosisFinding> find_differing_adapters(const LogView& view) {
  std::map<std::string, Adapters> of_host;
  std::set<std::string> several;
  auto finding = misconfiguration(Confidence::likely, {}, std::string(kCompareHosts));
  for (const Equipped& equipped : adapters_of_processes(view)) {
    const auto [place, is_new] = of_host.try_emplace(equipped.host(), equipped.adapters);
    if (is_new) add_line(finding, equipped);
    if (place->second != equipped.adapters) several.insert(equipped.host());
  }
  if (!several.empty()) return std::nullopt;
  std::map<Adapters, Hosts> sets;
  std::set<std::size_t> counts;
  bool one_kind = true;
  for (const auto& [host, adapters] : of_host) {
    sets[adapters].insert(host);
    counts.insert(adapters.size());
    one_kind = one_kind && same_kinds(adapters, of_host.begin()->second);
  }
  if (sets.size() < 2) return std::nullopt;
  if (counts.size() > 1) {
    std::map<std::size_t, Hosts> by_count;
    for (const auto& [adapters, hosts] : sets)
      by_count[adapters.size()].insert(hosts.begin(), hosts.end());
    finding.message = "hosts use different numbers of network adapters:";
    for (const auto& [count, users] : by_count)
      finding.message += " " + std::to_string(count) + " on " + list_hosts(users) + ";";
  } else {
    finding.message = one_kind ? "hosts use network adapters of different names, which may be of "
                                 "different rails or models:"
                               : "hosts use network adapters of different kinds:";
    for (const auto& [adapters, users] : sets)
      finding.message += " " + adapter_words(adapters) + " on " + list_hosts(users) + ";";
    // Numbers shift where another card sits in one of them.
    if (one_kind) finding.confidence = Confidence::undecidable;
  }
  finding.message.pop_back();
  return finding;
}

// --- Connections from one rail to another ---

// One end of a channel over the network.
struct NetworkEnd {
  const Witness* witness = nullptr;
  const LogChannel* channel = nullptr;

  const std::string& host() const { return witness->log->processes[channel->process.index()].host; }
};

// Rows of several communicators can read alike: then nobody knows which end belongs to which.
struct Connection {
  std::vector<NetworkEnd> sends;
  std::vector<NetworkEnd> receives;
};

using ConnectionKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::map<ConnectionKey, Connection> network_connections(const LogView& view) {
  std::map<ConnectionKey, Connection> found;
  for (const Witness* witness : view.logs) {
    for (const LogChannel& channel : witness->log->channels) {
      if (channel.transport != LogTransport::net || !channel.network.starts_with("IB") ||
          channel.device < 0)
        continue;
      Connection& connection =
          found[{channel.channel, channel.connection, channel.from, channel.to}];
      if (channel.sends) connection.sends.push_back({witness, &channel});
      if (channel.receives) connection.receives.push_back({witness, &channel});
    }
  }
  return found;
}

// The adapter's name, which hosts of one make have in common; else its number in NCCL's list.
std::string adapter_of(const NetworkEnd& end) {
  const auto device = static_cast<std::size_t>(end.channel->device);
  std::string name;
  for (const LogInterfaces& list : end.witness->log->interfaces) {
    if (list.process == end.channel->process && list.kind == LogInterfaces::Kind::ib &&
        device < list.names.size())
      name = list.names[device].substr(0, list.names[device].find('/'));
  }
  return name.empty() ? "adapter " + std::to_string(device) : name;
}

// The first transfer or connection that got no answer.
std::optional<std::pair<const Witness*, const LogEvent*>> unanswered(const LogView& view) {
  constexpr std::int64_t kNoAnswer = 12;  // IBV_WC_RETRY_EXC_ERR
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      const bool no_way = event.kind == LogEventKind::ib_setup &&
                          event.text.find("unreachable") != std::string::npos;
      if (no_way || (event.kind == LogEventKind::ib_completion && event.code == kNoAnswer))
        return std::pair(witness, &event);
    }
  }
  return std::nullopt;
}

// Where transfers get no answer and connections lead from one rail to another, the fabric may have
// no way between them. Whether it has, no log says.
std::optional<DiagnosisFinding> find_crossed_rails(const LogView& view) {
  const auto failed = unanswered(view);
  if (!failed) return std::nullopt;
  std::size_t crossed = 0;
  std::size_t all = 0;
  auto finding = misconfiguration(
      Confidence::undecidable, {},
      "if the rails are separate: NCCL_CROSS_NIC=0, and leave PXN on (NCCL_PXN_DISABLE=0), so that "
      "data change rails inside a host; give the same GPU the same adapter on all hosts");
  add_log_evidence(finding, *failed->first, failed->second->line, failed->second->text);
  for (const auto& [key, connection] : network_connections(view)) {
    if (connection.sends.size() != 1 || connection.receives.size() != 1) continue;
    const NetworkEnd& from = connection.sends.front();
    const NetworkEnd& to = connection.receives.front();
    if (from.host() == to.host()) continue;
    ++all;
    const std::string sender = adapter_of(from);
    const std::string receiver = adapter_of(to);
    if (sender == receiver) continue;
    if (++crossed == 1)
      finding.message =
          "(" + sender + " of " + from.host() + " to " + receiver + " of " + to.host() + ")";
    add_log_evidence(finding, *from.witness, from.channel->line, channel_words(*from.channel));
    add_log_evidence(finding, *to.witness, to.channel->line, channel_words(*to.channel));
  }
  if (crossed == 0) return std::nullopt;
  finding.message = "transfers or connections got no answer, and " + std::to_string(crossed) +
                    " of " + std::to_string(all) +
                    " connections between hosts lead from one adapter to another one " +
                    finding.message +
                    ": a fabric of separate rails has no way between these. Missing: whether they "
                    "reach each other (ib_write_bw from one to the other)";
  return finding;
}

std::vector<DiagnosisFinding> find_adapter_faults(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  std::vector<DiagnosisFinding> findings;
  for (const auto find :
       {find_differing_networks, find_odd_ranks, find_differing_adapters, find_crossed_rails}) {
    if (auto finding = find(view)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace

extern constinit const Verdict kLogAdapters{
    .name = "log_adapters",
    .summary = "network adapters: hosts and ranks with different ones, connections across rails",
    .find = find_adapter_faults,
};

}  // namespace commlens
