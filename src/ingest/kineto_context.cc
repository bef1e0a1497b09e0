// Problem: which module launched the longest kernel of the critical path? Host ranges are most of a
// trace and no other analysis wants them, so the first pass does not keep them. Method: a second
// pass with the few instants that are asked for; a range that holds one of them, on its thread, is
// compared with the innermost so far.
//
//   {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 12.5, "dur": 8.25}
//   {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_3", ...}
//   {"ph": "X", "cat": "user_annotation", "name": "## forward ##", ...}
//
// When it is wrong: text behind damage is not looked at.
#include "ingest/kineto_context.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/decimal.h"
#include "ingest/json_scan.h"
#include "ingest/window.h"
#include "ingest/witness_secrets.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestName = 160;

// One complete event, as far as it matters here.
struct Range {
  std::string_view category;
  std::string_view name;
  Token ts;
  Token dur;
  std::optional<std::int64_t> thread;
  bool complete = false;  // ph is "X"
};

// An instant with the lengths of the innermost ranges so far.
struct Wanted {
  CallPlace place;
  std::size_t row = 0;
  Ns operation = std::numeric_limits<Ns>::max();
  Ns module = std::numeric_limits<Ns>::max();
  Ns function = std::numeric_limits<Ns>::max();
  Ns annotation = std::numeric_limits<Ns>::max();
};

bool is_operation(std::string_view category) {
  return category == "cpu_op" || category == "Operator" || category == "cpu_op,operator";
}

void take(std::string& to, Ns& best, Ns length, std::string_view name) {
  if (length >= best) return;
  best = length;
  to = unescaped(name);
  if (to.size() <= kLongestName) return;
  std::size_t cut = kLongestName;
  while (cut > 0 && (static_cast<unsigned char>(to[cut]) & 0xC0U) == 0x80U) --cut;
  to.resize(cut);
}

class ContextFinder {
 public:
  explicit ContextFinder(std::span<const CallPlace> places) : found_(places.size()) {
    for (std::size_t i = 0; i < places.size(); ++i)
      wanted_.push_back({.place = places[i], .row = i});
    std::sort(wanted_.begin(), wanted_.end(),
              [](const Wanted& a, const Wanted& b) { return a.place.time < b.place.time; });
  }

  void look_at(const Range& range) {
    if (!range.complete || !range.thread) return;
    const auto start = microseconds_to_ns(range.ts.text);
    const auto length = microseconds_to_ns(range.dur.text);
    if (!start || !length || *length < 0 || *start > std::numeric_limits<Ns>::max() - *length)
      return;
    auto at = std::lower_bound(wanted_.begin(), wanted_.end(), *start,
                               [](const Wanted& w, Ns time) { return w.place.time < time; });
    for (; at != wanted_.end() && at->place.time < *start + std::max<Ns>(1, *length); ++at) {
      if (at->place.thread == *range.thread) hold(range, *length, *at);
    }
  }

  std::vector<CallContext> done() { return std::move(found_); }

 private:
  void hold(const Range& range, Ns length, Wanted& wanted) {
    CallContext& context = found_[wanted.row];
    if (is_operation(range.category)) {
      if (range.name != "record_param_comms")
        take(context.operation, wanted.operation, length, range.name);
    } else if (range.category == "python_function") {
      if (range.name.starts_with("nn.Module: "))
        take(context.module, wanted.module, length, range.name);
      else if (!range.name.starts_with("<built-in"))
        take(context.function, wanted.function, length, range.name);
    } else if (range.category == "user_annotation") {
      if (!range.name.starts_with("ProfilerStep#") && !range.name.starts_with("nccl:"))
        take(context.annotation, wanted.annotation, length, range.name);
    }
  }

  std::vector<CallContext> found_;
  std::vector<Wanted> wanted_;  // by time
};

// The value of a key that matters.
void set_member(std::string_view key, const Token& value, Range& range) {
  if (key == "ph") range.complete = value.text == "X";
  if (key == "cat" && value.kind == TokenKind::string) range.category = value.text;
  if (key == "name" && value.kind == TokenKind::string) range.name = value.text;
  if (key == "ts") range.ts = value;
  if (key == "dur") range.dur = value;
  if (key == "tid") range.thread = parse_int(value.text);
}

class ContextReader {
 public:
  explicit ContextReader(Source& source) : window_(source, {}) {}

  void read(ContextFinder& finder) {
    if (!find_events()) return;
    while (next_event()) {
      Range range;
      if (!read_event(range)) return;
      finder.look_at(range);
      window_.use(behind_);
    }
  }

 private:
  // To the byte behind the bracket that opens the list.
  bool find_events() {
    constexpr std::string_view kKey = "\"traceEvents\"";
    for (;;) {
      const std::string_view text(window_.begin(), window_.size());
      const std::size_t key = text.find(kKey);
      const std::size_t open = key == std::string_view::npos ? key : text.find('[', key);
      if (open != std::string_view::npos) {
        window_.use(window_.begin() + static_cast<std::ptrdiff_t>(open) + 1);
        return true;
      }
      // What was looked at is let go, but for the beginning of a key at its end.
      if (key == std::string_view::npos && text.size() > kKey.size())
        window_.use(window_.end() - static_cast<std::ptrdiff_t>(kKey.size()));
      if (!window_.refill()) return false;
    }
  }

  // To the next event's `{`; false where the list ends.
  bool next_event() {
    for (;;) {
      const char* at = window_.begin();
      while (at < window_.end() && (*at == ',' || static_cast<unsigned char>(*at) <= ' ')) ++at;
      window_.use(at);
      if (at < window_.end()) return *at == '{';
      if (!window_.refill()) return false;
    }
  }

  // Views in `range` are valid until the window moves.
  bool read_event(Range& range) {
    for (;;) {
      range = {};
      Walker walker(window_.begin() + 1, window_.end());
      std::string_view key;
      while (walker.next_key(key)) {
        const Token value = walker.value();
        if (walker.state() == Scan::ok) set_member(key, value, range);
      }
      behind_ = walker.at();
      if (walker.state() == Scan::ok) return true;
      if (walker.state() == Scan::bad || !window_.refill()) return false;
    }
  }

  Window window_;
  const char* behind_ = nullptr;
};

}  // namespace

std::vector<CallContext> read_kineto_contexts(Source& source, std::span<const CallPlace> places) {
  ContextFinder finder(places);
  ContextReader(source).read(finder);
  std::vector<CallContext> contexts = finder.done();
  // What users wrote. Operations are the framework's.
  for (CallContext& context : contexts) {
    for (std::string* text : {&context.module, &context.function, &context.annotation})
      *text = without_secrets(*text);
  }
  return contexts;
}

}  // namespace commlens
