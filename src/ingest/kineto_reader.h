// The pass over one Kineto file, or over a piece of it.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "ingest/format.h"
#include "ingest/kineto_event.h"
#include "ingest/window.h"

namespace commlens {

// What JSON calls white space.
constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline const char* behind_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

// Keys that an event's object may begin with, in quotes; to tell a trace by and to find one's way
// back after damage.
bool begins_like_event(const char* at, const char* end);
// The same for members of the top-level object; and whether a text holds any of them.
bool begins_like_member(const char* at, const char* end);
bool holds_known_member(std::string_view text);

class KinetoReader {
 public:
  static constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

  // Reads from `source`, of which `head` was the last that was taken.
  KinetoReader(Source& source, std::string_view head, const ReadOptions& options,
               TraceBuilder& builder)
      : source_(source), window_(source, head), builder_(builder), events_(builder, options) {}

  // Reads what stands before the events; `position` is then at the first.
  void read_head();
  // Takes what follows for the middle of the list of events that `before` reads: on to the first
  // that begins there.
  void find_first_event(const KinetoReader& before);
  // Takes what follows for a place between two events of that list.
  void resume_events(const KinetoReader& before) {
    place_ = Place::events;
    bare_array_ = before.bare_array_;
  }
  // Reads up to the first event that begins at `limit` or behind it; to the end of everything where
  // none does.
  void read_until(std::int64_t limit);

  // Where the next unread entry begins, as an offset in the text.
  std::int64_t position() const { return window_.offset(window_.begin()); }
  bool at_end() const { return place_ == Place::done; }
  bool saw_events() const { return saw_events_; }

 private:
  enum class Place : std::uint8_t { top, events, done };

  const char* ensure(const char* at, std::ptrdiff_t wanted);
  const char* next_byte(const char* at);
  void begin_document();
  void read_events(std::int64_t limit);
  void read_event(const char* at);
  void read_stray_value(const char* at);
  void read_member();
  void pass_over_container();
  void pass_over_string();
  void find_next(const char* at);
  void find_next_event(const char* at);
  void find_next_member(const char* at);
  void stop_early();
  void note_end_of_source();
  std::string example();

  Source& source_;
  Window window_;
  TraceBuilder& builder_;
  KinetoEvents events_;
  Place place_ = Place::top;
  bool saw_events_ = false;
  bool bare_array_ = false;
  bool stopped_early_ = false;
  bool at_limit_ = false;
  std::int64_t commas_ = 0;
};

}  // namespace commlens
