// Sends and receives that were called one by one and launched together.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/job.h"

namespace commlens {

class GroupedCalls {
 public:
  // Needs the launches and classes of `rank`.
  explicit GroupedCalls(const RankTimeline& rank);

  // The records (rows of the host ranges) of sends and receives that one launch carried out, in
  // order. Empty where there are none, or where that cannot be told.
  std::span<const std::uint32_t> of_launch(std::size_t launch) const;

 private:
  enum class Started : std::uint8_t;
  struct Event;
  void walk(const Recording& recording, const std::vector<Event>& events,
            const std::vector<Started>& started);
  void keep(std::size_t launch, const std::vector<std::uint32_t>& records);

  std::vector<std::uint32_t> records_;
  std::unordered_map<std::size_t, std::pair<std::size_t, std::size_t>>
      of_launch_;  // [first, last) of these
};

}  // namespace commlens
