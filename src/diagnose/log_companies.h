// Which processes are one job.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/log_view.h"

namespace commlens {

using Hosts = std::set<std::string>;

inline std::string list_hosts(const Hosts& hosts) {
  std::string text;
  for (const std::string& host : hosts) text += (text.empty() ? "" : ", ") + host;
  return text;
}

struct ProcessRef {
  const Witness* witness = nullptr;
  LogProcessId id;
  friend auto operator<=>(const ProcessRef&, const ProcessRef&) = default;

  const LogProcess& facts() const { return witness->log->processes[id.index()]; }
};

// Processes that share communicators, one way or another. Of a log without any, all are taken for
// one job's: it is mostly that of one launch.
class Companies {
 public:
  explicit Companies(const LogView& view) {
    for (const LogGroup& group : view.groups) {
      for (const LogMember& member : group.members)
        unite({group.members.front().witness, group.members.front().facts().process},
              {member.witness, member.facts().process});
      find_crowded(group);
    }
    for (const Witness* witness : view.logs) {
      const bool alone = !witness->log->comms.empty();
      for (std::size_t i = 0; i < witness->log->processes.size(); ++i) {
        const ProcessRef process{witness, LogProcessId::from(i)};
        unite(alone ? process : ProcessRef{witness, LogProcessId::from(0)}, process);
      }
    }
  }

  std::vector<std::vector<ProcessRef>> list() {
    std::map<ProcessRef, std::vector<ProcessRef>> companies;
    for (const auto& [process, above] : above_) companies[top(process)].push_back(process);
    std::vector<std::vector<ProcessRef>> found;
    for (auto& [process, members] : companies) found.push_back(std::move(members));
    return found;
  }
  // Whether several hosts bear this name: two ranks of one communicator have the same device there.
  bool is_shared_name(const std::string& host) const { return crowded_.contains(host); }

 private:
  ProcessRef top(ProcessRef process) {
    ProcessRef above = above_.try_emplace(process, process).first->second;
    while (above != process) {
      process = above;
      above = above_.try_emplace(process, process).first->second;
    }
    return process;
  }
  void unite(const ProcessRef& a, const ProcessRef& b) {
    const ProcessRef first = top(a);
    const ProcessRef second = top(b);
    above_[second] = first;
    above_[b] = first;
  }
  void find_crowded(const LogGroup& group) {
    std::set<std::pair<std::string, std::int64_t>> devices;
    for (const LogMember& member : group.members) {
      const LogComm& comm = member.facts();
      const std::string& host = member.witness->log->processes[comm.process.index()].host;
      if (comm.device >= 0 && !devices.emplace(host, comm.device).second) crowded_.insert(host);
    }
  }

  std::map<ProcessRef, ProcessRef> above_;
  Hosts crowded_;
};

// Of each company, whether it surely runs on more than one host, or surely on one: then its network
// carries nothing. Nothing where neither is known.
inline std::vector<std::optional<bool>> companies_span_hosts(
    const LogView& view, const Companies& companies,
    const std::vector<std::vector<ProcessRef>>& list) {
  std::map<ProcessRef, std::size_t> company_of;
  std::vector<Hosts> hosts(list.size());
  std::vector<std::optional<bool>> spans(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const ProcessRef& process : list[i]) {
      company_of.emplace(process, i);
      const std::string& host = process.facts().host;
      if (!host.empty()) hosts[i].insert(host.substr(0, host.find('.')));
    }
  }
  // Its largest communicator, all of whose ranks are there.
  std::vector<std::int64_t> largest(list.size(), 0);
  for (const LogGroup& group : view.groups) {
    const LogMember& first = group.members.front();
    const std::size_t company = company_of.at({first.witness, first.facts().process});
    if (group.nranks < largest[company]) continue;
    const bool whole = static_cast<std::int64_t>(group.members.size()) == group.nranks;
    const bool one_host = hosts[company].size() == 1 &&
                          !companies.is_shared_name(
                              first.witness->log->processes[first.facts().process.index()].host);
    if (group.nranks > largest[company]) spans[company].reset();
    largest[company] = group.nranks;
    if (whole && one_host) spans[company] = false;
  }
  for (const Witness* witness : view.logs) {
    for (const LogComm& comm : witness->log->comms) {
      const std::size_t company = company_of.at({witness, comm.process});
      if (comm.nodes == 1 && comm.nranks >= largest[company] && !spans[company])
        spans[company] = false;
    }
  }
  for (const Witness* witness : view.logs) {
    for (const LogComm& comm : witness->log->comms) {
      if (comm.nodes > 1) spans[company_of.at({witness, comm.process})] = true;
    }
    for (const LogChannel& channel : witness->log->channels) {
      if (channel.transport == LogTransport::net && channel.from != channel.to)
        spans[company_of.at({witness, channel.process})] = true;
    }
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (hosts[i].size() > 1) spans[i] = true;
  }
  return spans;
}

}  // namespace commlens
