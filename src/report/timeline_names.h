// The names that a rank's slices repeat a million times, as texts of the timeline: looked up once
// each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/job.h"
#include "report/timeline_event.h"

namespace commlens {

class RankNames {
 public:
  RankNames(const RankTimeline& rank, TimelineTexts& texts);
  // A name, cut where it is very long; the empty text where there is none.
  TextId name(StringId id);
  // What a group's operations say about it.
  std::span<const Argument> group(std::int32_t index) const {
    return groups_[static_cast<std::size_t>(index)];
  }

 private:
  const StringPool& strings_;
  TimelineTexts& texts_;
  std::vector<std::optional<TextId>> names_;  // by StringId; none: not looked up yet
  std::vector<std::vector<Argument>> groups_;
};

}  // namespace commlens
