// A kernel event as PyTorch's profiler writes it, shortened:
//
//   {
//     "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "pid": 0,
//     "tid": 24, "ts": 1030.500, "dur": 120.750, "args": {
//       "External id": 77,     of the host operation that launched it; old writers repeat the
//       correlation: a lie "device": 0, "context": 1, "stream": 24, "correlation": 900, "Collective
//       name": "allreduce", "dtype": "Float", "In msg nelems": 1048576, "Out msg nelems": 1048576,
//       "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"
//     }
//   },
//
// The order of the keys is the writer's habit, not a promise. `cat` decides: nine events in ten are
// left as soon as it is known. The GPU's `pid` is a device number and `tid` a stream; both may
// collide with a process's numbers.
#include "ingest/kineto_event.h"

#include <algorithm>
#include <cstring>

#include "ingest/kineto_names.h"

namespace commlens {
namespace {

// As much text as the beginning of an event needs, but for its name.
constexpr std::ptrdiff_t kRoom = 64;

// Passes over the first of these texts that stands at `at`.
template <std::size_t... N>
bool pass(const char*& at, const char (&... texts)[N]) {
  const auto pass_one = [&at](const char* text, std::size_t size) {
    const bool same = std::memcmp(at, text, size) == 0;
    if (same) at += size;
    return same;
  };
  return (pass_one(texts, N - 1) || ...);
}

// Passes over the rest of a string whose opening quote is behind `at`; false where it is damaged or
// cut.
bool pass_string(const char*& at, const char* end, Token& token) {
  Scan state = Scan::ok;
  bool escaped = false;
  const char* close = find_string_end(at, end, state, escaped);
  if (close == nullptr) return false;
  token.set(TokenKind::string, at, close, escaped);
  at = close + 1;
  return true;
}

}  // namespace

// Categories are compared without regard to case: their spelling changed over the years.
KinetoEvents::Category KinetoEvents::category_of(std::string_view name) {
  const Category as_written = category_in_lower_case(name);
  char lower[20];
  if (as_written != Category::ignored || name.size() > sizeof lower) return as_written;
  std::transform(name.begin(), name.end(), lower,
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return category_in_lower_case({lower, name.size()});
}

KinetoEvents::Category KinetoEvents::category_in_lower_case(std::string_view cat) {
  switch (cat.size()) {
    case 4: return cat == "user" ? Category::annotation : Category::ignored;
    case 5: return cat == "trace" ? Category::recording_span : Category::ignored;
    case 6:
      if (cat == "kernel") return Category::kernel;
      if (cat == "cpu_op") return Category::cpu_op;
      if (cat == "memcpy") return Category::memcpy;
      return cat == "memset" ? Category::memset : Category::ignored;
    case 7: return cat == "runtime" ? Category::runtime : Category::ignored;
    case 8:
      if (cat == "xpu_sync") return Category::sync;
      return cat == "operator" ? Category::cpu_op : Category::ignored;
    case 9: return cat == "cuda_sync" ? Category::sync : Category::ignored;
    case 10:
      if (cat == "xpu_driver") return Category::runtime;
      if (cat == "gpu_memcpy") return Category::memcpy;
      return cat == "gpu_memset" ? Category::memset : Category::ignored;
    case 11:
      return cat == "cuda_driver"   ? Category::runtime
             : cat == "xpu_runtime" ? Category::runtime
                                    : Category::ignored;
    case 12:
      return cat == "cuda_runtime"   ? Category::runtime
             : cat == "mtia_runtime" ? Category::runtime
                                     : Category::ignored;
    case 15: return cat == "user_annotation" ? Category::annotation : Category::ignored;
    case 19: return cat == "gpu_user_annotation" ? Category::gpu_annotation : Category::ignored;
    default: return Category::ignored;
  }
}

bool KinetoEvents::wanted_name(Category category, std::string_view name) const {
  switch (category) {
    case Category::runtime:
      return is_launch(name) || name.find("Synchronize") != std::string_view::npos ||
             name.find("StreamWaitEvent") != std::string_view::npos;
    case Category::cpu_op:
      return options_.host_compute || name == kRecordName ||
             is_host_backend(annotation_backend(name));
    case Category::annotation:
      return name.starts_with(kStepPrefix) || !annotation_backend(name).empty();
    case Category::gpu_annotation: return name.starts_with(kStepPrefix);
    default: return true;
  }
}

// False as soon as what is known of the event says that nothing will be read from it.
bool KinetoEvents::wanted(const Event& event) const {
  if (event.other_phase) return false;
  if (event.category == Category::ignored) return false;
  if (event.category == Category::unknown || event.name.kind == TokenKind::none) return true;
  return wanted_name(event.category, event.name.text);
}

bool KinetoEvents::reads_arguments(const Event& event) const {
  return event.category != Category::unknown && event.category != Category::annotation &&
         event.category != Category::gpu_annotation && event.category != Category::recording_span;
}

KinetoEvents::Key KinetoEvents::key_of(std::string_view key) {
  switch (key.size()) {
    case 2: return key == "ph" ? Key::ph : key == "ts" ? Key::ts : Key::other;
    case 3:
      switch (key[0]) {
        case 'c': return key == "cat" ? Key::cat : Key::other;
        case 'p': return key == "pid" ? Key::pid : Key::other;
        case 't': return key == "tid" ? Key::tid : Key::other;
        case 'd': return key == "dur" ? Key::dur : Key::other;
        default: return Key::other;
      }
    case 4: return key == "name" ? Key::name : key == "args" ? Key::args : Key::other;
    default: return Key::other;
  }
}

// Nearly every event begins with its phase, category and name, in one of three layouts. Told by
// comparing with all of them, that is a tenth of the work of walking there, and nine events in ten
// are left there. Null where the event begins otherwise; an event of another phase than "X" is
// ignored whatever its category.
const char* KinetoEvents::read_usual_head(const char* at, const char* end, Category& category) {
  if (end - at < kRoom || !pass(at, "\n    \"ph\": \"", "\"ph\":\"")) return nullptr;
  const bool letter = *at >= 'A' && *at <= 'z' && *at != '\\';
  if (!letter || at[1] != '"') return nullptr;
  if (*at != 'X') {
    category = Category::ignored;
    return at + 2;
  }
  at += 2;
  if (!pass(at, ", \"cat\": \"", ",\n    \"cat\": \"", ",\"cat\":\"")) return nullptr;
  if (pass(at, "python_function\"")) {  // most of most files
    category = Category::ignored;
    return at;
  }
  Token text;
  if (!pass_string(at, end, text) || text.escaped) return nullptr;
  category = category_of(text.text);
  return at;
}

// The name where it follows at once; otherwise `at` is left where it is.
bool KinetoEvents::read_usual_name(const char*& at, const char* end, Token& name) {
  const char* behind = at;
  if (end - at < kRoom || !pass(behind, ", \"name\": \"", ",\"name\":\"") ||
      !pass_string(behind, end, name))
    return false;
  at = behind;
  return true;
}

// The rest of an event of which nothing is read.
Scan KinetoEvents::pass_over(const char*& at, const char* end) {
  ContainerSkipper skipper;
  const Scan scan = skipper.feed(at, end);
  if (scan == Scan::ok && skipper.deep()) note_depth();
  return scan;
}

Scan KinetoEvents::read(const char*& at, const char* end, std::int64_t offset) {
  offset_ = offset;
  Category category = Category::unknown;
  const char* behind = read_usual_head(at, end, category);
  if (category == Category::ignored) return pass_over(at = behind, end);
  return read_members(at, end, behind, category);
}

// The event as far as anything of it is wanted; `behind` its usual head, where it has one.
Scan KinetoEvents::read_members(const char*& at, const char* end, const char* behind,
                                Category category) {
  const bool usual = behind != nullptr;
  Event event;
  event.category = category;
  if (usual && read_usual_name(behind, end, event.name) && !wanted(event))
    return pass_over(at = behind, end);
  Walker walker = usual ? Walker::behind_member(behind, end) : Walker(at, end);
  bool decided = false;
  const auto meaning_of = [](std::string_view key) { return static_cast<int>(key_of(key)); };
  KeyHabit& habit = usual ? habit_ : other_habit_;
  habit.restart();
  while (!decided) {
    const int meaning = habit.next(walker, meaning_of);
    if (meaning == KeyHabit::kEnd) break;
    const Key known = static_cast<Key>(meaning);
    read_member(known, walker, event);
    const bool may_decide = known == Key::cat || known == Key::ph || known == Key::name;
    decided = may_decide && walker.state() == Scan::ok && !wanted(event);
  }
  if (decided) walker.leave();
  at = walker.at();
  if (walker.state() != Scan::ok) return walker.state();
  note_oddities(walker);
  if (decided || event.category == Category::unknown) return Scan::ok;
  if (event.name.kind == TokenKind::none && !wanted_name(event.category, {})) return Scan::ok;
  if (event.args.kind == TokenKind::object && reads_arguments(event)) {
    Walker late(event.args.text.data() + 1, event.args.text.data() + event.args.text.size());
    read_arguments(late, event.category);
    if (late.state() != Scan::ok) {
      at = late.at();
      return Scan::bad;
    }
    note_oddities(late);
  } else if (!event.args_taken) {
    arguments_.clear();
  }
  const int duplicates =
      event.duplicate_keys + (reads_arguments(event) ? arguments_.duplicates() : 0);
  if (duplicates > 0)
    builder_.notes().add(Note::duplicate_key, "at byte " + std::to_string(offset_), duplicates);
  use(event);
  return Scan::ok;
}

void KinetoEvents::note_depth() {
  builder_.notes().add(Note::deep_nesting, "at byte " + std::to_string(offset_));
}

void KinetoEvents::note_oddities(const Walker& walker) {
  if (walker.deep()) note_depth();
  if (walker.surplus_commas() > 0) builder_.notes().add(Note::extra_comma, walker.surplus_commas());
  if (walker.odd_numbers() > 0) {
    builder_.notes().add(Note::not_a_number, "at byte " + std::to_string(offset_),
                         walker.odd_numbers());
  }
}

void KinetoEvents::read_member(Key key, Walker& walker, Event& event) {
  // The last of equal keys counts. They are noted when the event is whole: it may be read again.
  const auto take = [&](Token& token) {
    event.duplicate_keys += token.kind != TokenKind::none ? 1 : 0;
    walker.value(token);
  };
  switch (key) {
    case Key::ph: event.other_phase = walker.value().text != "X"; return;
    case Key::cat: {
      const Token cat = walker.value();
      event.category = category_of(text(cat));
      return;
    }
    case Key::name: return take(event.name);
    case Key::pid: return take(event.pid);
    case Key::tid: return take(event.tid);
    case Key::ts: return take(event.ts);
    case Key::dur: return take(event.dur);
    case Key::args:
      // Usually the last key, when it is known what to read; otherwise it is kept for later.
      event.args_taken = event.category != Category::unknown && reads_arguments(event);
      if (!event.args_taken) {
        walker.value(event.args);
        return;
      }
      event.args = {};
      if (walker.enter_object()) {
        read_arguments(walker, event.category);
      } else {
        arguments_.clear();
      }
      return;
    case Key::other: walker.skip_value(); return;
  }
}

// A string's text without escapes, in memory that lasts until the next call.
std::string_view KinetoEvents::text(const Token& token) {
  if (!token.escaped) return token.text;
  scratch_ = unescaped(token.text);
  return scratch_;
}

}  // namespace commlens
