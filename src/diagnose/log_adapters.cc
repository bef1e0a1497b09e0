// What the logs say of network adapters: hosts and ranks with different ones, and connections from
// one rail to another.
//
//   NIC 0 of host a ---- rail 0 ---- NIC 0 of host b       a fabric of separate rails has no way
//   NIC 1 of host a ---- rail 1 ---- NIC 1 of host b       from NIC 0 to NIC 1
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/log_causes.h"
#include "diagnose/log_companies.h"
#include "diagnose/log_misconfiguration.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

constexpr std::string_view kCompareHosts =
    "compare ibstat and NCCL_IB_HCA of the hosts: all should use the same adapters and plugins";

// Hosts of one job that use different networks.
std::optional<DiagnosisFinding> find_differing_networks(const std::vector<ProcessRef>& company) {
  std::map<std::string, Hosts> hosts;
  auto finding = misconfiguration(Confidence::likely, {}, std::string(kCompareHosts));
  for (const ProcessRef& ref : company) {
    const LogProcess& process = ref.facts();
    if (process.network.empty()) continue;
    if (hosts[process.network].insert(process.host).second)
      add_log_evidence(finding, *ref.witness, process.network_line,
                       process.host + ": Using network " + process.network);
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

using Adapters = std::vector<std::string>;  // "mlx5_0:1/RoCE"

// What a process listed last, whole.
struct Equipped {
  ProcessRef process;
  Adapters listed;  // by NCCL's number
  Adapters sorted;
  std::int64_t line = 0;

  const std::string& host() const { return process.facts().host; }
};
using Equipment = std::map<ProcessRef, Equipped>;

Equipment find_equipment(const LogView& view) {
  Equipment found;
  for (const Witness* witness : view.logs) {
    for (const LogInterfaces& list : witness->log->interfaces) {
      if (list.kind != LogInterfaces::Kind::ib || list.cut) continue;
      const ProcessRef process{witness, list.process};
      Equipped equipped{process, list.names, list.names, list.line};
      std::sort(equipped.sorted.begin(), equipped.sorted.end());
      found.insert_or_assign(process, std::move(equipped));
    }
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
  add_log_evidence(finding, *equipped.process.witness, equipped.line,
                   equipped.host() + ": NET/IB : Using " + adapter_words(equipped.listed));
}

using ByHost = std::map<std::string, std::map<Adapters, std::vector<const Equipped*>>>;

ByHost by_host(const std::vector<ProcessRef>& company, const Equipment& equipment) {
  ByHost hosts;
  for (const ProcessRef& process : company) {
    const auto found = equipment.find(process);
    if (found != equipment.end())
      hosts[found->second.host()][found->second.sorted].push_back(&found->second);
  }
  return hosts;
}

void name_odd(const LogView& view, const Equipped& odd, const Equipped& usual,
              DiagnosisFinding& finding) {
  const ProcessRef& process = odd.process;
  finding.message = "ranks of one host use different network adapters: " +
                    who_wrote(view, *process.witness, process.id, -1, -1) + " uses " +
                    adapter_words(odd.listed) + ", and the others of " + odd.host() + " " +
                    adapter_words(usual.listed);
  if (const auto rank = rank_of_process(view, *process.witness, process.id, -1))
    finding.differing.push_back(
        {*rank, "adapters", adapter_words(odd.listed), adapter_words(usual.listed)});
  add_line(finding, odd);
  add_line(finding, usual);
}

// One rank that lacks adapters which all others of its host have. Ranks that were given each the
// nearest one, however these are spread, are as they should be.
std::optional<DiagnosisFinding> find_odd_rank(const LogView& view, const ByHost& hosts,
                                              const Companies& companies) {
  for (const auto& [host, sets] : hosts) {
    if (sets.size() != 2 || companies.is_shared_name(host)) continue;
    const auto& few =
        sets.begin()->second.size() < sets.rbegin()->second.size() ? *sets.begin() : *sets.rbegin();
    const auto& many = &few == &*sets.begin() ? *sets.rbegin() : *sets.begin();
    const bool lacks =
        few.first.size() < many.first.size() &&
        std::includes(many.first.begin(), many.first.end(), few.first.begin(), few.first.end());
    if (few.second.size() != 1 || many.second.size() < 2 || !lacks) continue;
    auto finding = misconfiguration(
        Confidence::likely, {},
        "give all ranks of a host the same NCCL_IB_HCA, or each the one that is nearest to its "
        "GPU; a container may see fewer devices");
    name_odd(view, *few.second.front(), *many.second.front(), finding);
    return finding;
  }
  return std::nullopt;
}

// "RoCE", "IB": behind the last stroke.
std::set<std::string> kinds_of(const Adapters& adapters) {
  std::set<std::string> found;
  for (const std::string& name : adapters)
    found.insert(name.substr(std::min(name.rfind('/'), name.size())));
  return found;
}

// Hosts of one job that have other numbers or kinds of adapters. Names differ where another card
// sits in a host, or hosts are of several makers. A host whose processes do not agree was given
// different ones on purpose, or find_odd_rank tells of it.
std::optional<DiagnosisFinding> find_differing_adapters(const ByHost& hosts,
                                                        const Companies& companies) {
  auto finding = misconfiguration(Confidence::likely, {}, std::string(kCompareHosts));
  std::map<std::size_t, Hosts> by_count;
  std::map<std::set<std::string>, Hosts> by_kind;
  for (const auto& [host, sets] : hosts) {
    if (sets.size() > 1 || companies.is_shared_name(host)) return std::nullopt;
    const Equipped& equipped = *sets.begin()->second.front();
    by_count[equipped.sorted.size()].insert(host);
    by_kind[kinds_of(equipped.sorted)].insert(host);
    add_line(finding, equipped);
  }
  if (by_count.size() > 1) {
    finding.message = "hosts use different numbers of network adapters:";
    for (const auto& [count, users] : by_count)
      finding.message += " " + std::to_string(count) + " on " + list_hosts(users) + ";";
  } else if (by_kind.size() > 1) {
    finding.message = "hosts use network adapters of different kinds:";
    for (const auto& [kinds, users] : by_kind) {
      const Equipped& one = *hosts.at(*users.begin()).begin()->second.front();
      finding.message += " " + adapter_words(one.listed) + " on " + list_hosts(users) + ";";
    }
  } else {
    return std::nullopt;
  }
  finding.message.pop_back();
  return finding;
}

// --- Connections from one rail to another ---

// One end of a channel over the network.
struct NetworkEnd {
  const Witness* witness = nullptr;
  const LogChannel* channel = nullptr;

  ProcessRef process() const { return {witness, channel->process}; }
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

// The adapter's name without its kind; empty: not known.
std::string adapter_of(const NetworkEnd& end, const Equipped& equipped) {
  const auto device = static_cast<std::size_t>(end.channel->device);
  if (device >= equipped.listed.size()) return {};
  return equipped.listed[device].substr(0, equipped.listed[device].find('/'));
}

// The first transfer or connection that got no answer.
std::optional<std::pair<const Witness*, const LogEvent*>> unanswered(const LogView& view) {
  constexpr std::int64_t kNoAnswer = 12;  // IBV_WC_RETRY_EXC_ERR
  std::set<const LogEvent*> survived;
  for (const LogEventRef& warning : survived_warnings(view)) survived.insert(warning.event);
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      const bool no_way = event.kind == LogEventKind::ib_setup &&
                          event.text.find("unreachable") != std::string::npos;
      if (survived.contains(&event)) continue;
      if (no_way || (event.kind == LogEventKind::ib_completion && event.code == kNoAnswer))
        return std::pair(witness, &event);
    }
  }
  return std::nullopt;
}

// Where transfers get no answer and connections lead from one rail to another, the fabric may have
// no way between them. Whether it has, no log says. Names tell rails only of hosts that have the
// same ones.
std::optional<DiagnosisFinding> find_crossed_rails(const LogView& view,
                                                   const Equipment& equipment) {
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
    const auto there = equipment.find(from.process());
    const auto here = equipment.find(to.process());
    if (from.host() == to.host() || there == equipment.end() || here == equipment.end() ||
        there->second.sorted != here->second.sorted)
      continue;
    const std::string sender = adapter_of(from, there->second);
    const std::string receiver = adapter_of(to, here->second);
    if (sender.empty() || receiver.empty()) continue;
    ++all;
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
  const Equipment equipment = find_equipment(view);
  Companies companies(view);
  std::vector<DiagnosisFinding> findings;
  const auto add = [&findings](std::optional<DiagnosisFinding> finding) {
    if (finding) findings.push_back(std::move(*finding));
  };
  const std::vector<std::vector<ProcessRef>> list = companies.list();
  const std::vector<std::optional<bool>> spans = companies_span_hosts(view, companies, list);
  for (std::size_t i = 0; i < list.size(); ++i) {
    // Inside a host no adapter is used.
    if (spans[i] == false) continue;
    const std::vector<ProcessRef>& company = list[i];
    const ByHost hosts = by_host(company, equipment);
    add(find_differing_networks(company));
    add(find_odd_rank(view, hosts, companies));
    add(find_differing_adapters(hosts, companies));
  }
  add(find_crossed_rails(view, equipment));
  return findings;
}

}  // namespace

extern constinit const Verdict kLogAdapters{
    .name = "log_adapters",
    .summary = "network adapters: hosts and ranks with different ones, connections across rails",
    .find = find_adapter_faults,
};

}  // namespace commlens
