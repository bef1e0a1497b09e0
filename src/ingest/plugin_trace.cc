// What NCCL's example profiler plugin writes: one event a line, nearly Chrome's trace format, and
// no JSON. It holds no timeline: none of its clocks says when a communication ran.
//
//   [
//   {"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 12079, "tid": 1, "ts":
//   201607.300781,
//    "args": {"SeqNum": 0, "CommHash": 6479621443159067765, "Rank": 0, "Count": 2097152,
//             "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "LL128", "nChannels":
//             24}},
//   {"name": "KernelCh", "cat": "GPU", "ph": "b", "id": 0, ... "ts": 1824045.316895,
//    "args": {"Channel": 16, "StartGpuClk": 1765223116927674080, "StopGpuClk": 0}},
//   {"name": "KernelCh", "cat": "GPU", "ph": "e", "id": 0, ... "ts": 0.000000},
//   {"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, ... "ts": 201607.453125},
//   {}]
//
// The lines of a call's channels stand between its begin and its end. A call's own two time stamps
// bracket its enqueueing: 0.15 us for an all-reduce of 8 MB. How long it took is known only where
// each channel has both clocks of the GPU, or both time stamps of the thread that watched it.
// Lies: a time stamp or clock of 0 was not taken; all channels have the id 0, so an end belongs to
// the begin before it. A file of a killed process ends inside a line.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 24U;

struct Event {
  std::string name;
  std::string cat;
  char phase = '?';
  std::int64_t id = -1;
  std::int64_t process = -1;
  Ns ts = -1;  // -1: not taken
  // The arguments that are read, by their names in lower case: versions differ in that.
  std::map<std::string, std::string, std::less<>> args;

  std::int64_t number(std::string_view key) const {
    const auto found = args.find(key);
    return found == args.end() ? -1 : parse_int(found->second).value_or(-1);
  }
  std::string_view text(std::string_view key) const {
    const auto found = args.find(key);
    return found == args.end() ? std::string_view() : std::string_view(found->second);
  }
};

std::string lower_case(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string plain_text(const Token& token) {
  return token.escaped ? unescaped(token.text) : std::string(token.text);
}

// Nothing for a line that is no whole event.
std::optional<Event> read_event(std::string_view line) {
  Event event;
  Walker walker(line.data() + 1, line.data() + line.size());
  std::string_view key;
  while (walker.next_key(key)) {
    if (key == "args") {
      if (!walker.enter_object()) continue;
      while (walker.next_key(key)) {
        const std::string name = lower_case(key);
        event.args[name] = plain_text(walker.value());
      }
      continue;
    }
    const std::string name(key);
    const Token token = walker.value();
    if (name == "name") event.name = plain_text(token);
    if (name == "cat") event.cat = plain_text(token);
    if (name == "ph" && token.text.size() == 1) event.phase = token.text.front();
    if (name == "id") event.id = parse_int(token.text).value_or(-1);
    if (name == "pid") event.process = parse_int(token.text).value_or(-1);
    if (name == "ts") event.ts = microseconds_to_ns(token.text).value_or(-1);
  }
  if (walker.state() != Scan::ok) return std::nullopt;
  if (event.ts <= 0) event.ts = -1;
  return event;
}

std::int64_t element_size(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::int64_t> kSizes[] = {
      {"ncclInt8", 1},      {"ncclChar", 1},   {"ncclUint8", 1},    {"ncclInt32", 4},
      {"ncclInt", 4},       {"ncclUint32", 4}, {"ncclInt64", 8},    {"ncclUint64", 8},
      {"ncclFloat16", 2},   {"ncclHalf", 2},   {"ncclFloat32", 4},  {"ncclFloat", 4},
      {"ncclFloat64", 8},   {"ncclDouble", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1},
      {"ncclFloat8e5m2", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return -1;
}

// Of one rank. An all-gather's count is bytes already.
std::int64_t message_of(const Event& event, Op op) {
  const std::int64_t count = event.number("count");
  const std::int64_t size = op == Op::all_gather ? 1 : element_size(event.text("datatype"));
  std::int64_t bytes = 0;
  if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes)) return -1;
  return bytes;
}

Op op_of(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kNames[] = {{"AllReduce", Op::all_reduce},
                                                        {"AllGather", Op::all_gather},
                                                        {"ReduceScatter", Op::reduce_scatter},
                                                        {"Broadcast", Op::broadcast},
                                                        {"Reduce", Op::reduce},
                                                        {"AlltoAll", Op::all_to_all},
                                                        {"AllToAll", Op::all_to_all},
                                                        {"SendRecv", Op::send_recv},
                                                        {"Send", Op::send},
                                                        {"Recv", Op::recv},
                                                        {"Gather", Op::gather},
                                                        {"Scatter", Op::scatter}};
  for (const auto& [known, op] : kNames) {
    if (name == known) return op;
  }
  return Op::unknown;
}

// "0x59ec33b9c52ae7d5": as Inspector and NCCL's log write the same hash.
std::string hash_text(std::string_view decimal) {
  const auto hash = parse_uint(decimal);
  if (!hash) return {};
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(*hash));
  return text;
}

// What the channels of one call tell.
struct Channels {
  std::int64_t seen = 0;
  std::int64_t with_clocks = 0;
  std::int64_t with_ends = 0;
  Ns clock_begin = 0;
  Ns clock_end = 0;
  Ns begin = -1;  // of the first that was noticed
  Ns end = -1;
};

class PluginReader {
 public:
  explicit PluginReader(Measured& measured) : measured_(measured), groups_(measured) {}
  void line(std::string_view text, std::int64_t number);
  void finish();

 private:
  void begin_call(const Event& event, std::int64_t number);
  void end_call();
  void channel(const Event& event);

  Measured& measured_;
  GroupIndex groups_;
  PaddedText padded_;
  std::optional<MeasuredCall> open_;
  Event opened_by_;
  Channels channels_;
  bool channel_open_ = false;
  bool one_process_ = true;
  bool complete_ = false;  // the closing bracket was there
  std::string odd_;        // the last line that could not be read; empty: it was read
};

void PluginReader::line(std::string_view text, std::int64_t number) {
  text = trimmed_text(text);
  if (text.empty() || text == "[") return;
  if (text == "{}]" || text == "]") {
    complete_ = true;
    return;
  }
  if (!odd_.empty()) measured_.notes.add(Note::odd_record, odd_);
  odd_.clear();
  if (text.starts_with("[{")) text.remove_prefix(1);
  std::optional<Event> event;
  if (text.starts_with('{')) event = read_event(padded_.set(text));
  if (!event || event->cat.empty()) {
    odd_ = example_line(number, text);
    return;
  }
  ++measured_.records;
  if (event->cat == "GPU") return channel(*event);
  channel_open_ = false;
  if (event->cat != "COLL" && event->cat != "P2P") return;
  if (event->phase == 'b') return begin_call(*event, number);
  const bool matches = open_ && event->cat == opened_by_.cat && event->name == opened_by_.name &&
                       event->id == opened_by_.id;
  if (!matches) return;
  open_->enqueue_end = event->ts;
  end_call();
}

void PluginReader::channel(const Event& event) {
  if (!open_) return;
  if (event.phase == 'e') {
    if (channel_open_ && event.ts > 0) {
      ++channels_.with_ends;
      channels_.end = std::max(channels_.end, event.ts);
    }
    channel_open_ = false;
    return;
  }
  channel_open_ = true;
  const bool first = channels_.seen++ == 0;
  if (event.ts > 0 && (channels_.begin < 0 || event.ts < channels_.begin))
    channels_.begin = event.ts;
  if (first && event.ts < 0) channels_.begin = -1;
  const std::int64_t start = event.number("startgpuclk");
  const std::int64_t stop = event.number("stopgpuclk");
  if (start <= 0 || stop <= start) return;
  const bool first_clock = channels_.with_clocks++ == 0;
  channels_.clock_begin = first_clock ? start : std::min(channels_.clock_begin, start);
  channels_.clock_end = std::max(channels_.clock_end, stop);
}

void PluginReader::begin_call(const Event& event, std::int64_t number) {
  end_call();
  if (measured_.calls.empty()) measured_.process = event.process;
  one_process_ &= measured_.process == event.process;
  MeasuredCall call;
  call.group = groups_.add({.id = hash_text(event.text("commhash"))});
  call.op = op_of(event.name);
  call.op_text = measured_.strings.intern(event.name);
  const auto rank_of = [&](std::string_view key) {
    const std::int64_t rank = event.number(key);
    return rank >= 0 && rank < kMostRanks ? static_cast<std::int32_t>(rank) : -1;
  };
  const auto intern = [&](std::string_view key) {
    const std::string_view text = event.text(key);
    return text.empty() ? StringId() : measured_.strings.intern(text);
  };
  call.rank = rank_of("rank");
  if (event.cat == "P2P") call.peer = rank_of("peer");
  call.number = event.number("seqnum");
  call.channels =
      static_cast<std::int32_t>(std::min<std::int64_t>(event.number("nchannels"), 1 << 16));
  call.message = message_of(event, call.op);
  if (call.message > kLargestMessage) {
    call.message = -1;
    measured_.notes.add(Note::absurd_size, "line " + std::to_string(number));
  }
  call.bytes = tests_bytes(call.op, call.message, 0);
  call.dtype = intern("datatype");
  call.algorithm = intern("algorithm");
  call.protocol = intern("protocol");
  call.enqueue_begin = event.ts;
  call.where = number;
  open_ = call;
  opened_by_ = event;
  channels_ = {};
}

void PluginReader::end_call() {
  if (!open_) return;
  MeasuredCall& call = *open_;
  const std::int64_t wanted = call.channels > 0 ? call.channels : channels_.seen;
  const bool whole = channels_.seen > 0 && channels_.seen == wanted;
  call.begin = channels_.begin;
  call.end = channels_.end;
  if (whole && channels_.with_clocks == channels_.seen) {
    call.time = channels_.clock_end - channels_.clock_begin;
    call.timed_by = TimedBy::kernel_gpu;
  } else if (whole && channels_.with_ends == channels_.seen && channels_.begin > 0 &&
             channels_.end > channels_.begin) {
    call.time = channels_.end - channels_.begin;
    call.timed_by = TimedBy::kernel_cpu;
  } else {
    measured_.notes.add(Note::untimed_call, "line " + std::to_string(call.where));
  }
  measured_.calls.push_back(call);
  open_.reset();
}

void PluginReader::finish() {
  end_call();
  // Files that were put together are of no process.
  if (!one_process_) measured_.process = -1;
  // A line that cannot be read at the end of a text without its closing bracket was cut.
  if (!odd_.empty() || !complete_)
    measured_.notes.add(odd_.empty() || !complete_ ? Note::truncated : Note::odd_record, odd_);
  if (!measured_.calls.empty()) measured_.notes.add(Note::unknown_group_size);
}

bool sniff(std::string_view head) {
  head = trimmed_text(head);
  if (!head.starts_with('[')) return false;
  const std::size_t from = head.find('{');
  if (from == std::string_view::npos || head.find_first_not_of(" \t\r\n", 1) != from) return false;
  const std::string_view line = head.substr(from, head.find('\n', from) - from);
  for (const std::string_view cat : {"GROUP", "GROUP_API", "COLL", "COLL_API", "P2P", "P2P_API",
                                     "KERNEL_LAUNCH", "PROXY", "GPU", "NET"}) {
    const bool has = line.find("\"cat\": \"" + std::string(cat) + "\"") != std::string_view::npos;
    if (has && line.find("\"ph\": \"b\"") != std::string_view::npos) return true;
  }
  return false;
}

void read(Source& source, std::string_view head, Measured& measured) {
  measured.numbered = true;
  PluginReader reader(measured);
  read_measured_lines(
      source, head, measured,
      [&reader](std::string_view line, std::int64_t number) { reader.line(line, number); });
  reader.finish();
  if (measured.calls.empty())
    throw Error(ErrorKind::input, source.name() + ": holds no collective and no send or receive");
}

}  // namespace

extern const MeasuredFormat kPluginTrace;
constinit const MeasuredFormat kPluginTrace{
    .name = "plugin_trace",
    .summary = "What NCCL's example profiler plugin writes, an event a line",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
