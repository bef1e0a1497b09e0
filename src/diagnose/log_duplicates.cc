// Problem: NCCL refuses two ranks on one GPU ("Duplicate GPU detected"), but that line can be
// missing: of a level that was not recorded, or lost with the process. The ranks' own lines tell:
//
//   node-a:100:1 [0] NCCL INFO ... comm 0x1 rank 0 nranks 2 ... busId 3b000 commId 0x7 - Init START
//   node-a:101:1 [0] NCCL INFO ... comm 0x2 rank 1 nranks 2 ... busId 3b000 commId 0x7 - Init START
//
// When it is wrong: machines that bear one name (containers, "localhost") have the same buses. So
// what NCCL itself found is believed first: a communicator that came up has no two ranks on a GPU,
// and neither has one of which NCCL counts fewer ranks on the host than write under its name. Where
// it counts neither ranks nor hosts, that stays open.
#include "diagnose/log_duplicates.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/log_misconfiguration.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

using HostAndBus = std::pair<std::string, std::int64_t>;
using OnGpu = std::map<HostAndBus, std::vector<const LogMember*>>;

const std::string& host_of_member(const LogMember& member) {
  return member.witness->log->processes[member.facts().process.index()].host;
}

OnGpu members_on_gpus(const LogGroup& group) {
  OnGpu gpus;
  if (!group.joined_by_id) return gpus;
  for (const LogMember& member : group.members) {
    const LogComm& comm = member.facts();
    const std::string& host = host_of_member(member);
    if (host.empty() || comm.bus < 0 || !member.rank_said) continue;
    // Two lines of one process may be those of two machines, whose processes have the same number.
    std::vector<const LogMember*>& there = gpus[{host, comm.bus}];
    const bool known = std::any_of(there.begin(), there.end(), [&member](const LogMember* other) {
      return other->witness == member.witness && other->facts().process == member.facts().process;
    });
    if (!known) there.push_back(&member);
  }
  return gpus;
}

bool any_shared(const OnGpu& gpus) {
  return std::any_of(gpus.begin(), gpus.end(),
                     [](const auto& row) { return row.second.size() > 1; });
}

bool came_up(const LogGroup& group) {
  return std::any_of(group.members.begin(), group.members.end(), [](const LogMember& member) {
    return member.facts().complete_line > 0 || member.facts().end_line > 0;
  });
}

// Whether NCCL counts fewer ranks on a host than write under its name.
bool counts_fewer(const LogGroup& group) {
  std::map<std::string, std::int64_t> writers;
  for (const LogMember& member : group.members) ++writers[host_of_member(member)];
  return std::any_of(group.members.begin(), group.members.end(), [&](const LogMember& member) {
    const std::int64_t local = member.facts().local_ranks;
    return local > 0 && local < writers[host_of_member(member)];
  });
}

// Whether NCCL counts as many ranks on the host, or hosts in all, as the lines name: then one name
// is one machine.
bool counts_alike(const LogGroup& group) {
  std::map<std::string, std::int64_t> writers;
  for (const LogMember& member : group.members) ++writers[host_of_member(member)];
  const bool whole = static_cast<std::int64_t>(group.members.size()) == group.nranks;
  return std::any_of(group.members.begin(), group.members.end(), [&](const LogMember& member) {
    const LogComm& comm = member.facts();
    return comm.local_ranks == writers[host_of_member(member)] ||
           (whole && comm.nodes == static_cast<std::int64_t>(writers.size()));
  });
}

std::string bus_text(std::int64_t bus) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (auto rest = static_cast<std::uint64_t>(bus); rest != 0 || text.empty(); rest >>= 4U)
    text.insert(text.begin(), kDigits[rest & 15U]);
  return text;
}

std::string member_text(const LogMember& member) {
  const LogComm& comm = member.facts();
  return host_of_member(member) + ": rank " + std::to_string(comm.rank) + " nranks " +
         std::to_string(comm.nranks) +
         (comm.device >= 0 ? " cudaDev " + std::to_string(comm.device) : "") + " busId " +
         bus_text(comm.bus);
}

std::optional<DiagnosisFinding> duplicates_in(const LogGroup& group) {
  const OnGpu gpus = members_on_gpus(group);
  if (!any_shared(gpus) || came_up(group) || counts_fewer(group)) return std::nullopt;
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::duplicate_gpu;
  finding.group = group.name;
  std::string where;
  std::vector<std::int64_t> ranks;
  for (const auto& [place, members] : gpus) {
    if (members.size() < 2 || place.first == "localhost") continue;
    const std::string gpu = "busId " + bus_text(place.second) + " of " + place.first;
    where += (where.empty() ? "" : ", ") + gpu;
    for (const LogMember* member : members) {
      ranks.push_back(member->rank);
      finding.differing.push_back({member->rank, "device", gpu, "a device of its own"});
      add_log_evidence(finding, *member->witness, member->facts().first_line, member_text(*member));
    }
  }
  if (ranks.empty()) return std::nullopt;
  std::sort(finding.differing.begin(), finding.differing.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::sort(ranks.begin(), ranks.end());
  finding.message = ranks_in_words(ranks) + " share a GPU (" + where +
                    "), by the lines with which they begin to set up " + group.name +
                    "; no line says that it came up, and NCCL's own warning is not in the log";
  finding.confidence = Confidence::likely;
  if (!counts_alike(group)) {
    finding.confidence = Confidence::undecidable;
    finding.message +=
        ". Missing: whether these lines are of one machine (nNodes, localRanks), since several "
        "machines of one name write the same";
  }
  finding.advice =
      "give each process of a host its own GPU: torch.cuda.set_device(LOCAL_RANK) before the first "
      "communication; if these are several machines of one name, give them names of their own";
  return finding;
}

// NCCL's own word, which another verdict tells.
bool warned(const LogView& view) {
  return std::any_of(view.logs.begin(), view.logs.end(), [](const Witness* witness) {
    const auto& events = witness->log->events;
    return std::any_of(events.begin(), events.end(), [](const LogEvent& event) {
      return event.kind == LogEventKind::duplicate_gpu;
    });
  });
}

std::vector<DiagnosisFinding> find_duplicates(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  std::vector<DiagnosisFinding> findings;
  if (warned(view)) return findings;
  for (const LogGroup& group : view.groups) {
    if (auto finding = duplicates_in(group)) {
      findings.push_back(std::move(*finding));
      break;  // the next communicators have the same ranks on the same GPUs
    }
  }
  return findings;
}

}  // namespace

std::vector<std::string> shared_host_names(const std::vector<Witness>& witnesses) {
  constexpr std::size_t kMost = 4;
  const LogView view = make_log_view(witnesses);
  std::vector<std::string> sentences;
  std::set<std::string> told;
  for (const LogGroup& group : view.groups) {
    if (!came_up(group)) continue;
    for (const auto& [place, members] : members_on_gpus(group)) {
      if (members.size() < 2 || sentences.size() == kMost || !told.insert(place.first).second)
        continue;
      std::vector<std::int64_t> ranks;
      for (const LogMember* member : members) ranks.push_back(member->rank);
      std::sort(ranks.begin(), ranks.end());
      sentences.push_back(ranks_in_words(ranks) + " of " + group.name + " name the same host (" +
                          place.first + ") and GPU (busId " + bus_text(place.second) +
                          "), and it came up, which NCCL refuses on one machine: several machines "
                          "seem to bear this "
                          "name, so that nothing is concluded from what hosts have in common");
    }
  }
  return sentences;
}

extern constinit const Verdict kLogDuplicates{
    .name = "log_duplicates",
    .summary = "two ranks of one communicator on one GPU, by their own lines",
    .find = find_duplicates,
};

}  // namespace commlens
