// Which processes are one job.
#pragma once

#include <map>
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

}  // namespace commlens
