// What could be changed about a run, and what that would gain (docs/advice.md).
//
// advice/ fills this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/stragglers.h"

namespace commlens {

// By what it would gain of a step.
enum class FindingSeverity : std::uint8_t {
  high,    // a tenth and more
  medium,  // a thirtieth and more
  low,
};
std::string_view severity_name(FindingSeverity severity);

// In front of the reason why a replay of the whole run is doubtful; it ends the evidence.
inline constexpr std::string_view kDoubtWords = "; what it would gain is doubtful: ";

struct Finding {
  std::string id;  // "slow_rank", "synchronisation", ...: what kind it is
  FindingSeverity severity = FindingSeverity::low;
  Confidence confidence = Confidence::undecidable;
  std::string title;     // what is the case, in one sentence with its figure
  std::string evidence;  // how that was measured; where undecidable, what is missing
  std::string advice;    // what to do, in the framework's terms
  // What a step would be shorter by with this and every finding before it carried out, less what
  // those gain: all findings together never claim more than the step.
  Ns recoverable = 0;
  Ns alone = 0;  // the same, if nothing else were changed
};

struct Findings {
  bool known = false;         // false: the run cannot be replayed
  std::vector<Finding> rows;  // the largest gain first
  Ns step = 0;                // that gains are parts of
  std::int64_t left_out = 0;  // found as well, of less worth than those in `rows`
};

}  // namespace commlens
