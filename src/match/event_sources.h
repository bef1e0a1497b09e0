// Which work an event stands for.
#pragma once

#include <cstdint>
#include <vector>

#include "match/work_nodes.h"

namespace commlens {

// A stream that waits for an event, as recorded.
struct EventWait {
  std::uint64_t correlation = 0;  // of the call
  Ns start = 0;                   // of the call
  std::size_t stream = 0;         // that waits
  bool record_known = false;      // which call recorded the event
  std::vector<std::uint32_t> sources;
};

// An event recorded on a stream happens behind the last work launched there before, and behind
// what the stream had to wait for since then:
//
//   stream 20   |= transfer =|
//   stream 7    [waits for 20]  [event recorded]     no work in between: the event stands for the
//   stream 24                   waits for 7          transfer, and so does stream 24's wait
class EventSources {
 public:
  EventSources(const RankTimeline& rank, const WorkNodes& nodes);

  // The recorded waits of streams, in the order of their calls.
  const std::vector<EventWait>& waits() const { return waits_; }
  // What an event stands for that is recorded on a stream by a call (its correlation id and start).
  std::vector<std::uint32_t> of(std::size_t stream, std::uint64_t correlation, Ns start) const;

 private:
  const WorkNodes& nodes_;
  std::vector<EventWait> waits_;
  std::vector<std::vector<std::uint32_t>> by_stream_;  // rows of waits_, by the stream that waits
};

}  // namespace commlens
