// Sample, as JSON (pickles hold the same tree):
//
//   {"record_id": 1, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 2,
//    "p2p_seq_id": 0, "op_id": 2, "profiling_name": "nccl:_all_gather_base",
//    "time_created_ns": 1767189313000000000, "input_sizes": [[4096]], "input_dtypes": ["BFloat16"],
//    "output_sizes": [[8192]], "output_dtypes": ["BFloat16"], "state": "scheduled",
//    "retired": false, "timeout_ms": 600000, "is_p2p": false}
//
// What it says that is not to be believed: `collective_seq_id` of a send or recv repeats the
// group's last collective; `pg_id` means something in this process only; `state` is never "started"
// without timing, and stays "scheduled" until the watchdog looks. Version 1 has one `seq_id` for
// both kinds, and `pg_id` alone names the group.
#include "ingest/flight_recorder_entry.h"

#include <algorithm>

#include "base/decimal.h"
#include "ingest/witness_secrets.h"

namespace commlens {
namespace {

// Enough for any real call; what is beyond is a hostile tree.
constexpr std::size_t kMostTensors = 1024;
constexpr std::size_t kMostDimensions = 16;
constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostTextBytes = std::size_t{256} << 20U;

CallState state_of(std::string_view word) {
  if (word == "scheduled") return CallState::scheduled;
  if (word == "started") return CallState::started;
  return word == "completed" ? CallState::completed : CallState::unknown;
}

// "[2048, 5120]" behind `text`; how many elements these are, or -1.
std::int64_t append_shape(const Tree& tree, NodeId tensor, std::string& text) {
  if (tree.kind(tensor) != NodeKind::list || tree.items(tensor).size() > kMostDimensions) return -1;
  text += '[';
  std::int64_t elements = 1;
  for (const NodeId dimension : tree.items(tensor)) {
    const auto length = tree.integer(dimension);
    if (!length || *length < 0 || __builtin_mul_overflow(elements, *length, &elements)) return -1;
    text += (text.back() == '[' ? "" : ", ") + std::to_string(*length);
  }
  text += ']';
  return elements;
}

void read_numbers(const Tree& tree, NodeId entry, WitnessCall& call) {
  const auto number = [&](std::string_view key) { return tree.integer(tree.find(entry, key)); };
  call.record = number("record_id").value_or(-1);
  call.created_ns = std::max<std::int64_t>(0, number("time_created_ns").value_or(0));
  call.timeout_ms = std::max<std::int64_t>(0, number("timeout_ms").value_or(0));
  const bool named = call.op == Op::send || call.op == Op::recv;
  call.p2p = tree.boolean(tree.find(entry, "is_p2p")).value_or(named);
  const auto own = number(call.p2p ? "p2p_seq_id" : "collective_seq_id");
  call.number = own ? *own : number("seq_id").value_or(-1);
}

}  // namespace

FlightRecorderEntries::FlightRecorderEntries(const Tree& tree, Witness& witness)
    : tree_(tree), witness_(witness) {
  for (std::size_t i = 0; i < witness.groups.size(); ++i)
    groups_.emplace(witness.groups[i].name, static_cast<std::uint32_t>(i));
}

// Of `pg_config`, or one that only entries name.
std::optional<std::uint32_t> FlightRecorderEntries::group(NodeId entry) {
  std::string name;
  std::string description;
  const NodeId pair = tree_.find(entry, "process_group");
  if (pair != kNoValue && tree_.kind(pair) == NodeKind::list && !tree_.items(pair).empty()) {
    name = tree_.text(tree_.items(pair).front());
    if (tree_.items(pair).size() > 1)
      description = without_secrets(tree_.text(tree_.items(pair)[1]));
  } else if (const auto id = tree_.integer(tree_.find(entry, "pg_id"))) {
    name = std::to_string(*id);
  }
  if (name.empty()) return std::nullopt;
  if (description == "undefined") description.clear();
  const auto [at, is_new] =
      groups_.try_emplace(name, static_cast<std::uint32_t>(witness_.groups.size()));
  if (is_new)
    witness_.groups.push_back({.name = name, .description = description, .members = {}, .size = 0});
  return at->second;
}

// "nccl:send 0->1": group ranks, the sender's first; "recv 1<-0": the receiver's first. In both the
// process itself stands first.
void FlightRecorderEntries::read_name(std::string_view name, WitnessCall& call) {
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos)
    name.remove_prefix(colon + 1);
  const std::size_t blank = std::min(name.find(' '), name.size());
  const std::string_view word = name.substr(0, blank);
  call.op_text = witness_.strings.intern(without_secrets(word));
  call.op = op_from_collective_name(word).value_or(Op::unknown);
  // The end of a group of calls; the other names that end so are operations of their own.
  call.closes_coalesced =
      (word == "coalesced" || word.ends_with("_coalesced")) && word != "allreduce_coalesced" &&
      word != "all_gather_into_tensor_coalesced" && word != "reduce_scatter_tensor_coalesced";
  const std::string_view ends = name.substr(blank);
  const std::size_t arrow = std::min(ends.find("->"), ends.find("<-"));
  if (arrow == std::string_view::npos || arrow == 0) return;
  call.group_rank = parse_int(ends.substr(1, arrow - 1)).value_or(-1);
  call.peer = parse_int(ends.substr(arrow + 2)).value_or(-1);
}

// "[[2048, 5120], [16]]" and how many elements these are together.
FlightRecorderEntries::Shapes FlightRecorderEntries::shapes(NodeId tensors) {
  if (tensors == kNoValue || tree_.kind(tensors) != NodeKind::list ||
      tree_.items(tensors).size() > kMostTensors)
    return {};
  const auto [at, is_new] = shapes_.try_emplace(tensors);
  if (!is_new || witness_.strings.bytes() > kMostTextBytes) return at->second;
  std::string text = "[";
  std::int64_t total = 0;
  for (const NodeId tensor : tree_.items(tensors)) {
    if (text.size() > 1) text += ", ";
    const std::int64_t elements = append_shape(tree_, tensor, text);
    if (elements < 0 || __builtin_add_overflow(total, elements, &total)) return at->second;
  }
  at->second = {witness_.strings.intern(text + "]"), total};
  return at->second;
}

// One word where all tensors have the same type.
StringId FlightRecorderEntries::dtypes(NodeId tensors) {
  if (tensors == kNoValue || tree_.kind(tensors) != NodeKind::list ||
      tree_.items(tensors).empty() || tree_.items(tensors).size() > kMostTensors)
    return {};
  const auto [at, is_new] = dtypes_.try_emplace(tensors);
  if (!is_new || witness_.strings.bytes() > kMostTextBytes) return at->second;
  const std::string_view first = tree_.text(tree_.items(tensors).front());
  std::string text;
  bool same = true;
  for (const NodeId tensor : tree_.items(tensors)) {
    const std::string_view word = tree_.text(tensor).substr(0, 40);
    same &= word == first;
    text += (text.empty() ? "" : ",") + std::string(word);
  }
  at->second = witness_.strings.intern(same ? first : std::string_view(text));
  return at->second;
}

// The innermost frames are the library's own; the first of another file is the program's.
StringId FlightRecorderEntries::code(NodeId frames) {
  if (frames == kNoValue || tree_.kind(frames) != NodeKind::list) return {};
  const auto [at, is_new] = codes_.try_emplace(frames);
  if (!is_new || witness_.strings.bytes() > kMostTextBytes) return at->second;
  const std::vector<NodeId>& list = tree_.items(frames);
  for (std::size_t i = 0; i < std::min(kMostFrames, list.size()); ++i) {
    std::string_view file = tree_.text(tree_.find(list[i], "filename"));
    if (file.empty() || file.find("torch/distributed") != std::string_view::npos) continue;
    file.remove_prefix(file.rfind('/') + 1);
    const auto line = tree_.integer(tree_.find(list[i], "line"));
    at->second = witness_.strings.intern(without_secrets(
        std::string(file.substr(0, 80)) + (line ? ":" + std::to_string(*line) : "") + " " +
        std::string(tree_.text(tree_.find(list[i], "name")).substr(0, 80))));
    break;
  }
  return at->second;
}

std::optional<WitnessCall> FlightRecorderEntries::call(NodeId entry) {
  if (tree_.kind(entry) != NodeKind::dict || tree_.cut(entry) || !seen_.insert(entry).second)
    return std::nullopt;
  const std::string_view name = tree_.text(tree_.find(entry, "profiling_name"));
  if (name.empty()) return std::nullopt;
  WitnessCall call;
  read_name(name.substr(0, 200), call);
  read_numbers(tree_, entry, call);
  const auto own_group = group(entry);
  if (call.number < 0 || !own_group) return std::nullopt;
  call.group = *own_group;
  call.where = tree_.position(entry);
  call.state = state_of(tree_.text(tree_.find(entry, "state")));
  call.gave_up = call.state != CallState::completed &&
                 tree_.boolean(tree_.find(entry, "retired")).value_or(false);
  const Shapes in = shapes(tree_.find(entry, "input_sizes"));
  const Shapes out = shapes(tree_.find(entry, "output_sizes"));
  call.in_shape = in.text;
  call.out_shape = out.text;
  call.in_elements = in.elements;
  call.out_elements = out.elements;
  call.in_dtype = dtypes(tree_.find(entry, "input_dtypes"));
  call.out_dtype = dtypes(tree_.find(entry, "output_dtypes"));
  if (const std::string_view thread = tree_.text(tree_.find(entry, "thread_id")); !thread.empty())
    call.thread = witness_.strings.intern(thread.substr(0, 40));
  call.code = code(tree_.find(entry, "frames"));
  return call;
}

}  // namespace commlens
