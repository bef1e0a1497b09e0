// The pass itself: members of the top-level object are read whole, events one by one; what reaches
// beyond the window is read again after more was brought in. After damage, reading goes on at the
// next thing that begins like an event.
#include "ingest/kineto_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ingest/kineto_metadata.h"

namespace commlens {
namespace {

// First keys that an event's object may begin with; to find one's way back after damage.
constexpr std::array<std::string_view, 9> kEventKeys = {"\"ph\"",  "\"name\"", "\"cat\"",
                                                        "\"pid\"", "\"tid\"",  "\"ts\"",
                                                        "\"id\"",  "\"args\"", "\"dur\""};
// Members that follow or precede the events.
constexpr std::array<std::string_view, 8> kTopKeys = {"\"traceEvents\"",
                                                      "\"traceName\"",
                                                      "\"displayTimeUnit\"",
                                                      "\"baseTimeNanoseconds\"",
                                                      "\"distributedInfo\"",
                                                      "\"schemaVersion\"",
                                                      "\"INFO\"",
                                                      "\"deviceProperties\""};
// How far behind its start an event's damage may show and still be searched from its start.
constexpr std::ptrdiff_t kFarthestBack = 4096;
// More than any of these keys with blanks around it. Never more is looked at, so that the window's
// place does not matter.
constexpr std::ptrdiff_t kLookAhead = 256;
// How much of odd text is shown.
constexpr std::ptrdiff_t kExampleBytes = 100;

// Of an event's text its name, of a member's its key; else nothing.
std::string_view name_in(std::string_view text) {
  constexpr std::string_view kName = "\"name\"";
  const bool key = text.starts_with('"');
  const std::size_t name = text.find(kName);
  if (!key && name == std::string_view::npos) return {};
  const std::size_t from = key ? 0 : text.find_first_not_of(": \t", name + kName.size());
  if (from == std::string_view::npos || text[from] != '"') return {};
  const std::size_t end = text.find('"', from + 1);
  if (!key) return text.substr(from, end == std::string_view::npos ? end : end + 1 - from);
  // A string without a colon behind it is a value.
  const std::size_t colon =
      end == std::string_view::npos ? end : text.find_first_not_of(" \t\r\n", end + 1);
  if (colon == std::string_view::npos || text[colon] != ':') return {};
  return text.substr(0, end + 1);
}

template <std::size_t N>
bool begins_with_key(const char* at, const char* end, const std::array<std::string_view, N>& keys) {
  const std::string_view text(at, static_cast<std::size_t>(end - at));
  return std::any_of(keys.begin(), keys.end(),
                     [text](std::string_view key) { return text.starts_with(key); });
}

// Whether what follows a `]` is what follows the list of events: a top-level member or the end.
bool ends_events(const char* at, const char* end) {
  if (at == end) return true;
  if (*at == '}') return behind_blanks(at + 1, end) == end;
  return *at == ',' && begins_with_key(behind_blanks(at + 1, end), end, kTopKeys);
}

}  // namespace

bool begins_like_event(const char* at, const char* end) {
  return begins_with_key(at, end, kEventKeys);
}
bool begins_like_member(const char* at, const char* end) {
  return begins_with_key(at, end, kTopKeys);
}
bool holds_known_member(std::string_view text) {
  return std::any_of(kTopKeys.begin(), kTopKeys.end(), [text](std::string_view key) {
    return text.find(key) != std::string_view::npos;
  });
}

// Unused bytes from `at` on, at least `wanted` of them unless the source ends.
const char* KinetoReader::ensure(const char* at, std::ptrdiff_t wanted) {
  window_.use(at);
  while (window_.end() - window_.begin() < wanted && window_.refill()) {
  }
  return window_.begin();
}

void KinetoReader::begin_document() {
  const char* at = ensure(window_.begin(), 4);
  if (window_.size() >= 3 && std::memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3;  // a byte-order mark
  at = next_byte(at);
  if (at == nullptr) return;
  // Chrome's other form: the array of events alone.
  place_ = *at == '[' ? Place::events : Place::top;
  saw_events_ = *at == '[';
  bare_array_ = saw_events_;
  window_.use(at + 1);
}

// The next byte that is neither blank nor comma, with refills; null at the end of the source.
const char* KinetoReader::next_byte(const char* at) {
  // What stands between two events nearly always; zeros stand behind the text.
  if (std::memcmp(at, ",\n  {", 5) == 0) {
    ++commas_;
    return at + 4;
  }
  for (;;) {
    while (at < window_.end() && (is_blank(*at) || *at == ',')) {
      commas_ += *at == ',' ? 1 : 0;
      ++at;
    }
    if (at < window_.end()) return at;
    window_.use(at);
    if (!window_.refill()) return nullptr;
    at = window_.begin();
  }
}

void KinetoReader::read_head() {
  begin_document();
  while (place_ == Place::top) read_member();
}

void KinetoReader::find_first_event(const KinetoReader& before) {
  resume_events(before);
  find_next_event(window_.begin());
}

void KinetoReader::read_until(std::int64_t limit) {
  at_limit_ = false;
  while (place_ != Place::done && !at_limit_) {
    if (place_ == Place::events) {
      read_events(limit);
    } else {
      read_member();
    }
  }
  if (place_ == Place::done) note_end_of_source();
}

void KinetoReader::read_events(std::int64_t limit) {
  bool first = true;
  while (place_ == Place::events) {
    commas_ = 0;
    const char* at = next_byte(window_.begin());
    if (at == nullptr) return stop_early();
    const std::int64_t due = first || *at == ']' ? 0 : 1;
    if (commas_ > due) builder_.notes().add(Note::extra_comma, commas_ - due);
    first = false;
    if (window_.offset(at) >= limit) {
      at_limit_ = true;
      return window_.use(at);
    }
    if (*at == ']') {
      window_.use(at + 1);
      place_ = bare_array_ ? Place::done : Place::top;
      return;
    }
    if (*at == '{') {
      read_event(at);
    } else {
      read_stray_value(at);
    }
  }
}

// One event; `at` is its `{`.
void KinetoReader::read_event(const char* at) {
  for (;;) {
    const char* inside = at + 1;
    switch (events_.read(inside, window_.end(), window_.offset(at))) {
      case Scan::ok: ++builder_.about().events; return window_.use(inside);
      case Scan::bad: {
        const std::ptrdiff_t damage = inside - at;
        window_.use(at);
        builder_.notes().add(Note::malformed_event, example());
        // Damage that shows late may have swallowed other events, so looking for the next begins
        // behind this one's start; but not when that would mean reading far back again and again.
        return find_next_event(window_.begin() + (damage > kFarthestBack ? damage : 1));
      }
      case Scan::need_more: break;
    }
    window_.use(at);
    if (window_.refill()) {
      at = window_.begin();
      continue;
    }
    if (!window_.full()) return stop_early();
    builder_.notes().add(Note::oversized_event, example());
    return pass_over_container();
  }
}

// Something in the list of events that is no object: passed over as one value.
void KinetoReader::read_stray_value(const char* at) {
  for (;;) {
    Walker walker(at, window_.end());
    walker.skip_value();
    window_.use(at);
    if (walker.state() == Scan::ok) {
      const std::ptrdiff_t length = walker.at() - at;
      builder_.notes().add(Note::not_an_event, example());
      return window_.use(window_.begin() + length);
    }
    if (walker.state() == Scan::bad) {
      builder_.notes().add(Note::malformed_event, example());
      return find_next_event(window_.begin() + 1);
    }
    if (window_.refill()) {
      at = window_.begin();
      continue;
    }
    if (!window_.full()) return stop_early();
    builder_.notes().add(Note::oversized_event, example());
    return *window_.begin() == '[' ? pass_over_container() : pass_over_string();
  }
}

// The container at the window's begin is larger than any window: pass over it piece by piece.
void KinetoReader::pass_over_container() {
  ContainerSkipper skipper;
  const char* at = window_.begin() + 1;
  for (;;) {
    const Scan scan = skipper.feed(at, window_.end());
    if (scan == Scan::ok) return window_.use(at);
    if (scan == Scan::bad) return find_next(at);
    window_.use(at);
    if (!window_.refill()) return stop_early();
    at = window_.begin();
  }
}

void KinetoReader::pass_over_string() {
  const char* at = *window_.begin() == '"' ? window_.begin() + 1 : window_.begin();
  for (;;) {
    Scan state = Scan::ok;
    bool escaped = false;
    if (const char* close = find_string_end(at, window_.end(), state, escaped))
      return window_.use(close + 1);
    if (state == Scan::bad) return find_next(at);
    // A backslash may stand at the very end: the byte behind it belongs to it. One of a pair is
    // closed.
    const char* unpaired = window_.end();
    while (unpaired > at && unpaired[-1] == '\\') --unpaired;
    window_.use(window_.end() - (window_.end() - unpaired) % 2);
    if (!window_.refill()) return stop_early();
    at = window_.begin();
  }
}

void KinetoReader::find_next(const char* at) {
  place_ == Place::events ? find_next_event(at) : find_next_member(at);
}

// After damage: on at the next object that begins like an event, or where the list of events
// ends.
void KinetoReader::find_next_event(const char* at) {
  for (;;) {
    at = std::find_if(at, window_.end(), [](char c) { return c == '{' || c == ']'; });
    at = ensure(at, kLookAhead);
    if (at == window_.end()) return stop_early();
    const char* end = at + std::min<std::ptrdiff_t>(window_.end() - at, kLookAhead);
    const char* next = behind_blanks(at + 1, end);
    if (*at == '{' && begins_like_event(next, end)) return window_.use(at);
    if (*at == ']' && ends_events(next, end)) return window_.use(at);
    ++at;
  }
}

// After damage outside the events: on at the next member that is known by name.
void KinetoReader::find_next_member(const char* at) {
  for (;;) {
    at = std::find(at, window_.end(), '"');
    at = ensure(at, kLookAhead);
    if (at == window_.end()) {
      place_ = Place::done;
      return;
    }
    if (begins_with_key(at, window_.end(), kTopKeys)) return window_.use(at);
    ++at;
  }
}

// One member of the top-level object.
void KinetoReader::read_member() {
  const char* at = next_byte(window_.begin());
  if (at == nullptr) return stop_early();
  if (*at == '}') {
    window_.use(at + 1);
    place_ = Place::done;
    return;
  }
  for (;;) {
    window_.use(at);
    Walker walker(at, window_.end());
    std::string_view key;
    bool complete = walker.next_key(key);
    if (complete && key == "traceEvents" && *walker.at() == '[') {
      saw_events_ = true;
      place_ = Place::events;
      return window_.use(walker.at() + 1);
    }
    const char* value_at = walker.at();
    const Token value = complete ? walker.value() : Token{};
    if (complete && walker.state() == Scan::ok) {
      if (key == "traceEvents")
        builder_.notes().add(Note::malformed_metadata, "\"traceEvents\" is no array");
      read_kineto_metadata(key, value, builder_.about(), builder_.notes());
      return window_.use(walker.at());
    }
    if (walker.state() == Scan::bad) {
      builder_.notes().add(Note::malformed_metadata, example());
      return find_next_member(window_.begin() + 1);
    }
    if (window_.refill()) {
      at = window_.begin();
      continue;
    }
    if (!window_.full()) return stop_early();
    builder_.notes().add(Note::malformed_metadata, "a value of more than 8 MiB: " + example());
    if (!complete) return find_next_member(window_.begin() + 1);
    window_.use(window_.begin() + (value_at - at));
    return *window_.begin() == '"' ? pass_over_string() : pass_over_container();
  }
}

void KinetoReader::stop_early() {
  place_ = Place::done;
  stopped_early_ = true;
  // What is left unused is part of an event that was never finished.
  window_.use(window_.end());
}

void KinetoReader::note_end_of_source() {
  // Read on to the end, so that a fault of the compressed stream behind the last event is seen
  // too.
  while (source_.end() == SourceEnd::not_yet) {
    window_.use(window_.end());
    window_.refill();
  }
  Notes& notes = builder_.notes();
  const std::string where =
      "at byte " + std::to_string(window_.offset(window_.end())) + " of the text";
  switch (source_.end()) {
    case SourceEnd::truncated: return notes.add(Note::truncated, where + ": " + source_.trouble());
    case SourceEnd::corrupt:
      return notes.add(Note::corrupt_compression, where + ": " + source_.trouble());
    case SourceEnd::failed: return notes.add(Note::read_failed, where + ": " + source_.trouble());
    case SourceEnd::complete:
    case SourceEnd::not_yet: break;
  }
  if (stopped_early_) notes.add(Note::truncated, where);
}

// Where the unused text stands, and of which name or key it is. No more of it is shown: arguments
// and metadata can hold secrets.
std::string KinetoReader::example() {
  const char* at = ensure(window_.begin(), kExampleBytes);
  const auto length =
      static_cast<std::size_t>(std::min<std::ptrdiff_t>(window_.end() - at, kExampleBytes));
  const std::string_view words = name_in({at, length});
  return "at byte " + std::to_string(window_.offset(at)) +
         (words.empty() ? "" : ": " + std::string(words));
}

}  // namespace commlens
