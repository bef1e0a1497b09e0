#include "match/straggler_words.h"

#include <algorithm>
#include <cstdio>

#include "model/rank_list.h"

namespace commlens {
namespace {

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string duration(Ns time) {
  const auto value = static_cast<double>(time);
  if (time < 1'000'000) return number("%.1f us", value / 1e3);
  if (time < 10'000'000'000) return number("%.1f ms", value / 1e6);
  return number("%.2f s", value / 1e9);
}

std::string subject(const Straggler& straggler) {
  if (straggler.rank) return "rank " + std::to_string(*straggler.rank);
  if (!straggler.host.empty()) return "host " + straggler.host;
  return "the link between ranks " + std::to_string(straggler.link[0]) + " and " +
         std::to_string(straggler.link[1]);
}

std::string opening(const Straggler& straggler) {
  const std::string when = straggler.steps.empty() ? ""
                           : straggler.burst       ? " in such a step"
                                                   : " per step";
  return subject(straggler) + " made each of the others wait " + duration(straggler.per_step) +
         when + " on average (" + number("%.1f %%", 100 * straggler.share) + " of all GPU time): ";
}

std::string times(Ns own, Ns usual) {
  return number("%.2fx", static_cast<double>(own) / static_cast<double>(std::max<Ns>(1, usual)));
}

std::string reason(const RankEvidence& evidence) {
  const std::string peers = evidence.has_peers && !evidence.peers.empty()
                                ? "the median of its peers in " + evidence.peers
                                : "the median of the other ranks";
  switch (evidence.cause) {
    case Cause::host:
      return "its GPU was idle with nothing queued, or copied, for " + duration(evidence.own) +
             " a step, " + peers + " for " + duration(evidence.usual);
    case Cause::imbalance:
      return "it exchanged " + times(evidence.own, evidence.usual) + " the bytes of " + peers;
    case Cause::link: return "its transfers take longer";
    case Cause::compute: break;
  }
  const bool slow = evidence.pace && *evidence.pace >= 1.02;
  const std::string pace =
      !evidence.pace ? std::string()
      : slow ? "the same kernels take " + number("%.2fx", *evidence.pace) + " as long as elsewhere"
      : evidence.more_kernels
          ? std::string("its kernels are as fast as elsewhere: it has more to do")
          : std::string("its kernels are no more than elsewhere, and most of them as fast");
  if (!evidence.has_peers) return pace;
  return "its compute takes " + times(evidence.own, evidence.usual) + " " + peers +
         (pace.empty() ? "" : " (" + pace + ")");
}

std::string closing(const Straggler& straggler, std::size_t steps) {
  std::string seen = "; ";
  if (straggler.steps.empty()) {
    seen += "over the whole window";
  } else {
    seen += "seen in " + std::to_string(straggler.steps.size()) + " of " + std::to_string(steps) +
            (steps == 1 ? " step" : " steps");
    if (straggler.burst) seen += " (" + format_ranks(straggler.steps) + "), a burst";
  }
  std::string sure = std::string(confidence_name(straggler.confidence));
  if (straggler.confidence == Confidence::undecidable)
    sure +=
        ": the clocks of these ranks are not known well enough (name the hosts with --hosts, or "
        "record more operations that all ranks share)";
  return seen + "; " + sure;
}

}  // namespace

std::string describe(const Straggler& straggler, const RankEvidence& evidence, std::size_t steps) {
  return opening(straggler) + reason(evidence) + closing(straggler, steps);
}

std::string describe_host(const Straggler& straggler, std::size_t ranks, std::size_t steps) {
  const char* what = straggler.cause == Cause::host ? "were idle with nothing queued for longer"
                     : straggler.cause == Cause::imbalance ? "had more to exchange"
                                                           : "took longer to compute";
  return opening(straggler) + "all its " + std::to_string(ranks) + " ranks " + what +
         " than those of other hosts with the same work" + closing(straggler, steps);
}

std::string describe_hidden(const Straggler& straggler, const RankEvidence& evidence) {
  return subject(straggler) + " is late by " + duration(straggler.per_step) +
         " a step, which waiting does not show: " + reason(evidence);
}

std::string describe_link(const Straggler& straggler, double pace, std::size_t steps) {
  return opening(straggler) +
         (straggler.rank ? "all its transfers take " : "transfers over it take ") +
         number("%.2fx", pace) + " as long as other links' at the same size" +
         closing(straggler, steps);
}

std::string describe_group(const Straggler& straggler, const LinkGroup& link) {
  return "transfers in the group of ranks " + format_ranks(link.ranks) + " take " +
         number("%.2fx", link.pace) +
         " as long as those of other groups at the same size and made each of the others wait " +
         duration(straggler.per_step) +
         " per step: which of its links is slow cannot be told from one group; point-to-point "
         "traffic, another group over some of its ranks, or nccl-tests between pairs would tell";
}

std::string describe_undecided(double share, const Job& job) {
  std::string missing;
  const auto add = [&missing](const std::string& what) {
    missing += (missing.empty() ? "" : "; ") + what;
  };
  if (job.matching.partial > 0)
    add(std::to_string(job.matching.partial) +
        " operations lack a member's trace, which may have come last (give the traces of all "
        "ranks)");
  const auto unsure = std::count_if(job.matching.ops.begin(), job.matching.ops.end(),
                                    [](const MatchedOp& op) { return !op.sure; });
  if (unsure > 0)
    add(std::to_string(unsure) +
        " operations could be matched in another way (record metadata, with PyTorch 2.4 or newer)");
  add("where clocks differ, the order of ranks is known only beyond their uncertainty (name the "
      "hosts with --hosts)");
  return "Undecidable who makes the others wait: the order of ranks is not known for waiting of " +
         number("%.1f %%", 100 * share) + " of the GPU time: " + missing;
}

std::string describe_unattributed(double share, const Job& job) {
  const auto most =
      std::max_element(job.waits.by_rank.begin(), job.waits.by_rank.end(),
                       [](const RankWaits& a, const RankWaits& b) { return a.caused < b.caused; });
  const auto rank = static_cast<std::size_t>(most - job.waits.by_rank.begin());
  const double part =
      static_cast<double>(most->caused) / static_cast<double>(std::max<Ns>(1, job.waits.total));
  return "Nobody can be named, although waiting of " + number("%.1f %%", 100 * share) +
         " of the GPU time has no known origin: rank " + std::to_string(job.ranks[rank].rank) +
         " was the last for " + number("%.0f %%", 100 * part) +
         " of all waiting, but why is not known";
}

std::string describe_open_links(double share, const Job& job) {
  const bool hosts = std::none_of(job.ranks.begin(), job.ranks.end(),
                                  [](const RankTimeline& rank) { return rank.host.empty(); });
  return "Longer transfers made others wait for " + number("%.1f %%", 100 * share) +
         " of the GPU time, but no link can be named: " +
         (hosts ? "there is no other link of the same kind to compare with, or the waiting does "
                  "not recur"
                : "which ranks share a host is not known (name the hosts with --hosts)");
}

std::string describe_lone_transfers(double share, const std::string& group) {
  return "Exposed transfers take " + number("%.1f %%", 100 * share) +
         " of the GPU time, and no other group is like " + group +
         ": whether one of its links is slow cannot be told from these traces (compare its "
         "bandwidth with what the links can do: --peak, --calibrate)";
}

}  // namespace commlens
