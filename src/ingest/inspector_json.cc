// NCCL Inspector's records (a profiler plugin of NCCL's, since 2.28): one JSON object a line, one
// file a process, with all its communicators.
//
//   {"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1},
//    "metadata":{"dump_timestamp_us":1748030377748202,"hostname":"node-a","pid":1639453, ...},
//    "coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,
//                 "coll_exec_time_us":61974,"coll_timing_source":"kernel_gpu", ...}}
//
// `coll_sn` counts a communicator's calls of one operation, equally on all ranks; `p2p_sn` does
// not. Times are whole microseconds, cut off, and include waiting for late peers. The dump's time
// stamp is when the line was written. Records are a sample: what is absent may have run. Lies: the
// size of a reduction of uint8 is that of a type of -1 bytes; a peer can lie outside its
// communicator. Bandwidths are not read: they follow from the rest.
#include <algorithm>
#include <string>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 24U;

// Calls `use` with each key of the object that the walker is in; `use` takes the value.
template <class Use>
void for_each_key(Walker& walker, Use use) {
  std::string_view key;
  while (walker.next_key(key)) use(key);
}

std::int64_t number_of(const Token& token) {
  return token.kind == TokenKind::number ? parse_int(token.text).value_or(-1) : -1;
}

std::string text_of(const Token& token) {
  if (token.kind != TokenKind::string) return {};
  return token.escaped ? unescaped(token.text) : std::string(token.text);
}

Ns from_microseconds(std::int64_t us) {
  Ns ns = 0;
  return us < 0 || __builtin_mul_overflow(us, 1000, &ns) ? -1 : ns;
}

// What stands in one line.
struct Record {
  MeasuredGroup group;
  std::int64_t rank = -1;
  std::string host;
  std::int64_t process = -1;
  std::int64_t written_us = -1;  // since the epoch
  bool any_call = false;
  bool p2p = false;
  bool odd_size = false;  // a size stands there that is none
  std::string op;
  std::string source;  // of the time
  std::int64_t number = -1;
  std::int64_t peer = -1;
  std::int64_t message = -1;
  std::int64_t time_us = -1;
  std::int64_t enqueue_begin_us = -1;
  std::int64_t enqueue_end_us = -1;
  std::int64_t begin_us = -1;  // first kernel
  std::int64_t end_us = -1;    // last kernel
  std::int64_t channels = -1;
};

void read_header(Walker& walker, Record& record) {
  for_each_key(walker, [&](std::string_view key) {
    const std::string name(key);
    const Token token = walker.value();
    if (name == "id") record.group.id = text_of(token);
    if (name == "comm_name" && text_of(token) != "unknown") record.group.name = text_of(token);
    if (name == "rank") record.rank = number_of(token);
    if (name == "n_ranks") record.group.size = std::max<std::int64_t>(0, number_of(token));
    if (name == "nnodes") record.group.nodes = std::max<std::int64_t>(0, number_of(token));
  });
}

void read_metadata(Walker& walker, Record& record) {
  for_each_key(walker, [&](std::string_view key) {
    const bool host = key == "hostname";
    const bool process = key == "pid";
    const bool written = key == "dump_timestamp_us";
    const Token token = walker.value();
    if (host) record.host = text_of(token);
    if (process) record.process = number_of(token);
    if (written) record.written_us = number_of(token);
  });
}

// Entries of channels that were not used are 0.
void read_channel(Walker& walker, Record& record) {
  for_each_key(walker, [&](std::string_view key) {
    const bool start = key == "kernel_start_ts";
    const bool stop = key == "kernel_stop_ts";
    const std::int64_t time = number_of(walker.value());
    if (time <= 0) return;
    if (start && (record.begin_us < 0 || time < record.begin_us)) record.begin_us = time;
    if (stop) record.end_us = std::max(record.end_us, time);
  });
}

void read_channels(const Token& list, Record& record) {
  if (list.kind != TokenKind::array) return;
  Walker walker(list.text.data() + 1, list.text.data() + list.text.size());
  record.channels = 0;
  while (walker.next_element()) {
    if (!walker.enter_object()) continue;
    read_channel(walker, record);
    ++record.channels;
  }
}

void read_instants(Walker& walker, Record& record) {
  for_each_key(walker, [&](std::string_view key) {
    const bool start = key.ends_with("_start_ts");
    const bool stop = key.ends_with("_stop_ts");
    const bool channels = key == "kernel_events";
    const Token token = walker.value();
    if (start) record.enqueue_begin_us = number_of(token);
    if (stop) record.enqueue_end_us = number_of(token);
    if (channels) read_channels(token, record);
  });
}

// Keys are "coll_..." of collectives, "p2p_..." of the others.
void read_call(Walker& walker, Record& record) {
  for_each_key(walker, [&](std::string_view key) {
    if (key == "event_trace_ts") {
      if (walker.enter_object()) read_instants(walker, record);
      return;
    }
    const std::string name(key.substr(std::min(key.find('_') + 1, key.size())));
    const bool op = key == "coll" || key == "p2p";
    const Token token = walker.value();
    if (op) record.op = text_of(token);
    if (name == "sn") record.number = number_of(token);
    if (name == "peer") record.peer = number_of(token);
    if (name == "exec_time_us") record.time_us = number_of(token);
    if (name == "timing_source") record.source = text_of(token);
    if (name == "msg_size_bytes") {
      record.message = number_of(token);
      record.odd_size = record.message < 0 || record.message > kLargestMessage;
    }
  });
}

// Whether the line is whole.
bool read_line(std::string_view line, Record& record) {
  Walker walker(line.data() + 1, line.data() + line.size());
  for_each_key(walker, [&](std::string_view key) {
    const bool header = key == "header";
    const bool metadata = key == "metadata";
    const bool coll = key == "coll_perf";
    const bool p2p = key == "p2p_perf";
    if (!header && !metadata && !coll && !p2p) return walker.skip_value();
    if (!walker.enter_object()) return;
    if (header) return read_header(walker, record);
    if (metadata) return read_metadata(walker, record);
    record.any_call = true;
    record.p2p = p2p;
    read_call(walker, record);
  });
  return walker.state() == Scan::ok;
}

Op op_of(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kNames[] = {{"AllReduce", Op::all_reduce},
                                                        {"AllGather", Op::all_gather},
                                                        {"AllGatherV", Op::all_gather},
                                                        {"ReduceScatter", Op::reduce_scatter},
                                                        {"Broadcast", Op::broadcast},
                                                        {"Reduce", Op::reduce},
                                                        {"AlltoAll", Op::all_to_all},
                                                        {"All2All", Op::all_to_all},
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

TimedBy clock_of(std::string_view source) {
  if (source == "kernel_gpu") return TimedBy::kernel_gpu;
  if (source == "kernel_cpu") return TimedBy::kernel_cpu;
  if (source == "collective_cpu") return TimedBy::collective_cpu;
  return TimedBy::unsaid;
}

class InspectorReader {
 public:
  explicit InspectorReader(Measured& measured) : measured_(measured), groups_(measured) {}
  void line(std::string_view text, std::int64_t number);
  // What is known only when the text has ended.
  void finish();

 private:
  void use(const Record& record, std::int64_t number);
  std::int32_t rank_in_group(std::int64_t rank, std::int64_t size, std::int64_t number);

  Measured& measured_;
  GroupIndex groups_;
  PaddedText padded_;
  bool one_process_ = true;
  std::string odd_;          // the last line that could not be read
  std::int64_t odd_at_ = 0;  // its number; 0: none
  std::int64_t last_ = 0;    // number of the last line
};

void InspectorReader::line(std::string_view text, std::int64_t number) {
  const std::string_view trimmed = trimmed_text(text);
  if (trimmed.empty()) return;
  last_ = number;
  if (odd_at_ > 0) measured_.notes.add(Note::odd_record, odd_);
  odd_at_ = 0;
  const std::string_view whole = padded_.set(trimmed);
  Record record;
  if (whole.front() == '{' && read_line(whole, record) && record.any_call && !record.op.empty() &&
      record.op != "Invalid") {
    ++measured_.records;
    return use(record, number);
  }
  odd_ = example_line(number, trimmed);
  odd_at_ = number;
}

std::int32_t InspectorReader::rank_in_group(std::int64_t rank, std::int64_t size,
                                            std::int64_t number) {
  if (rank < 0) return -1;
  if (rank < kMostRanks && (size == 0 || rank < size)) return static_cast<std::int32_t>(rank);
  measured_.notes.add(Note::odd_peer, "line " + std::to_string(number) + ": " +
                                          std::to_string(rank) + " of " + std::to_string(size));
  return -1;
}

void InspectorReader::use(const Record& record, std::int64_t number) {
  MeasuredCall call;
  call.group = groups_.add(record.group);
  call.op = op_of(record.op);
  call.op_text = measured_.strings.intern(record.op);
  call.rank = rank_in_group(record.rank, record.group.size, number);
  call.peer = record.p2p ? rank_in_group(record.peer, record.group.size, number) : -1;
  call.number = record.p2p ? -1 : record.number;
  call.channels = static_cast<std::int32_t>(std::min<std::int64_t>(record.channels, 1 << 16));
  if (record.odd_size) {
    measured_.notes.add(Note::absurd_size, "line " + std::to_string(number));
  } else {
    call.message = record.message;
    call.bytes = tests_bytes(call.op, call.message, record.group.size);
  }
  call.time = from_microseconds(record.time_us);
  if (call.time > 0) {
    call.timed_by = clock_of(record.source);
    measured_.notes.add(Note::coarse_durations);
  } else {
    call.time = -1;
    measured_.notes.add(Note::untimed_call, "line " + std::to_string(number));
  }
  call.enqueue_begin = from_microseconds(record.enqueue_begin_us);
  call.enqueue_end = from_microseconds(record.enqueue_end_us);
  call.begin = from_microseconds(record.begin_us);
  call.end = from_microseconds(record.end_us);
  call.where = number;
  if (measured_.calls.empty()) {
    measured_.host = record.host;
    measured_.process = record.process;
  }
  const Ns written = from_microseconds(record.written_us);
  if (written > 0) measured_.written.add(written, number);
  one_process_ &= measured_.host == record.host && measured_.process == record.process;
  measured_.calls.push_back(call);
}

void InspectorReader::finish() {
  // The line that a killed process was writing.
  if (odd_at_ > 0) {
    const bool cut = odd_at_ == last_;
    measured_.notes.add(cut ? Note::truncated : Note::odd_record, odd_);
  }
  // Files that were put together are of no process.
  if (!one_process_) {
    measured_.host.clear();
    measured_.process = -1;
  }
}

bool sniff(std::string_view head) {
  const std::string_view line = trimmed_text(head.substr(0, head.find('\n')));
  return line.starts_with("{\"header\"") && line.find("\"n_ranks\"") != std::string_view::npos &&
         (line.find("\"coll_perf\"") != std::string_view::npos ||
          line.find("\"p2p_perf\"") != std::string_view::npos);
}

void read(Source& source, std::string_view head, Measured& measured) {
  measured.resolution = 1000;
  measured.numbered = true;
  measured.drops_records = true;
  measured.clock_is_epoch = true;
  InspectorReader reader(measured);
  read_measured_lines(
      source, head, measured,
      [&reader](std::string_view line, std::int64_t number) { reader.line(line, number); });
  reader.finish();
  if (measured.calls.empty())
    throw Error(ErrorKind::input,
                source.name() + ": holds no record of NCCL Inspector that can be used");
}

}  // namespace

extern const MeasuredFormat kInspectorJson;
constinit const MeasuredFormat kInspectorJson{
    .name = "inspector_json",
    .summary = "Records of NCCL's Inspector plugin, a JSON object a line",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
