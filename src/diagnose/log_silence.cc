// Problem: peer access over PCIe that an IOMMU or ACS sends elsewhere: communicators come up, and
// the first operation never ends. The log of such a job ends behind its initialisation.
//
// So does the log of every job that is well and writes nothing else, or that was cut there. So this
// is no finding, but a question that stays open, with what would answer it. It is asked where all
// ranks are on one host, came up (three quarters of a log that was cut), use only peer access, and
// where channels are as few as PCIe gets.
#include <algorithm>
#include <map>

#include "diagnose/log_causes.h"
#include "diagnose/log_summary.h"
#include "diagnose/log_view.h"

namespace commlens {
namespace {

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

}  // namespace

std::vector<std::string> silent_peer_access(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  const auto silence = silent_after_init(view);
  if (!silence || !uses_peer_access_over_pcie(view) || has_failed(view)) return {};
  if (something_happened(view, silence->last_complete)) return {};
  return {
      std::to_string(silence->complete) + " of " + std::to_string(silence->group->nranks) +
      " ranks came up with peer access over PCIe (" +
      evidence_line(*silence->witness, silence->last_complete, "the last Init COMPLETE") +
      "), and nothing is written from then on. If the job hangs here, peer access does not work "
      "(IOMMU or ACS): try NCCL_P2P_DISABLE=1; if that helps, switch the IOMMU (iommu=pt) or "
      "ACS off, and see p2pBandwidthLatencyTest. Missing: the calls "
      "(NCCL_DEBUG_SUBSYS=INIT,COLL), and whether it hangs"};
}

}  // namespace commlens
