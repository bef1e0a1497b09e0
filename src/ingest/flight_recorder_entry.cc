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

namespace commlens {
namespace {

// Enough for any real tensor; what is beyond is a hostile tree.
constexpr std::size_t kMostTensors = 4096;
constexpr std::size_t kMostDimensions = 64;

struct Shapes {
  StringId text;
  std::int64_t elements = -1;
};

// "[[2048, 5120], [16]]" and how many elements these are together.
Shapes shapes_of(const Tree& tree, NodeId tensors, Witness& witness) {
  if (tensors == kNoNode || tree.kind(tensors) != NodeKind::list) return {};
  std::string text = "[";
  std::int64_t total = 0;
  bool known = tree.items(tensors).size() <= kMostTensors;
  for (const NodeId tensor : tree.items(tensors)) {
    if (!known || tree.kind(tensor) != NodeKind::list ||
        tree.items(tensor).size() > kMostDimensions) {
      known = false;
      break;
    }
    text += text.size() > 1 ? ", [" : "[";
    std::int64_t elements = 1;
    for (const NodeId dimension : tree.items(tensor)) {
      const auto length = tree.integer(dimension);
      if (!length || *length < 0 || __builtin_mul_overflow(elements, *length, &elements))
        known = false;
      text += (text.back() == '[' ? "" : ", ") + std::to_string(length.value_or(-1));
    }
    if (__builtin_add_overflow(total, elements, &total)) known = false;
    text += "]";
  }
  if (!known) return {};
  return {witness.strings.intern(text + "]"), total};
}

// One word where all tensors have the same type.
StringId dtypes_of(const Tree& tree, NodeId tensors, Witness& witness) {
  if (tensors == kNoNode || tree.kind(tensors) != NodeKind::list) return {};
  std::vector<std::string_view> words;
  for (const NodeId tensor : tree.items(tensors)) {
    if (words.size() > kMostTensors) return {};
    words.push_back(tree.text(tensor));
  }
  if (words.empty()) return {};
  if (std::all_of(words.begin(), words.end(), [&](auto word) { return word == words.front(); }))
    return witness.strings.intern(words.front());
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ",") + std::string(word);
  return witness.strings.intern(text);
}

CallState state_of(std::string_view word) {
  if (word == "scheduled") return CallState::scheduled;
  if (word == "started") return CallState::started;
  return word == "completed" ? CallState::completed : CallState::unknown;
}

// "nccl:send 0->1": group ranks, the sender's first; "recv 1<-0": the receiver's first. In both the
// process itself stands first.
void read_name(std::string_view name, WitnessCall& call, Witness& witness) {
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos)
    name.remove_prefix(colon + 1);
  const std::size_t blank = std::min(name.find(' '), name.size());
  const std::string_view word = name.substr(0, blank);
  call.op_text = witness.strings.intern(word);
  call.op = op_from_collective_name(word).value_or(Op::unknown);
  call.closes_coalesced = word == "coalesced" || word.ends_with("_coalesced");
  // These are operations of their own, not the end of a group of calls.
  if (word == "allreduce_coalesced" || word == "all_gather_into_tensor_coalesced" ||
      word == "reduce_scatter_tensor_coalesced")
    call.closes_coalesced = false;
  const std::string_view ends = name.substr(blank);
  const std::size_t arrow = std::min(ends.find("->"), ends.find("<-"));
  if (arrow == std::string_view::npos || blank == name.size()) return;
  call.group_rank = parse_int(ends.substr(1, arrow - 1)).value_or(-1);
  call.peer = parse_int(ends.substr(arrow + 2)).value_or(-1);
}

// The innermost frames are the library's own; the first of another file is the program's.
StringId code_of(const Tree& tree, NodeId frames, Witness& witness) {
  if (frames == kNoNode || tree.kind(frames) != NodeKind::list) return {};
  for (const NodeId frame : tree.items(frames)) {
    std::string_view file = tree.text(tree.find(frame, "filename"));
    if (file.empty() || file.find("torch/distributed") != std::string_view::npos) continue;
    file.remove_prefix(file.rfind('/') + 1);
    const auto line = tree.integer(tree.find(frame, "line"));
    return witness.strings.intern(std::string(file.substr(0, 80)) +
                                  (line ? ":" + std::to_string(*line) : "") + " " +
                                  std::string(tree.text(tree.find(frame, "name")).substr(0, 80)));
  }
  return {};
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

std::optional<std::uint32_t> flight_recorder_group(const Tree& tree, NodeId entry,
                                                   Witness& witness) {
  std::string name;
  std::string description;
  const NodeId pair = tree.find(entry, "process_group");
  if (pair != kNoNode && tree.kind(pair) == NodeKind::list && !tree.items(pair).empty()) {
    name = tree.text(tree.items(pair).front());
    if (tree.items(pair).size() > 1) description = tree.text(tree.items(pair)[1]);
  } else if (const auto id = tree.integer(tree.find(entry, "pg_id"))) {
    name = std::to_string(*id);
  }
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < witness.groups.size(); ++i) {
    if (witness.groups[i].name == name) return static_cast<std::uint32_t>(i);
  }
  witness.groups.push_back({.name = name, .description = description, .members = {}, .size = 0});
  return static_cast<std::uint32_t>(witness.groups.size() - 1);
}

std::optional<WitnessCall> flight_recorder_call(const Tree& tree, NodeId entry, Witness& witness) {
  if (tree.kind(entry) != NodeKind::dict || tree.cut(entry)) return std::nullopt;
  const std::string_view name = tree.text(tree.find(entry, "profiling_name"));
  if (name.empty()) return std::nullopt;
  const auto group = flight_recorder_group(tree, entry, witness);
  if (!group) return std::nullopt;
  WitnessCall call;
  call.group = *group;
  read_name(name, call, witness);
  read_numbers(tree, entry, call);
  if (call.number < 0) return std::nullopt;
  call.where = tree.position(entry);
  call.state = state_of(tree.text(tree.find(entry, "state")));
  call.gave_up = call.state != CallState::completed &&
                 tree.boolean(tree.find(entry, "retired")).value_or(false);
  const Shapes in = shapes_of(tree, tree.find(entry, "input_sizes"), witness);
  const Shapes out = shapes_of(tree, tree.find(entry, "output_sizes"), witness);
  call.in_shape = in.text;
  call.out_shape = out.text;
  call.in_elements = in.elements;
  call.out_elements = out.elements;
  call.in_dtype = dtypes_of(tree, tree.find(entry, "input_dtypes"), witness);
  call.out_dtype = dtypes_of(tree, tree.find(entry, "output_dtypes"), witness);
  if (const std::string_view thread = tree.text(tree.find(entry, "thread_id")); !thread.empty())
    call.thread = witness.strings.intern(thread);
  call.code = code_of(tree, tree.find(entry, "frames"), witness);
  return call;
}

}  // namespace commlens
