// Who makes the others wait, why, and how surely.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "model/waits.h"

namespace commlens {

enum class Confidence : std::uint8_t {
  certain,      // for every assignment of clocks that causality allows
  likely,       // by the clocks' estimates, within their scatter
  undecidable,  // something points there, but what is named in `evidence` is missing
};
std::string_view confidence_name(Confidence confidence);

// Exactly one of `rank`, `link` and `host` is set.
struct Straggler {
  std::optional<std::int64_t> rank;
  std::vector<std::int64_t> link;  // two ranks, the lower first
  std::string host;
  Cause cause = Cause::compute;
  Ns originated = 0;      // exposed waiting of others that came from it, in the steps looked at
  double share = 0;       // of the GPU time of all ranks in these steps
  double recurrence = 0;  // in how many of these steps it was seen, 0 to 1
  bool burst = false;     // seen in less than half of them
  std::vector<std::int64_t> steps;  // in which it was seen
  Confidence confidence = Confidence::undecidable;
  std::string evidence;  // one sentence with the figures
  Ns per_step = 0;       // what it cost a rank in a step, on average
  // Of Cause::link: the groups that use it (rows of Matching::groups), and how many times as long
  // as other links' transfers theirs take.
  std::vector<std::int32_t> groups = {};
  double pace = 1;
};

struct Stragglers {
  bool known = false;           // false: waiting is not known
  std::vector<Straggler> rows;  // the costliest first
  // Ranks whose own time is longer than their peers', step by step, though no wait shows it: a
  // later rank is there, or communication is hidden. `per_step`: by how much longer; nothing
  // originated there.
  std::vector<Straggler> hidden;
  std::vector<std::int64_t> steps;       // that were looked at; empty: the recording has none
  std::optional<std::int64_t> left_out;  // the first step, where there are enough others
  std::vector<std::string> remarks;      // what was seen and cannot be pinned on anyone
};

}  // namespace commlens
