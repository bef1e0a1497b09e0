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
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/decimal.h"
#include "model/operation.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

// Times beyond this are no times: 2^61 ns is the year 2043 after the epoch, or 73 years of
// duration.
constexpr Ns kLargestTime = Ns{1} << 61U;

std::optional<std::int64_t> number(const Token& token) {
  if (token.kind != TokenKind::number && token.kind != TokenKind::string) return std::nullopt;
  return parse_int(token.text);
}

// An id of up to 64 bits; 0 where there is none. Old writers of ROCm print hexadecimal.
std::uint64_t id_number(const Token& token) {
  if (token.kind != TokenKind::number && token.kind != TokenKind::string) return 0;
  std::uint64_t value = 0;
  if (decimal::few_digits(token.text, value)) return value;
  if (token.text.starts_with("0x")) {
    value = 0;
    std::from_chars(token.text.data() + 2, token.text.data() + token.text.size(), value, 16);
    return value;
  }
  return parse_uint(token.text).value_or(0);
}

// A pid, tid or stream as a number: "7", "stream 7", "stream 7 user", "0x2a"; a word becomes a
// number of its own.
std::int64_t lane_number(const Token& token) {
  std::string_view text = token.text;
  if (std::uint64_t value = 0; decimal::few_digits(text, value))
    return static_cast<std::int64_t>(value);
  if (text.starts_with("stream ")) text = text.substr(7, text.find(' ', 7) - 7);
  if (const auto value = parse_int(text)) return *value;
  if (text.starts_with("0x"))
    return static_cast<std::int64_t>(id_number({TokenKind::string, text}));
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a: only has to tell one word from another
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return -static_cast<std::int64_t>(hash >> 2U) - 2;
}

std::int64_t count_or_unknown(const Token& token) {
  const auto value = number(token);
  return value && *value >= 0 ? *value : kUnknown;
}

// A rank, in a group or of the job; -1 where it is none.
std::int32_t rank_or_none(const Token& token) {
  const auto value = number(token);
  return value && *value >= 0 && *value < kMostRanks ? static_cast<std::int32_t>(*value) : -1;
}

// Whether a list of split sizes ("[4096, 0]") may hold a zero beside other sizes. Of a list that
// Kineto cut ("[1, 2, ...]") that is not known.
bool may_hold_zero(const Token& token) {
  if (token.kind != TokenKind::string && token.kind != TokenKind::array) return false;
  if (token.text.find("...") != std::string_view::npos) return true;
  bool zero = false;
  bool other = false;
  for (std::size_t i = 0; i < token.text.size();) {
    const std::size_t from = token.text.find_first_of("0123456789", i);
    if (from == std::string_view::npos) break;
    i = std::min(token.text.find_first_not_of("0123456789", from), token.text.size());
    const bool is_zero =
        token.text.substr(from, i - from).find_first_not_of('0') == std::string_view::npos;
    zero = zero || is_zero;
    other = other || !is_zero;
  }
  return zero && other;
}

// Calls that start GPU work. The others (event queries, attribute look-ups) are most of the
// runtime's rows.
bool is_launch(std::string_view name) {
  return name.find("Launch") != std::string_view::npos ||
         name.find("Memcpy") != std::string_view::npos ||
         name.find("Memset") != std::string_view::npos;
}

// Calls that return only when the GPU has done something. A copy without "Async" waits for itself.
std::optional<SyncKind> blocking_kind(std::string_view name) {
  const auto says = [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (says("Synchronize")) {
    if (says("Stream")) return SyncKind::stream_sync;
    return says("Event") ? SyncKind::event_sync : SyncKind::device_sync;
  }
  if (says("Memcpy") && !says("Async") && !says("Peer")) return SyncKind::blocking_copy;
  return std::nullopt;
}

// The record's name to what waits for what; nothing for one that is not known.
std::optional<SyncKind> sync_record_kind(std::string_view name) {
  if (name == "Stream Wait Event") return SyncKind::stream_wait;
  if (name == "Stream Sync") return SyncKind::stream_sync;
  if (name == "Event Sync") return SyncKind::event_sync;
  if (name == "Context Sync") return SyncKind::device_sync;
  return std::nullopt;
}

// "wait" and "init" are records of the same form that communicate nothing. A collective of a name
// that is not known communicates all the same: its group and size count, its op is unknown.
bool is_communication_record(std::string_view collective) {
  return !collective.empty() && collective != "wait" && collective != "init";
}

constexpr std::string_view kStepPrefix = "ProfilerStep#";
constexpr std::string_view kRecordName = "record_param_comms";

// Backends whose ranges bear their name as a prefix.
constexpr std::array<std::string_view, 8> kBackends = {"nccl", "gloo", "mpi",  "ucc",
                                                       "xccl", "hccl", "rccl", "ccl"};
// Those that move the data themselves, on the host, within the range.
bool is_host_backend(std::string_view backend) {
  return backend == "gloo" || backend == "mpi" || backend == "ucc";
}

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

std::string_view annotation_backend(std::string_view name) {
  const std::size_t colon = name.substr(0, 8).find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view prefix = name.substr(0, colon);
  return std::find(kBackends.begin(), kBackends.end(), prefix) == kBackends.end()
             ? std::string_view()
             : prefix;
}

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
      return is_launch(name) || name.find("Synchronize") != std::string_view::npos;
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

void KinetoEvents::use(const Event& event) {
  switch (event.category) {
    case Category::kernel: return use_activity(event, ActivityKind::kernel);
    case Category::memcpy: return use_activity(event, ActivityKind::memcpy);
    case Category::memset: return use_activity(event, ActivityKind::memset);
    case Category::runtime: return use_runtime(event);
    case Category::cpu_op: return use_cpu_op(event);
    case Category::sync: return use_sync(event);
    case Category::annotation:
      return event.name.text.starts_with(kStepPrefix) ? use_step(event, false)
                                                      : use_annotation(event);
    case Category::gpu_annotation: return use_step(event, true);
    case Category::recording_span:
      if (const Times t = times(event, false); t.usable) builder_.about().span = t.interval;
      return;
    case Category::unknown:
    case Category::ignored: return;
  }
}

// The event's interval. Odd times of GPU events are noted, since every figure hangs on them.
KinetoEvents::Times KinetoEvents::times(const Event& event, bool on_gpu) {
  const auto note = [&](Note what) {
    if (on_gpu)
      builder_.notes().add(what, "at byte " + std::to_string(offset_) + ": " +
                                     std::string(event.name.text.substr(0, 80)));
  };
  if (event.ts.kind != TokenKind::number && event.ts.kind != TokenKind::string) {
    note(Note::missing_time);
    return {};
  }
  const auto start = microseconds_to_ns(event.ts.text);
  if (!start || *start > kLargestTime || *start < -kLargestTime) {
    note(Note::absurd_time);
    return {};
  }
  if (event.dur.kind != TokenKind::number && event.dur.kind != TokenKind::string) {
    note(Note::missing_duration);
    return {true, {*start, *start}};
  }
  auto duration = microseconds_to_ns(event.dur.text);
  // A number too large for 64 bits is still a duration without an end: the builder cuts it at the
  // recording's.
  if (!duration && parse_int(event.dur.text).has_value()) duration = kLargestTime;
  if (!duration && event.dur.text.find_first_of("123456789") == 0) duration = kLargestTime;
  if (!duration) {
    note(Note::missing_duration);
    return {true, {*start, *start}};
  }
  if (*duration < 0) note(Note::negative_duration);
  return {true, {*start, *start + std::clamp(*duration, Ns{0}, kLargestTime)}};
}

void KinetoEvents::use_activity(const Event& event, ActivityKind kind) {
  const Times t = times(event, true);
  if (!t.usable) return;
  builder_.add_activity({.kind = kind,
                         .start = t.interval.start,
                         .end = t.interval.end,
                         .name = text(event.name),
                         .stream = stream(event),
                         .correlation = id_number(arguments_[Arg::correlation]),
                         .external_id = id_number(arguments_[Arg::external_id]),
                         .meta = meta(),
                         .call = call()});
}

void KinetoEvents::use_runtime(const Event& event) {
  const Times t = times(event, false);
  const std::uint64_t correlation = id_number(arguments_[Arg::correlation]);
  if (!t.usable) return;
  if (correlation != 0 && is_launch(event.name.text))
    builder_.add_launch(correlation, t.interval.start, thread(event),
                        id_number(arguments_[Arg::external_id]));
  if (const auto kind = blocking_kind(event.name.text))
    builder_.add_sync_call({.start = t.interval.start,
                            .end = t.interval.end,
                            .correlation = correlation,
                            .thread = thread(event),
                            .kind = *kind});
}

void KinetoEvents::use_sync(const Event& event) {
  const auto kind = sync_record_kind(event.name.text);
  const Times t = times(event, false);
  if (!kind || !t.usable) return;
  Stream own = stream(event);
  own.stream = count_or_unknown(arguments_[Arg::stream]);
  Stream source = own;
  source.stream = count_or_unknown(arguments_[Arg::wait_on_stream]);
  // "-1" as a number of 64 bits is not an id either.
  const auto record = number(arguments_[Arg::record_correlation]);
  builder_.add_sync_record(
      {.start = t.interval.start,
       .correlation = id_number(arguments_[Arg::correlation]),
       .record_correlation = record && *record > 0 ? static_cast<std::uint64_t>(*record) : 0,
       .stream = own,
       .source = source,
       .kind = *kind});
}

void KinetoEvents::use_cpu_op(const Event& event) {
  const bool record = event.name.text == kRecordName;
  if (!record && !annotation_backend(event.name.text).empty()) return use_annotation(event);
  const Times t = times(event, false);
  if (!t.usable) return;
  if (!record) {
    // c10d's own operations wait for or start communication: they compute nothing.
    const bool communicates =
        event.name.text.starts_with("c10d::") || event.name.text.starts_with("_c10d_functional::");
    if (options_.host_compute && !communicates)
      builder_.add_host_compute(t.interval, thread(event));
    return;
  }
  const Token& name = arguments_[Arg::collective];
  if (name.kind == TokenKind::string && !is_communication_record(name.text)) return;
  builder_.add_host_range({.start = t.interval.start,
                           .end = t.interval.end,
                           .thread = thread(event),
                           .name = {},
                           .backend = {},
                           .meta = meta(),
                           .external_id = id_number(arguments_[Arg::external_id]),
                           .kind = HostRangeKind::collective_record},
                          call());
}

void KinetoEvents::use_annotation(const Event& event) {
  const Times t = times(event, false);
  if (!t.usable) return;
  const std::string_view backend = annotation_backend(event.name.text);
  builder_.add_host_range({.start = t.interval.start,
                           .end = t.interval.end,
                           .thread = thread(event),
                           .name = builder_.intern(event.name.text.substr(backend.size() + 1)),
                           .backend = builder_.intern(backend),
                           .meta = {},
                           .external_id = 0,
                           .kind = HostRangeKind::annotation});
}

void KinetoEvents::use_step(const Event& event, bool on_gpu) {
  const auto step = parse_int(event.name.text.substr(kStepPrefix.size()));
  const Times t = times(event, false);
  if (step && t.usable) builder_.add_step(*step, t.interval, on_gpu);
}

// Where the activity ran. A copy between devices names the one it belongs to as "inDevice".
Stream KinetoEvents::stream(const Event& event) const {
  const Token& device = arguments_[arguments_.has(Arg::device) ? Arg::device : Arg::in_device];
  const Token& context = arguments_[arguments_.has(Arg::context) ? Arg::context : Arg::in_context];
  const Token& stream = arguments_[Arg::stream];
  return {.device = lane_number(device.kind != TokenKind::none ? device : event.pid),
          .context = number(context).value_or(kUnknown),
          .stream = lane_number(stream.kind != TokenKind::none ? stream : event.tid)};
}

ThreadId KinetoEvents::thread(const Event& event) {
  const std::int64_t process = lane_number(event.pid);
  if (builder_.about().process == kUnknown && process >= 0) builder_.about().process = process;
  return builder_.thread(process, lane_number(event.tid));
}

// The collective metadata among the arguments; none where there is none, or where it is a record of
// "wait" or "init".
MetaId KinetoEvents::meta() {
  const Token& collective = arguments_[Arg::collective];
  if (collective.kind != TokenKind::string || !is_communication_record(collective.text)) return {};
  return builder_.add_meta(
      {.collective = intern(arguments_[Arg::collective]),
       .dtype = intern(arguments_[Arg::dtype]),
       .in_elements = count_or_unknown(arguments_[Arg::in_elements]),
       .out_elements = count_or_unknown(arguments_[Arg::out_elements]),
       .group_size = std::max<std::int64_t>(0, number(arguments_[Arg::group_size]).value_or(0)),
       .group_name = intern(arguments_[Arg::group_name]),
       .group_description = intern(arguments_[Arg::group_description]),
       .group_ranks = intern(arguments_[Arg::group_ranks]),
       .group_start = count_or_unknown(arguments_[Arg::group_start]),
       .group_stride = count_or_unknown(arguments_[Arg::group_stride])});
}

// What tells the call from others; nothing where the event is no communication.
CallKey KinetoEvents::call() const {
  if (!arguments_.has(Arg::collective)) return {};
  return {.comms_id = id_number(arguments_[Arg::comms_id]),
          .seq = count_or_unknown(arguments_[Arg::seq]),
          .rank = rank_or_none(arguments_[Arg::rank]),
          .source = rank_or_none(arguments_[Arg::source]),
          .destination = rank_or_none(arguments_[Arg::destination]),
          .zero_split = may_hold_zero(arguments_[Arg::in_split]) ||
                        may_hold_zero(arguments_[Arg::out_split])};
}

StringId KinetoEvents::intern(const Token& token) {
  return token.kind == TokenKind::none ? StringId::none() : builder_.intern(text(token));
}

// A string's text without escapes, in memory that lasts until the next call.
std::string_view KinetoEvents::text(const Token& token) {
  if (!token.escaped) return token.text;
  scratch_ = unescaped(token.text);
  return scratch_;
}

}  // namespace commlens
