#include "report/timeline_out.h"

namespace commlens {
namespace {

std::variant<ChromeEvents, PerfettoEvents> events_of(TimelineFormat format, TimelineTexts& texts,
                                                     Sink& sink) {
  if (format == TimelineFormat::perfetto) return PerfettoEvents(texts, sink);
  return ChromeEvents(texts, sink);
}

}  // namespace

TimelineOut::TimelineOut(TimelineFormat format, Sink& sink, std::int64_t first_thread)
    : events_(events_of(format, texts_, sink)), next_thread_(first_thread) {}

void TimelineOut::begin(std::optional<Ns> origin) {
  std::visit([origin](auto& events) { events.begin(origin); }, events_);
}

void TimelineOut::end() {
  std::visit([](auto& events) { events.end(); }, events_);
}

void TimelineOut::name_process(std::int64_t process, std::string_view name) {
  std::visit([process, name](auto& events) { events.name_process(process, name); }, events_);
}

std::int64_t TimelineOut::open_thread(std::int64_t process, std::string_view name) {
  const std::int64_t thread = next_thread_++;
  std::visit([&](auto& events) { events.name_thread(process, thread, name); }, events_);
  return thread;
}

void TimelineOut::slice(const SliceEvent& event) {
  std::visit([&event](auto& events) { events.slice(event); }, events_);
}

}  // namespace commlens
