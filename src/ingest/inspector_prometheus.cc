// NCCL Inspector's other output (NCCL 2.29.7 and newer): Prometheus text, one file a GPU, written
// anew every period.
//
//   nccl_bus_bandwidth_gbs{version="v5.1",node="node-a",gpu="GPU0",comm_name="DP Group 0",
//     n_nodes="1",nranks="4",collective="AllReduce",message_size="4-5GB",algo_proto="Ring_ll"}
//     678.2
//   nccl_collective_exec_time_microseconds{...the same labels...} 9498.47
//
// A row is what a period held of calls alike: the geometric mean of their bus bandwidths, the mean
// of their times, how many is not said; sizes are a range, of one rank. NCCL 2.29.7 has one row for
// each last call, with its rank, communicator and number, and a size like "4.00GB". Labels come in
// any order and are told by name. Values have six digits.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"
#include "model/operation.h"

namespace commlens {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 24U;
constexpr double kLongestMicroseconds = 1e15;

using Labels = std::map<std::string, std::string, std::less<>>;

struct Sample {
  std::string_view metric;
  std::string labels_text;  // as it stands: what rows of one call have in common
  Labels labels;
  double value = 0;
};

// `name="value"`, with \" \\ \n in the value. Nothing where it is not whole.
std::optional<Labels> read_labels(std::string_view text) {
  Labels labels;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t equals = text.find("=\"", at);
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string name(trimmed_text(text.substr(at, equals - at)));
    std::string value;
    for (at = equals + 2; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      value += text[at];
    }
    if (at >= text.size()) return std::nullopt;
    ++at;
    labels[name] = value;
    while (at < text.size() && (text[at] == ',' || text[at] == ' ')) ++at;
  }
  return labels;
}

std::optional<Sample> read_sample(std::string_view line) {
  const std::size_t open = line.find('{');
  const std::size_t close = line.rfind('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  auto labels = read_labels(line.substr(open + 1, close - open - 1));
  // A time stamp may follow the value.
  const auto words = blank_separated(line.substr(close + 1));
  if (!labels || words.empty()) return std::nullopt;
  const auto value = printed_number(words.front());
  if (!value || *value < 0) return std::nullopt;
  return Sample{.metric = trimmed_text(line.substr(0, open)),
                .labels_text = std::string(line.substr(open, close - open)),
                .labels = std::move(*labels),
                .value = *value};
}

Op op_of(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kNames[] = {{"allreduce", Op::all_reduce},
                                                        {"allgather", Op::all_gather},
                                                        {"allgatherv", Op::all_gather},
                                                        {"reducescatter", Op::reduce_scatter},
                                                        {"broadcast", Op::broadcast},
                                                        {"reduce", Op::reduce},
                                                        {"alltoall", Op::all_to_all},
                                                        {"all2all", Op::all_to_all},
                                                        {"sendrecv", Op::send_recv},
                                                        {"send", Op::send},
                                                        {"recv", Op::recv},
                                                        {"gather", Op::gather},
                                                        {"scatter", Op::scatter}};
  std::string lower;
  for (const char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const auto& [known, op] : kNames) {
    if (lower == known) return op;
  }
  return Op::unknown;
}

std::string upper_case(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

class PrometheusReader {
 public:
  explicit PrometheusReader(Measured& measured) : measured_(measured), groups_(measured) {}
  void line(std::string_view text, std::int64_t number);

 private:
  MeasuredCall& row_of(const Sample& sample, std::int64_t number);
  void set_size(std::string_view text, std::int64_t size, MeasuredCall& call, std::int64_t number);

  Measured& measured_;
  GroupIndex groups_;
  std::map<std::string, std::size_t> rows_;  // by labels: the metrics of one row follow each other
};

std::string label(const Labels& labels, std::string_view name) {
  const auto found = labels.find(name);
  return found == labels.end() || found->second == "unknown" ? std::string() : found->second;
}

std::int64_t number_label(const Labels& labels, std::string_view name) {
  return parse_int(label(labels, name)).value_or(-1);
}

// "4-5GB", "512-513MB", "0B", "4.00GB".
void PrometheusReader::set_size(std::string_view text, std::int64_t size, MeasuredCall& call,
                                std::int64_t number) {
  const std::size_t dash = text.find('-', 1);
  if (dash != std::string_view::npos) {
    const std::size_t unit = text.find_first_not_of("0123456789.", dash + 1);
    if (unit == std::string_view::npos) return;
    const auto lo =
        printed_size(std::string(text.substr(0, dash)) + std::string(text.substr(unit)));
    const auto hi = printed_size(text.substr(dash + 1));
    if (!lo || !hi || hi->bytes < lo->bytes) return;
    call.message = lo->bytes;
    call.message_hi = hi->bytes;
    return;
  }
  const auto one = printed_size(text);
  if (!one) return;
  call.message = one->bytes;
  call.bytes = tests_bytes(call.op, one->bytes, size);
  if (!one->exact)
    measured_.notes.add(Note::rounded_sizes,
                        "line " + std::to_string(number) + ": " + std::string(text.substr(0, 40)));
}

MeasuredCall& PrometheusReader::row_of(const Sample& sample, std::int64_t number) {
  const auto [place, is_new] = rows_.try_emplace(sample.labels_text, measured_.calls.size());
  if (!is_new) return measured_.calls[place->second];
  const Labels& labels = sample.labels;
  MeasuredGroup group{.id = label(labels, "comm_id"),
                      .name = label(labels, "comm_name"),
                      .size = std::max<std::int64_t>(0, number_label(labels, "nranks")),
                      .nodes = std::max<std::int64_t>(0, number_label(labels, "n_nodes")),
                      .ranks = {}};
  MeasuredCall call;
  call.group = groups_.add(group);
  const bool p2p = labels.contains("p2p_operation");
  const std::string op = label(labels, p2p ? "p2p_operation" : "collective");
  call.op = op_of(op);
  call.op_text = measured_.strings.intern(op);
  // Only the last call of the older form is one call of one rank.
  const std::int64_t rank = number_label(labels, "rank");
  call.count = labels.contains("coll_sn") ? 1 : -1;
  call.number = number_label(labels, "coll_sn");
  if (rank >= 0 && rank < kMostRanks && (group.size == 0 || rank < group.size))
    call.rank = static_cast<std::int32_t>(rank);
  set_size(label(labels, "message_size"), group.size, call, number);
  const std::string how = label(labels, "algo_proto");
  const std::size_t split = how.rfind('_');
  if (split != std::string::npos) {
    call.algorithm = measured_.strings.intern(upper_case(how.substr(0, split)));
    call.protocol = measured_.strings.intern(upper_case(how.substr(split + 1)));
  }
  call.where = number;
  const std::string node = label(labels, labels.contains("node") ? "node" : "hostname");
  if (call.count < 0) {
    // Of one GPU, whose ranks and communicators are not told.
    if (!node.empty()) call.node = measured_.strings.intern(node);
    const std::string gpu = label(labels, labels.contains("gpu") ? "gpu" : "gpu_device_id");
    if (!gpu.empty()) call.gpu = measured_.strings.intern(gpu);
  }
  if (measured_.calls.empty()) {
    measured_.host = node;
    if (call.count < 0) measured_.notes.add(Note::summed_calls, "line " + std::to_string(number));
  }
  measured_.calls.push_back(call);
  return measured_.calls.back();
}

void PrometheusReader::line(std::string_view text, std::int64_t number) {
  text = trimmed_text(text);
  if (text.empty() || text.front() == '#') return;
  const auto sample = read_sample(text);
  if (!sample ||
      (!sample->labels.contains("collective") && !sample->labels.contains("p2p_operation"))) {
    // Other exporters' metrics may stand in the same file.
    if (text.starts_with("nccl_"))
      measured_.notes.add(Note::odd_record, example_line(number, text));
    return;
  }
  ++measured_.records;
  MeasuredCall& call = row_of(*sample, number);
  if (sample->metric.ends_with("bus_bandwidth_gbs")) call.printed_busbw = sample->value;
  if (sample->metric.ends_with("exec_time_microseconds")) {
    const bool known = sample->value > 0 && sample->value <= kLongestMicroseconds;
    if (!known) measured_.notes.add(Note::untimed_call, example_line(number, text));
    if (!known) return;
    call.time = static_cast<Ns>(std::llround(sample->value * 1000));
    call.timed_by = TimedBy::unsaid;
  }
}

bool sniff(std::string_view head) {
  if (head.starts_with('{') || head.starts_with('[')) return false;
  for (const std::string_view name :
       {"nccl_bus_bandwidth_gbs{", "nccl_p2p_bus_bandwidth_gbs{",
        "nccl_collective_exec_time_microseconds{", "nccl_p2p_exec_time_microseconds{",
        "nccl_algorithm_bandwidth_gbs{"}) {
    const std::size_t at = head.find(name);
    if (at != std::string_view::npos && (at == 0 || head[at - 1] == '\n')) return true;
  }
  return false;
}

void read(Source& source, std::string_view head, Measured& measured) {
  measured.drops_records = true;
  measured.numbered = true;
  PrometheusReader reader(measured);
  read_measured_lines(
      source, head, measured,
      [&reader](std::string_view line, std::int64_t number) { reader.line(line, number); });
  if (measured.calls.empty())
    throw Error(ErrorKind::input,
                source.name() + ": holds no metric of NCCL Inspector that can be used");
}

}  // namespace

extern const MeasuredFormat kInspectorPrometheus;
constinit const MeasuredFormat kInspectorPrometheus{
    .name = "inspector_prometheus",
    .summary = "Metrics of NCCL's Inspector plugin, Prometheus text",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
