// The critical path in a timeline: a track on each rank that it passes, and an arrow wherever it
// goes on to another rank.
//
//   rank 0   critical path  |= compute =|                  |= transfer =|
//                                        \                /
//   rank 1   critical path                |= compute ====|
#pragma once

#include <cstdint>
#include <vector>

#include "model/job.h"
#include "report/timeline_names.h"
#include "report/timeline_out.h"
#include "report/timeline_placement.h"

namespace commlens {

class PathTracks {
 public:
  PathTracks(const Job& job, const Placements& places);

  // The track of a rank (row) in a process; none where the path does not pass it, or where its
  // clock has no place among the others'.
  void write(std::size_t row, std::int64_t process, RankNames& names, TimelineOut& out) const;

 private:
  bool has_track(std::size_t row) const;
  void number_arrows();
  Ns own(const PathSegment& segment, Ns common) const;

  const Job& job_;
  const Placements& places_;
  std::vector<std::vector<std::uint32_t>> segments_;  // by row, in time
  std::vector<std::int64_t> arrows_;  // by segment: the arrow to it from the one before; 0: none
};

}  // namespace commlens
