// What the logs say of networks and topology: transfers through host memory, sockets over
// interfaces that lead nowhere, a hidden topology, peer access that does not work.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "diagnose/log_causes.h"
#include "diagnose/log_companies.h"
#include "diagnose/log_misconfiguration.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

bool is_infiniband(std::string_view network) { return network.starts_with("IB"); }

// What a job shows of GPU Direct RDMA.
struct GdrJob {
  struct Network {
    std::size_t with = 0;
    std::size_t without = 0;
    std::vector<std::pair<const Witness*, const LogChannel*>> examples;  // of those without
  };
  std::map<std::string, Network> networks;  // receives by the network's name
  std::vector<std::pair<const Witness*, const LogEvent*>> disabled;
};

// Receivers decide: sends go without on many machines whose receives do not.
std::vector<GdrJob> gdr_jobs(const LogView& view,
                             const std::vector<std::vector<ProcessRef>>& list) {
  std::map<ProcessRef, std::size_t> job_of;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const ProcessRef& process : list[i]) job_of.emplace(process, i);
  }
  std::vector<GdrJob> jobs(list.size());
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind != LogEventKind::gdr_disabled) continue;
      const auto job = job_of.find({witness, event.process});
      if (job != job_of.end()) jobs[job->second].disabled.emplace_back(witness, &event);
    }
    for (const LogChannel& channel : witness->log->channels) {
      // Sockets have none.
      if (channel.transport != LogTransport::net || !channel.receives || channel.network.empty() ||
          channel.network == "Socket")
        continue;
      const auto job = job_of.find({witness, channel.process});
      if (job == job_of.end()) continue;
      GdrJob::Network& network = jobs[job->second].networks[channel.network];
      ++(channel.gdr ? network.with : network.without);
      if (!channel.gdr && network.examples.size() < kMostLogEvidence)
        network.examples.emplace_back(witness, &channel);
    }
  }
  return jobs;
}

// Whether a process lists adapters of which some have it: these may be all that are used.
bool some_are_left(const GdrJob& job) {
  std::map<ProcessRef, std::set<std::string>> disabled;
  for (const auto& [witness, event] : job.disabled)
    disabled[{witness, event->process}].insert(event->detail);
  for (const auto& row : disabled) {
    const auto has_it = [&row](const std::string& name) {  // "mlx5_0:1/RoCE"
      return !row.second.contains(name.substr(0, name.find(':')));
    };
    for (const LogInterfaces& list : row.first.witness->log->interfaces) {
      if (list.kind != LogInterfaces::Kind::ib || list.process != row.first.id) continue;
      if (std::any_of(list.names.begin(), list.names.end(), has_it)) return true;
    }
  }
  return false;
}

DiagnosisFinding no_gdr() {
  return misconfiguration(Confidence::likely, {},
                          "load nvidia-peermem (or the DMA-BUF support of a newer driver "
                          "and kernel), allow it with NCCL_NET_GDR_LEVEL=PHB "
                          "or SYS if GPU and adapter are far from each other, switch ACS "
                          "off; without it data passes host memory");
}

void name_disabled(const GdrJob& job, DiagnosisFinding& finding) {
  std::set<std::string> adapters;
  for (const auto& [witness, event] : job.disabled) {
    adapters.insert(event->detail);
    add_log_evidence(finding, *witness, event->line, event->text);
  }
  std::string names;
  for (const std::string& name : adapters) names += (names.empty() ? "" : ", ") + name;
  finding.message = "GPU Direct RDMA is off for " + names + ": network transfers pass host memory";
}

DiagnosisFinding no_gdr_over(const std::string& name, const GdrJob::Network& network,
                             const GdrJob& job) {
  DiagnosisFinding finding = no_gdr();
  const bool infiniband = is_infiniband(name);
  if (infiniband && !job.disabled.empty()) {
    name_disabled(job, finding);
  } else {
    finding.message = "none of " + std::to_string(network.without) + " receiving channels over " +
                      (infiniband ? "InfiniBand or RoCE" : name) +
                      " uses GPU Direct RDMA: transfers pass host memory";
  }
  if (!infiniband) {
    finding.confidence = Confidence::undecidable;
    finding.message += ". Missing: whether these adapters and this plugin can do it";
  }
  for (const auto& [witness, channel] : network.examples)
    add_log_evidence(finding, *witness, channel->line, channel_words(*channel));
  return finding;
}

// By job and by network: what one has says nothing of another.
std::vector<DiagnosisFinding> find_no_gdr(const LogView& view) {
  std::vector<DiagnosisFinding> findings;
  Companies companies(view);
  const std::vector<std::vector<ProcessRef>> list = companies.list();
  const std::vector<std::optional<bool>> spans = companies_span_hosts(view, companies, list);
  const std::vector<GdrJob> jobs = gdr_jobs(view, list);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    // Inside a host no adapter is used.
    if (spans[i] == false) continue;
    bool infiniband = false;
    for (const auto& [name, network] : jobs[i].networks) {
      infiniband = infiniband || is_infiniband(name);
      if (network.with == 0) findings.push_back(no_gdr_over(name, network, jobs[i]));
    }
    if (infiniband || jobs[i].disabled.empty() || some_are_left(jobs[i])) continue;
    findings.push_back(no_gdr());
    name_disabled(jobs[i], findings.back());
  }
  return findings;
}

// Interfaces that containers, bridges and tunnels make: other hosts do not reach them.
bool is_virtual(std::string_view name) {
  constexpr std::array<std::string_view, 8> kBeginnings = {"veth",   "docker", "br-", "virbr",
                                                           "ip6tnl", "vnet",   "lxc", "podman"};
  return name == "lo" ||
         std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [name](auto beginning) { return name.starts_with(beginning); });
}

bool is_local_address(std::string_view address) {
  return address.starts_with("fe80:") || address.starts_with("127.") ||
         address.starts_with("169.254.") || address == "::1";
}

// Whether the process moves data over sockets, as far as is known.
bool uses_sockets(const LogProcess& process) {
  return process.network.empty() || process.network == "Socket";
}

std::optional<DiagnosisFinding> find_virtual_interfaces(const LogView& view) {
  if (spans_hosts(view) != true) return std::nullopt;
  auto finding = misconfiguration(Confidence::likely, {},
                                  "name the interface that all hosts reach each other by: "
                                  "NCCL_SOCKET_IFNAME=eth0 (or =^veth,docker,lo to leave "
                                  "these out), and GLOO_SOCKET_IFNAME where Gloo is used");
  std::set<std::string> names;
  for (const Witness* witness : view.logs) {
    for (const LogInterfaces& list : witness->log->interfaces) {
      const LogProcess& process = witness->log->processes[list.process.index()];
      // Ranks find each other over sockets, whatever moves their data.
      const bool bootstrap = list.kind == LogInterfaces::Kind::bootstrap && list.names.size() == 1;
      const bool moves = list.kind == LogInterfaces::Kind::socket && uses_sockets(process);
      if (!bootstrap && !moves) continue;
      bool bad = false;
      for (std::size_t i = 0; i < list.names.size(); ++i) {
        const bool local = is_virtual(list.names[i]) && is_local_address(list.addresses[i]);
        // The first is the one that ranks connect by.
        if (!local && !(i == 0 && is_virtual(list.names[i]))) continue;
        names.insert(list.names[i]);
        bad = true;
      }
      std::string text;
      for (std::size_t i = 0; i < list.names.size(); ++i)
        text += " [" + std::to_string(i) + "]" + list.names[i] + ":" + list.addresses[i];
      if (bad) add_log_evidence(finding, *witness, list.line, "NET/Socket : Using" + text);
    }
  }
  if (names.empty()) return std::nullopt;
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  finding.message = "sockets between hosts may use " + all + ", which other hosts do not reach";
  return finding;
}

std::optional<DiagnosisFinding> find_hidden_topology(const LogView& view) {
  auto finding = misconfiguration(Confidence::likely,
                                  "a virtual machine hides the PCI topology: NCCL models its links "
                                  "with what it can see, and chooses by that",
                                  "give NCCL the machine's topology with NCCL_TOPO_FILE (cloud "
                                  "images bring one), or pass the real topology through");
  bool hidden = false;
  bool low = false;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind != LogEventKind::topology_hidden &&
          event.kind != LogEventKind::low_bandwidth_model)
        continue;
      hidden = hidden || event.kind == LogEventKind::topology_hidden;
      if (event.kind == LogEventKind::low_bandwidth_model && !low) {
        low = true;
        finding.message += " (" + event.detail + " GB/s at most)";
      }
      add_log_evidence(finding, *witness, event.line, event.text);
    }
  }
  if (!hidden || !low) return std::nullopt;
  return finding;
}

// Everything that a log shows of a communicator that came up on one host and then was silent.
struct Silence {
  const LogGroup* group = nullptr;
  std::size_t complete = 0;
  std::int64_t last_complete = 0;
  const Witness* witness = nullptr;
};

std::optional<Silence> silent_after_init(const LogView& view) {
  if (view.logs.empty() || hosts_of(view).size() != 1) return std::nullopt;
  for (const LogGroup& group : view.groups) {
    if (group.nranks < 2) continue;
    Silence silence;
    silence.group = &group;
    for (const LogMember& member : group.members) {
      const LogComm& comm = member.facts();
      if (comm.end_line > 0 || comm.abort_line > 0) return std::nullopt;
      if (comm.complete_line == 0) continue;
      ++silence.complete;
      silence.last_complete = std::max(silence.last_complete, comm.complete_line);
      silence.witness = member.witness;
    }
    if (silence.complete == 0) continue;
    // Where a log is cut, most will do.
    const auto all = static_cast<std::size_t>(group.nranks);
    const std::size_t wanted = silence.witness->damaged ? (3 * all + 3) / 4 : all;
    if (silence.complete >= wanted) return silence;
  }
  return std::nullopt;
}

// Whether the ranks of this host are joined by PCIe alone and reach each other's memory: few
// channels, no multicast, no way through host memory.
bool uses_peer_access_over_pcie(const LogView& view) {
  constexpr std::int64_t kMostOverPcie = 4;
  bool counted = false;
  for (const Witness* witness : view.logs) {
    for (const LogChannelCount& row : witness->log->channel_counts) {
      if (row.collective > kMostOverPcie || row.nvls > 0) return false;
      counted = true;
    }
    for (const LogChannel& channel : witness->log->channels) {
      if (channel.transport != LogTransport::p2p) return false;
    }
  }
  return counted;
}

bool something_happened(const LogView& view, std::int64_t after) {
  return std::any_of(view.logs.begin(), view.logs.end(), [after](const Witness* witness) {
    const LogFacts& log = *witness->log;
    std::map<std::uint32_t, int> calls;
    for (const LogCall& call : log.calls) {
      if (++calls[call.comm.value] > 1) return true;
    }
    return log.last_program_line > after || log.last_log_line > after + 1;
  });
}

// Peer access that is set up and then moves nothing: an IOMMU or ACS sends the data elsewhere.
std::optional<DiagnosisFinding> find_silent_peer_access(const LogView& view) {
  const auto silence = silent_after_init(view);
  if (!silence || !uses_peer_access_over_pcie(view)) return std::nullopt;
  if (something_happened(view, silence->last_complete)) return std::nullopt;
  auto finding = misconfiguration(Confidence::undecidable,
                                  std::to_string(silence->complete) + " of " +
                                      std::to_string(silence->group->nranks) +
                                      " ranks came up with peer access over PCIe, and the log is "
                                      "silent from then on: if the job hangs here, peer "
                                      "access does not work (IOMMU or ACS). Missing: the calls "
                                      "(NCCL_DEBUG_SUBSYS=INIT,COLL), and whether it hangs",
                                  "try NCCL_P2P_DISABLE=1; if that helps, switch the IOMMU "
                                  "(iommu=pt) or ACS off, and see p2pBandwidthLatencyTest");
  finding.group = silence->group->name;
  for (const LogMember& member : silence->group->members) {
    const LogComm& comm = member.facts();
    if (comm.complete_line > 0)
      add_log_evidence(finding, *member.witness, comm.complete_line,
                       "rank " + std::to_string(comm.rank) + " nranks " +
                           std::to_string(comm.nranks) + " - Init COMPLETE");
  }
  return finding;
}

std::vector<DiagnosisFinding> find_fabric(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  std::vector<DiagnosisFinding> findings;
  const auto ask = [&view, &findings](auto find) {
    if (auto finding = find(view)) findings.push_back(std::move(*finding));
  };
  ask(find_virtual_interfaces);
  // What only costs speed is no answer to what ended the job.
  if (has_failed(view)) return findings;
  for (DiagnosisFinding& finding : find_no_gdr(view)) findings.push_back(std::move(finding));
  ask(find_hidden_topology);
  if (findings.empty()) ask(find_silent_peer_access);
  return findings;
}

}  // namespace

extern constinit const Verdict kLogFabric{
    .name = "log_fabric",
    .summary = "networks and topology: host memory, useless interfaces",
    .find = find_fabric,
};

}  // namespace commlens
