// The sentence that goes with a verdict: who, how much, why, how often, how surely.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "match/slow_links.h"
#include "model/stragglers.h"

namespace commlens {

// What a rank's own time shows, per step in which it shows.
struct RankEvidence {
  Cause cause = Cause::compute;
  Ns own = 0;                  // compute, or host idle; of imbalance: bytes
  Ns usual = 0;                // the median of its peers
  std::optional<double> pace;  // of its kernels against the same kernels elsewhere
  bool more_kernels = false;   // than its peers
  bool has_peers = false;
  std::string peers;  // the group that they share
};

// `steps` is how many were looked at.
std::string describe(const Straggler& straggler, const RankEvidence& evidence, std::size_t steps);
std::string describe_host(const Straggler& straggler, std::size_t ranks, std::size_t steps);
// Of one whose delay a later rank hides.
std::string describe_hidden(const Straggler& straggler, const RankEvidence& evidence);
std::string describe_link(const Straggler& straggler, double pace, std::size_t steps);
// Of a group of more than two ranks: which link is slow cannot be told.
std::string describe_group(const Straggler& straggler, const LinkGroup& link);

// `share` of the GPU time is waiting whose order is not known, or of longer transfers.
std::string describe_undecided(double share, const Job& job);
std::string describe_unattributed(double share, const Job& job);
std::string describe_open_links(double share, const Job& job);
// Of exposed transfers that one group alone makes.
std::string describe_lone_transfers(double share, const std::string& group);

}  // namespace commlens
