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
  return subject(straggler) + " made the others wait " + duration(straggler.per_step) +
         " per step on average (" + number("%.1f %%", 100 * straggler.share) +
         " of the GPU time): ";
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
      return "its GPU was idle with nothing queued (or copied) for " + duration(evidence.own) +
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
             : std::string("its kernels are as fast as elsewhere: it has more to do");
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
  const char* what = straggler.cause == Cause::host        ? "were late on the host"
                     : straggler.cause == Cause::imbalance ? "had more to exchange"
                                                           : "took longer to compute";
  return opening(straggler) + "all its " + std::to_string(ranks) + " ranks " + what +
         " than those of other hosts with the same work" + closing(straggler, steps);
}

std::string describe_link(const Straggler& straggler, double pace, std::size_t steps) {
  return opening(straggler) + "transfers over it take " + number("%.2fx", pace) +
         " those of its like at the same size" + closing(straggler, steps);
}

std::string describe_group(const Straggler& straggler, const LinkGroup& link) {
  return "transfers in the group of ranks " + format_ranks(link.ranks) + " take " +
         number("%.2fx", link.pace) + " those of its like and made others wait " +
         duration(straggler.per_step) +
         " per step: which of its links is slow cannot be told from one group; point-to-point "
         "traffic, another group over some of its ranks, or nccl-tests between pairs would tell";
}

}  // namespace commlens
