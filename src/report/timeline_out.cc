#include "report/timeline_out.h"

namespace commlens {

TimelineOut::TimelineOut(Sink& sink, std::int64_t first_thread)
    : events_(texts_, sink), next_thread_(first_thread) {}

void TimelineOut::begin(std::optional<Ns> origin) { events_.begin(origin); }

void TimelineOut::end() { events_.end(); }

void TimelineOut::name_process(std::int64_t process, std::string_view name) {
  events_.name_process(process, name);
}

std::int64_t TimelineOut::open_thread(std::int64_t process, std::string_view name) {
  const std::int64_t thread = next_thread_++;
  events_.name_thread(process, thread, name);
  return thread;
}

void TimelineOut::slice(const SliceEvent& event) { events_.slice(event); }

}  // namespace commlens
