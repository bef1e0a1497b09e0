// The formats in which a timeline can be written. What is on it is decided by others
// (report/timeline.h): a format only says which bytes stand for an event.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/sink.h"
#include "report/chrome_events.h"
#include "report/perfetto_events.h"
#include "report/timeline_event.h"

namespace commlens {

enum class TimelineFormat : std::uint8_t { chrome_json, perfetto };

class TimelineOut {
 public:
  // Threads are numbered from `first_thread`, which lies beyond all ids of processes: Perfetto
  // takes a thread with its process's id for its main thread, and once named threads by their id
  // alone. In its own format, tracks and processes share one space of numbers.
  TimelineOut(TimelineFormat format, Sink& sink, std::int64_t first_thread);
  TimelineOut(const TimelineOut&) = delete;
  TimelineOut& operator=(const TimelineOut&) = delete;
  ~TimelineOut() = default;

  TimelineTexts& texts() { return texts_; }
  // `origin`: the time of day of the moment 0, in nanoseconds since the epoch, where it is known.
  void begin(std::optional<Ns> origin);
  void end();
  // Both are shown in the order of their ids.
  void name_process(std::int64_t process, std::string_view name);
  std::int64_t open_thread(std::int64_t process, std::string_view name);  // its id
  // The slices of one thread come by time and do not overlap.
  void slice(const SliceEvent& event);

 private:
  TimelineTexts texts_;
  std::variant<ChromeEvents, PerfettoEvents> events_;
  std::int64_t next_thread_;
};

}  // namespace commlens
