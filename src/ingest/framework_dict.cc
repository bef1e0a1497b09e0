// What DeepSpeed's log_summary(return_dict=True) returns (since July 2025), written as JSON:
//
//   {"summary": {"all_reduce": {"1048576": {"count": 3, "total_latency_ms": 1.5, ...}}},
//    "straggler_analysis": {"all_reduce": {"1048576": {"count": 3, "total_comm_lat_ms": 1.1,
//                                                      "total_straggler_ms": 0.4, ...}}},
//    "metadata": {"world_size": 8, "rank": 0, "timestamp": "..."}}
//
// The same sums as in the table (framework_deepspeed.cc), with sizes in whole bytes.
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/framework_deepspeed.h"
#include "ingest/json_tree.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

constexpr double kLongestMilliseconds = 1e12;

bool sniff(std::string_view head) {
  return trimmed_text(head).starts_with('{') &&
         head.find("\"summary\"") != std::string_view::npos &&
         head.find("\"total_latency_ms\"") != std::string_view::npos;
}

std::string read_all(Source& source, std::string_view head) {
  std::string text(head);
  std::string block(std::size_t{256} << 10U, '\0');
  while (const std::size_t got = source.read({block.data(), block.size()})) {
    text.append(block, 0, got);
    if (text.size() > Tree::kLongestText)
      throw Error(ErrorKind::input, source.name() + ": is too large for such a summary");
  }
  return text;
}

class DictReader {
 public:
  DictReader(const Tree& tree, Measured& measured) : tree_(tree), measured_(measured) {}
  void read(NodeId root);

 private:
  std::optional<Ns> time(NodeId row, std::string_view key) const;
  void summary(NodeId ops, NodeId stragglers);
  void add(std::string_view op, std::string_view size, NodeId row, NodeId straggler);

  const Tree& tree_;
  Measured& measured_;
};

std::optional<Ns> DictReader::time(NodeId row, std::string_view key) const {
  const auto value = tree_.number(tree_.find(row, key));
  if (!value || !(*value >= 0) || *value > kLongestMilliseconds) return std::nullopt;
  return static_cast<Ns>(std::llround(*value * 1e6));
}

void DictReader::add(std::string_view op, std::string_view size, NodeId row, NodeId straggler) {
  const auto bytes = parse_int(size);
  const auto count = tree_.integer(tree_.find(row, "count"));
  if (!bytes || *bytes < 0 || !count || *count <= 0) {
    measured_.notes.add(Note::odd_record, std::string(op) + " " + std::string(size));
    return;
  }
  ++measured_.records;
  const bool absurd = *bytes > kLargestMessage;
  if (absurd) measured_.notes.add(Note::absurd_size, std::string(op) + " " + std::string(size));
  MeasuredCall call = deepspeed_call(op, absurd ? -1 : *bytes, measured_);
  call.count = *count;
  call.time = time(row, "total_latency_ms").value_or(-1);
  call.straggle = time(straggler, "total_straggler_ms").value_or(-1);
  if (call.time < 0) {
    call.timed_by = TimedBy::nothing;
    measured_.notes.add(Note::untimed_call, std::string(op) + " " + std::string(size), *count);
  }
  call.where = tree_.position(row);
  measured_.calls.push_back(call);
  measured_.notes.add(Note::summed_calls, std::string(op) + " " + std::string(size));
}

void DictReader::summary(NodeId ops, NodeId stragglers) {
  if (ops == kNoValue || tree_.kind(ops) != NodeKind::dict) return;
  const auto& items = tree_.items(ops);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view op = tree_.text(items[i]);
    if (tree_.kind(items[i + 1]) != NodeKind::dict) continue;
    const NodeId of_op = tree_.find(stragglers, op);
    const auto& rows = tree_.items(items[i + 1]);
    for (std::size_t j = 0; j + 1 < rows.size(); j += 2) {
      const std::string_view size = tree_.text(rows[j]);
      add(op, size, rows[j + 1], tree_.find(of_op, size));
    }
  }
}

void DictReader::read(NodeId root) {
  summary(tree_.find(root, "summary"), tree_.find(root, "straggler_analysis"));
  const NodeId metadata = tree_.find(root, "metadata");
  measured_.rank =
      std::max<std::int64_t>(tree_.integer(tree_.find(metadata, "rank")).value_or(-1), -1);
  measured_.world_size =
      std::max<std::int64_t>(tree_.integer(tree_.find(metadata, "world_size")).value_or(0), 0);
}

void read(Source& source, std::string_view head, Measured& measured) {
  const std::string text = read_all(source, head);
  note_measured_end(source, measured);
  const ReadTree read = read_json_tree(text, source.name());
  if (!read.truncation.empty()) measured.notes.add(Note::truncated, read.truncation);
  DictReader(read.tree, measured).read(read.root);
  if (measured.calls.empty())
    throw Error(ErrorKind::input,
                source.name() + ": holds no summary of DeepSpeed's communication logger");
  measured.notes.add(Note::unknown_group_size);
}

}  // namespace

extern const MeasuredFormat kDeepspeedSummary;
constinit const MeasuredFormat kDeepspeedSummary{
    .name = "deepspeed_summary",
    .summary = "What DeepSpeed's log_summary(return_dict=True) returns, as JSON",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
