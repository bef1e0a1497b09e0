// Who waited for whom, and where that came from.
//
// match/waiting and match/origin fill this. Times are nanoseconds; "row" is a row of Job::ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "model/matching.h"

namespace commlens {

// Waiting counted in four ways, each a part of the one before it.
struct WaitSums {
  Ns total = 0;    // all of it
  Ns exposed = 0;  // outside the waiter's own compute: what costs time
  Ns likely = 0;   // of the exposed: beyond the scatter of the clocks' estimates
  Ns certain = 0;  // of the exposed: for every assignment of clocks that causality allows
  WaitSums& operator+=(const WaitSums& other) {
    total += other.total;
    exposed += other.exposed;
    likely += other.likely;
    certain += other.certain;
    return *this;
  }
};

// Why a rank was late.
enum class Cause : std::uint8_t {
  compute,    // its own kernels took longer
  host,       // its GPU was idle with nothing queued, or copied memory
  link,       // its transfers took longer
  imbalance,  // it had more bytes to move
};
inline constexpr int kCauseCount = static_cast<int>(Cause::imbalance) + 1;
std::string_view cause_name(Cause cause);

// Where waiting came from: a rank, or the links of one group (a pair for point-to-point).
struct Origin {
  std::uint32_t rank = 0;  // row; of Cause::link: a rank whose transfer took longer
  Cause cause = Cause::compute;
  std::int32_t group = -1;  // of Cause::link: row of Matching::groups; else -1
  std::int64_t step = -1;   // number of the step in which it was late; -1: outside steps
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

// One communication's wait.
struct Wait {
  Ns wait = 0;
  Ns exposed = 0;
  bool known = false;      // matched with all members, and semantics known: `wait` means something
  bool estimated = false;  // known, and the clocks of all members are at least estimated
  bool likely = false;     // beyond the scatter of the clocks' estimates
  bool ordered = false;    // sign and culprit hold for every assignment of clocks inside the bounds
  bool certain = false;    // ordered, and nothing else is in doubt (a group that was inferred)
  Ns least_exposed = 0;    // of a certain one: the least it can be
  std::optional<Part> culprit;  // that was waited for; of several at once, the first
  Ns doubtful = 0;  // a sender's time before its receiver came: waiting or not, by buffers
};

struct RankWaits {
  Ns waited = 0;
  Ns exposed_waited = 0;
  Ns caused = 0;
  Ns originated = 0;
};

struct Waits {
  bool known = false;
  // [row][device][row of comm]; parallel to the timelines.
  std::vector<std::vector<std::vector<Wait>>> of;
  Ns total = 0;
  Ns undecidable = 0;
  Ns unattributed = 0;                                          // total - sum of originated
  std::vector<RankWaits> by_rank;                               // by row
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ns> blame;  // (waiter, culprit), rows
  std::map<Origin, WaitSums> origins;
  WaitSums unattributed_sums;
};

}  // namespace commlens
