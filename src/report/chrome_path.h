// The critical path in a timeline: a track on each rank that it passes, and an arrow wherever it
// goes on to another rank.
//
//   rank 0   critical path  |= compute =|                  |= transfer =|
//                                        \                /
//   rank 1   critical path                |= compute ====|
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/job.h"
#include "report/chrome_events.h"
#include "report/chrome_names.h"
#include "report/chrome_placement.h"

namespace commlens {

class PathTracks {
 public:
  explicit PathTracks(const Job& job);

  // The track of a rank (row) in a process; none where the path does not pass it, or where its
  // clock has no place among the others'.
  void write(std::size_t row, std::int64_t process, const Placement& place, RankNames& names,
             TraceEvents& events);
  // The arrows, when all ranks have their tracks.
  void write_arrows(TraceEvents& events) const;

 private:
  struct Track {
    std::int64_t process = 0;
    std::int64_t thread = 0;
    const Placement* place = nullptr;
  };

  Ns own(const PathSegment& segment, Ns common) const;

  const Job& job_;
  std::vector<std::vector<std::uint32_t>> segments_;  // by row, in time
  std::vector<std::optional<Track>> tracks_;          // by row
};

}  // namespace commlens
