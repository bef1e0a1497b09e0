// GPU Direct RDMA on some of the receives over a network only.
//
//   Channel 00/0 : 3[3] -> 4[0] [receive] via NET/IB/0/GDRDMA     the adapter writes to the GPU
//   Channel 01/0 : 3[3] -> 4[0] [receive] via NET/IB/1            host memory lies between
//
// Receives decide: sends go without on many machines whose receives do not. NCCL also leaves it out
// where GPU and adapter are far from each other, which no line says. So a host on which none has
// it, beside hosts on which all have, is likely not set up; and so is a rank that has it and lacks
// it with one adapter. Where only some ranks or adapters of a host lack it, that stays open.
#include <map>
#include <tuple>

#include "diagnose/log_causes.h"
#include "diagnose/log_companies.h"
#include "diagnose/log_misconfiguration.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

struct GdrUse {
  std::size_t with = 0;
  std::size_t without = 0;
  void add(bool gdr) { ++(gdr ? with : without); }
  bool mixed() const { return with > 0 && without > 0; }
};

struct GdrReceive {
  ProcessRef process;
  const LogChannel* channel = nullptr;
  const std::string& host() const { return process.facts().host; }
};

using Company = std::vector<ProcessRef>;

// Of each company, in the order of these; only of networks that some of its receives have it on,
// and some have not.
std::vector<std::vector<GdrReceive>> receives_of(const LogView& view,
                                                 const std::vector<Company>& companies) {
  std::map<ProcessRef, std::size_t> company_of;
  for (std::size_t i = 0; i < companies.size(); ++i) {
    for (const ProcessRef& process : companies[i]) company_of.emplace(process, i);
  }
  std::vector<std::vector<GdrReceive>> all(companies.size());
  std::map<std::pair<std::size_t, std::string>, GdrUse> networks;
  for (const Witness* log : view.logs) {
    for (const LogChannel& channel : log->log->channels) {
      if (channel.transport != LogTransport::net || !channel.receives) continue;
      const auto company = company_of.find({log, channel.process});
      if (company == company_of.end()) continue;
      networks[{company->second, channel.network}].add(channel.gdr);
      all[company->second].push_back({company->first, &channel});
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::erase_if(all[i], [&networks, i](const GdrReceive& receive) {
      return !networks[{i, receive.channel->network}].mixed();
    });
  }
  return all;
}

// "mlx5_1:1/RoCE", by the list that the process wrote; else "adapter 1".
std::string adapter_text(const GdrReceive& receive) {
  const auto device = receive.channel->device;
  std::string name;
  for (const LogInterfaces& list : receive.process.witness->log->interfaces) {
    if (list.kind == LogInterfaces::Kind::ib && list.process == receive.process.id &&
        receive.channel->network == "IB" && device >= 0 &&
        static_cast<std::size_t>(device) < list.names.size())
      name = list.names[static_cast<std::size_t>(device)];
  }
  return "adapter " + std::to_string(device) + (name.empty() ? "" : " (" + name + ")");
}

// A process with several GPUs takes part as several ranks.
std::int64_t rank_of_receive(const LogView& view, const GdrReceive& receive) {
  const ProcessRef& process = receive.process;
  const auto rank = process.facts().devices.size() > 1
                        ? std::nullopt
                        : rank_of_process(view, *process.witness, process.id, -1);
  return rank.value_or(receive.channel->to);
}

// One GPU with one adapter.
struct GdrPlace {
  GdrUse use;
  const GdrReceive* first = nullptr;
};
using GdrPlaces = std::map<std::tuple<ProcessRef, std::int64_t, std::int64_t>, GdrPlace>;

GdrPlaces places_of(const std::vector<GdrReceive>& receives) {
  GdrPlaces places;
  for (const GdrReceive& receive : receives) {
    const bool several = receive.process.facts().devices.size() > 1;
    GdrPlace& place =
        places[{receive.process, several ? receive.channel->to : -1, receive.channel->device}];
    if (place.first == nullptr) place.first = &receive;
    place.use.add(receive.channel->gdr);
  }
  return places;
}

std::string share_text(const GdrUse& use) {
  return std::to_string(use.without) + " of " + std::to_string(use.with + use.without);
}

constexpr std::string_view kSetUpGdr =
    "load nvidia-peermem (or the DMA-BUF support of a newer driver and kernel) there as on the "
    "others, switch ACS off, and compare NCCL_NET_GDR_LEVEL";

void add_gdr_evidence(const std::vector<GdrReceive>& receives, DiagnosisFinding& finding) {
  for (const bool gdr : {false, true}) {
    for (const GdrReceive& receive : receives) {
      if (receive.channel->gdr != gdr) continue;
      add_log_evidence(finding, *receive.process.witness, receive.channel->line,
                       channel_words(*receive.channel));
      if (gdr || finding.evidence.size() + 1 == kMostLogEvidence) break;
    }
  }
}

void add_gdr_ranks(const LogView& view, const GdrPlaces& places, DiagnosisFinding& finding) {
  std::map<std::int64_t, GdrUse> ranks;
  for (const auto& [key, place] : places) {
    GdrUse& use = ranks[rank_of_receive(view, *place.first)];
    use.with += place.use.with;
    use.without += place.use.without;
  }
  for (const auto& [rank, use] : ranks) {
    if (use.without > 0 && rank >= 0)
      finding.differing.push_back({rank, "gdr", share_text(use) + " receives without", "all with"});
  }
}

// Hosts on which no receive has it, where each other host has it on all.
std::optional<DiagnosisFinding> find_hosts_without(const std::vector<GdrReceive>& receives) {
  std::map<std::string, GdrUse> hosts;
  for (const GdrReceive& receive : receives) hosts[receive.host()].add(receive.channel->gdr);
  Hosts with;
  Hosts without;
  for (const auto& [host, use] : hosts) {
    if (use.mixed() || host.empty()) return std::nullopt;
    (use.with > 0 ? with : without).insert(host);
  }
  return misconfiguration(Confidence::likely,
                          "no receive over the network uses GPU Direct RDMA on " +
                              list_hosts(without) + ", and all do on " + list_hosts(with) +
                              ": transfers to the former pass host memory",
                          std::string(kSetUpGdr));
}

// The same rank has it and lacks it with the same adapter, or it lacks it and another does not.
DiagnosisFinding find_places_without(const LogView& view, const GdrPlaces& places) {
  constexpr std::size_t kMostPlaces = 6;
  GdrUse all;
  std::string text;
  std::size_t lacking = 0;
  bool mixed = false;
  for (const auto& [key, place] : places) {
    all.with += place.use.with;
    all.without += place.use.without;
    if (place.use.without == 0) continue;
    mixed = mixed || place.use.mixed();
    if (++lacking > kMostPlaces) continue;
    const ProcessRef& process = place.first->process;
    text += (lacking == 1 ? "" : "; ") +
            who_wrote(view, *process.witness, process.id, -1, rank_of_receive(view, *place.first)) +
            " with " + adapter_text(*place.first) + ", " + share_text(place.use);
  }
  if (lacking > kMostPlaces) text += "; and " + std::to_string(lacking - kMostPlaces) + " more";
  DiagnosisFinding finding = misconfiguration(
      mixed ? Confidence::likely : Confidence::undecidable,
      share_text(all) +
          " receiving channels over the network do not use GPU Direct RDMA, the others do: " + text,
      std::string(kSetUpGdr) + "; NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET shows why a pair is left out");
  if (!mixed)
    finding.message +=
        ". Missing: how far these GPUs and adapters are from each other (nvidia-smi topo -m), "
        "since "
        "NCCL does without where they are far";
  return finding;
}

std::vector<DiagnosisFinding> find_partial_gdr(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  std::vector<DiagnosisFinding> findings;
  // What only costs speed is no answer to what ended the job.
  if (has_failed(view)) return findings;
  for (const std::vector<GdrReceive>& receives : receives_of(view, Companies(view).list())) {
    if (receives.empty()) continue;
    auto by_host = find_hosts_without(receives);
    const GdrPlaces places = places_of(receives);
    DiagnosisFinding finding = by_host ? std::move(*by_host) : find_places_without(view, places);
    add_gdr_ranks(view, places, finding);
    add_gdr_evidence(receives, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern constinit const Verdict kLogGdr{
    .name = "log_gdr",
    .summary = "GPU Direct RDMA on some receives over a network only",
    .find = find_partial_gdr,
};

}  // namespace commlens
