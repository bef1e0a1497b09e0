// PyTorch execution traces (ET, also "Chakra host trace"): what a process called, in its order, and
// no times.
//
//   {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "...", "start_ts": 1, "nodes": [
//     {"id": 22, "name": "record_param_comms", "ctrl_deps": 21,
//      "inputs": {"values": [[[5,6,0,1024,4,"cuda:0"]], 12, ["0","default_pg"], 3, "all_gather",
//      [], [],
//                            0, 1, 8], "shapes": ..., "types": ...},
//      "outputs": {...},
//      "attrs": [{"name": "collective_name", "type": "string", "value": "all_gather"},
//                {"name": "in_msg_nelems", "type": "uint64", "value": 1024}, ...]}, ...
//
// Newer traces have attributes with names; in older ones the values stand in an order: tensors,
// sequence number, group (a handle, or name and description), rank in it, name of the collective,
// two lists of splits, first rank and stride (one list, or two numbers), ranks. A call that PyTorch
// makes of another (a barrier of an all-reduce) has a node inside the node of the other: it is not
// counted. A node "## process_group:init ##" lists the groups with their ranks.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/json_tree.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"
#include "ingest/window.h"
#include "model/bandwidth.h"

namespace commlens {
namespace {

constexpr std::string_view kCommNode = "record_param_comms";
constexpr std::string_view kGroupNode = "## process_group:init ##";
constexpr std::int64_t kMostRanks = std::int64_t{1} << 18U;

std::string text_of(const Token& token) {
  return token.escaped ? unescaped(token.text) : std::string(token.text);
}

std::int64_t number_of(const Token& token) {
  const bool may = token.kind == TokenKind::number || token.kind == TokenKind::string;
  return may ? parse_int(token.text).value_or(-1) : -1;
}

Walker inside(const Token& container) {
  return {container.text.data() + 1, container.text.data() + container.text.size()};
}

// One node of the trace, as far as it is read.
struct Node {
  std::int64_t id = -1;
  std::int64_t parent = -1;
  std::string name;
  Token inputs;  // of "values"; in the text that the node was read from
  std::map<std::string, std::string, std::less<>> attributes;
};

void read_attributes(const Token& list, Node& node) {
  if (list.kind != TokenKind::array) return;
  Walker walker = inside(list);
  while (walker.next_element()) {
    if (!walker.enter_object()) continue;
    std::string name;
    std::string value;
    std::string_view key;
    while (walker.next_key(key)) {
      const bool is_name = key == "name";
      const bool is_value = key == "value";
      const Token token = walker.value();
      if (is_name) name = text_of(token);
      if (is_value) value = text_of(token);
    }
    if (!name.empty()) node.attributes[name] = value;
  }
}

void read_inputs(const Token& object, Node& node) {
  // The oldest traces have the values alone.
  if (object.kind == TokenKind::array) node.inputs = object;
  if (object.kind != TokenKind::object) return;
  Walker walker = inside(object);
  std::string_view key;
  while (walker.next_key(key)) {
    const bool values = key == "values";
    const Token token = walker.value();
    if (values) node.inputs = token;
  }
}

// `text` is the whole object.
std::optional<Node> read_node(std::string_view text) {
  Node node;
  Token attributes;
  Token inputs;
  Walker walker(text.data() + 1, text.data() + text.size());
  std::string_view key;
  while (walker.next_key(key)) {
    const std::string name(key.substr(0, 20));
    const Token token = walker.value();
    if (name == "id") node.id = number_of(token);
    if (name == "name") node.name = text_of(token);
    // Older traces call it so.
    if (name == "ctrl_deps" || name == "parent") node.parent = number_of(token);
    if (name == "inputs") inputs = token;
    if (name == "attrs") attributes = token;
  }
  if (walker.state() != Scan::ok || node.name.empty()) return std::nullopt;
  if (node.name == kCommNode) read_attributes(attributes, node);
  if (node.name == kCommNode || node.name == kGroupNode) read_inputs(inputs, node);
  return node;
}

// What a call's node says, of either form.
struct Call {
  std::string name;
  std::string group;
  std::string description;
  std::string dtype;
  std::int64_t rank = -1;  // in the group
  std::int64_t number = -1;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t element_size = -1;
  std::int64_t first_rank = -1;
  std::int64_t stride = -1;
  std::int64_t ranks = 0;
};

// [[5,6,0,1024,4,"cuda:0"], ...]: elements of all, and bytes of one.
void read_tensors(const Token& list, Call& call) {
  if (list.kind != TokenKind::array) return;
  Walker tensors = inside(list);
  while (tensors.next_element()) {
    const Token tensor = tensors.value();
    if (tensor.kind != TokenKind::array) continue;
    Walker fields = inside(tensor);
    for (int i = 0; fields.next_element(); ++i) {
      const std::int64_t value = number_of(fields.value());
      if (i == 3 && value >= 0) {
        std::int64_t sum = 0;
        if (!__builtin_add_overflow(std::max<std::int64_t>(call.in_elements, 0), value, &sum))
          call.in_elements = sum;
      }
      if (i == 4) call.element_size = value;
    }
  }
}

void read_group_value(const Token& token, Call& call) {
  if (token.kind == TokenKind::string || token.kind == TokenKind::number) {
    call.group = text_of(token);
    return;
  }
  if (token.kind != TokenKind::array) return;
  Walker words = inside(token);
  for (int i = 0; words.next_element(); ++i) {
    const Token word = words.value();
    if (i == 0) call.group = text_of(word);
    if (i == 1) call.description = text_of(word);
  }
}

// By place, from the name of the collective on.
void read_values(const Token& list, Call& call) {
  if (list.kind != TokenKind::array) return;
  std::vector<Token> values;
  Walker walker = inside(list);
  constexpr std::size_t kMostValues = 16;
  while (walker.next_element() && values.size() < kMostValues) values.push_back(walker.value());
  std::size_t name = 0;
  while (name < values.size() && (values[name].kind != TokenKind::string ||
                                  !op_from_collective_name(text_of(values[name]))))
    ++name;
  if (name < 4 || name == values.size()) return;
  call.name = text_of(values[name]);
  call.rank = number_of(values[name - 1]);
  read_group_value(values[name - 2], call);
  call.number = number_of(values[name - 3]);
  for (std::size_t i = 0; i + 3 < name; ++i) read_tensors(values[i], call);
  std::vector<std::int64_t> rest;
  for (std::size_t i = name + 3; i < values.size(); ++i) {
    if (values[i].kind == TokenKind::array) {
      Walker pair = inside(values[i]);
      while (pair.next_element() && rest.size() < kMostValues)
        rest.push_back(number_of(pair.value()));
    } else {
      rest.push_back(number_of(values[i]));
    }
  }
  if (rest.size() < 3) return;
  call.first_rank = rest[0];
  call.stride = rest[1];
  call.ranks = std::max<std::int64_t>(rest[2], 0);
}

void read_named(const Node& node, Call& call) {
  const auto text = [&](std::string_view key, std::string& value) {
    const auto found = node.attributes.find(key);
    if (found != node.attributes.end() && !found->second.empty()) value = found->second;
  };
  const auto number = [&](std::string_view key, std::int64_t& value) {
    const auto found = node.attributes.find(key);
    if (found == node.attributes.end()) return;
    if (const auto parsed = parse_int(found->second)) value = *parsed;
  };
  text("collective_name", call.name);
  text("dtype", call.dtype);
  text("pg_name", call.group);
  text("pg_desc", call.description);
  number("in_msg_nelems", call.in_elements);
  number("out_msg_nelems", call.out_elements);
  number("global_rank_start", call.first_rank);
  number("global_rank_stride", call.stride);
  number("pg_size", call.ranks);
  if (const auto size = element_bytes(call.dtype)) call.element_size = *size;
}

class TraceReader {
 public:
  TraceReader(Source& source, std::string_view head, Measured& measured)
      : source_(source), window_(source, head), measured_(measured), groups_(measured) {}
  void read();
  bool seen() const { return seen_; }
  // Where the list of nodes stops to be one; empty: it is whole.
  const std::string& stop() const { return stop_; }
  std::int64_t odd_nodes() const { return odd_nodes_; }

 private:
  void stop_at(const char* at, std::string_view why);
  bool find_nodes();
  bool next_node();
  bool skip_junk(const char* at);
  void node(const Node& node, std::int64_t where);
  void call(const Node& node, std::int64_t where);
  void groups(const Node& node);
  MeasuredGroup group_of(const Call& call) const;
  bool wait_for_more(const char* at);

  Source& source_;
  Window window_;
  Measured& measured_;
  GroupIndex groups_;
  bool seen_ = false;  // the list of nodes
  std::string stop_;
  std::int64_t odd_nodes_ = 0;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> ranks_;  // by group
  std::unordered_map<std::int64_t, bool> in_call_;  // by node: it or a parent is a call
};

// More text behind what is not used from `at` on. False at the end.
bool TraceReader::wait_for_more(const char* at) {
  window_.use(at);
  return window_.refill();
}

// To the first byte behind the bracket of "nodes". What stands before is short.
bool TraceReader::find_nodes() {
  for (;;) {
    const std::string_view text(window_.begin(), window_.size());
    const std::size_t open = text.find('{');
    if (open != std::string_view::npos) {
      Walker walker(text.data() + open + 1, text.data() + text.size());
      std::string_view key;
      while (walker.next_key(key)) {
        if (key == "nodes" && *walker.at() == '[') {
          window_.use(walker.at() + 1);
          return true;
        }
        walker.skip_value();
      }
      if (walker.state() != Scan::need_more) return false;
    }
    if (!wait_for_more(window_.begin())) return false;
  }
}

void TraceReader::stop_at(const char* at, std::string_view why) {
  stop_ = std::string(why) + " at byte " + std::to_string(window_.offset(at));
}

// Passes over a value that is no node. False where there is none.
bool TraceReader::skip_junk(const char* at) {
  for (;;) {
    Walker walker(at, window_.end());
    walker.skip_value();
    if (walker.state() == Scan::ok && walker.at() > at) {
      measured_.notes.add(Note::odd_record, "byte " + std::to_string(window_.offset(at)));
      ++odd_nodes_;
      window_.use(walker.at());
      return true;
    }
    if (walker.state() != Scan::need_more || !window_.refill()) {
      stop_at(window_.begin(), walker.state() == Scan::need_more ? "ends" : "is no JSON any more");
      return false;
    }
    at = window_.begin();
  }
}

// False at the end of the list, or of the text.
bool TraceReader::next_node() {
  for (;;) {
    const char* at = window_.begin();
    while (at < window_.end() && (static_cast<unsigned char>(*at) <= ' ' || *at == ',')) ++at;
    if (at < window_.end() && *at == ']') return false;
    window_.use(at);
    if (at < window_.end() && *at != '{') return skip_junk(at);
    Scan state = Scan::need_more;
    const char* end = at;
    if (at < window_.end()) {
      ContainerSkipper skipper;
      end = at + 1;
      state = skipper.feed(end, window_.end());
    }
    if (state == Scan::ok) {
      const std::int64_t where = window_.offset(at);
      const auto read = read_node({at, static_cast<std::size_t>(end - at)});
      ++measured_.records;
      if (read) {
        node(*read, where);
      } else {
        measured_.notes.add(Note::odd_record, "byte " + std::to_string(where));
        ++odd_nodes_;
      }
      window_.use(end);
      return true;
    }
    if (state == Scan::bad || !window_.refill()) {
      stop_at(window_.begin(), state == Scan::bad ? "is no JSON any more" : "ends");
      return false;
    }
  }
}

void TraceReader::read() {
  if (!find_nodes()) return;
  seen_ = true;
  while (next_node()) {
  }
  if (!stop_.empty()) measured_.notes.add(Note::truncated, "the list of nodes " + stop_);
  // What stands behind the nodes says nothing more.
  std::string rest(std::size_t{64} << 10U, '\0');
  while (source_.read({rest.data(), rest.size()}) > 0) {
  }
  note_measured_end(source_, measured_);
}

void TraceReader::node(const Node& node, std::int64_t where) {
  const auto parent = in_call_.find(node.parent);
  const bool inner = parent != in_call_.end() && parent->second;
  const bool is_call = node.name == kCommNode;
  if (node.id >= 0 && (is_call || inner)) in_call_[node.id] = true;
  if (is_call && !inner) call(node, where);
  if (node.name == kGroupNode) groups(node);
}

MeasuredGroup TraceReader::group_of(const Call& call) const {
  MeasuredGroup group{.id = call.group, .name = call.description, .size = call.ranks};
  const auto listed = ranks_.find(call.group);
  if (listed != ranks_.end()) {
    group.ranks = listed->second;
    if (group.size == 0) group.size = static_cast<std::int64_t>(group.ranks.size());
    return group;
  }
  std::int64_t last = 0;
  const bool even = call.first_rank >= 0 && call.stride > 0 && call.ranks > 0 &&
                    call.ranks <= kMostRanks &&
                    !__builtin_mul_overflow(call.stride, call.ranks, &last) &&
                    !__builtin_add_overflow(last, call.first_rank, &last);
  if (!even) return group;
  for (std::int64_t i = 0; i < call.ranks; ++i)
    group.ranks.push_back(call.first_rank + i * call.stride);
  return group;
}

void TraceReader::call(const Node& node, std::int64_t where) {
  Call read;
  read_values(node.inputs, read);
  read_named(node, read);
  const auto op = op_from_collective_name(read.name);
  // "wait", "init" and the like are no communication.
  if (!op) return;
  MeasuredCall call;
  call.group = groups_.add(group_of(read));
  call.op = *op;
  call.op_text = measured_.strings.intern(read.name);
  if (!read.dtype.empty()) call.dtype = measured_.strings.intern(read.dtype);
  if (read.rank >= 0 && (read.ranks == 0 || read.rank < read.ranks) && read.rank < kMostRanks)
    call.rank = static_cast<std::int32_t>(read.rank);
  call.number = read.number;
  const auto bytes = message_bytes(*op, read.in_elements, read.out_elements, read.element_size);
  if (bytes && *bytes <= kLargestMessage) {
    call.bytes = *bytes;
    call.message = *bytes;
  }
  if (bytes && *bytes > kLargestMessage)
    measured_.notes.add(Note::absurd_size, "byte " + std::to_string(where));
  call.where = where;
  measured_.calls.push_back(call);
  measured_.notes.add(Note::untimed_call, "byte " + std::to_string(where));
}

// A JSON text in a string: [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1], ...}].
void TraceReader::groups(const Node& node) {
  if (node.inputs.kind != TokenKind::array) return;
  Walker walker = inside(node.inputs);
  if (!walker.next_element()) return;
  const Token text = walker.value();
  if (text.kind != TokenKind::string) return;
  try {
    const ReadTree read = read_json_tree(unescaped(text.text), "process_group:init");
    if (read.root == kNoValue || read.tree.kind(read.root) != NodeKind::list) return;
    for (const NodeId group : read.tree.items(read.root)) {
      const NodeId members = read.tree.find(group, "ranks");
      const std::string name(read.tree.text(read.tree.find(group, "pg_name")));
      if (name.empty() || members == kNoValue || read.tree.kind(members) != NodeKind::list)
        continue;
      std::vector<std::int64_t> ranks;
      for (const NodeId member : read.tree.items(members)) {
        const auto rank = read.tree.integer(member);
        if (rank && *rank >= 0) ranks.push_back(*rank);
      }
      std::sort(ranks.begin(), ranks.end());
      if (!ranks.empty()) ranks_[name] = std::move(ranks);
    }
  } catch (const Error& error) {
    measured_.notes.add(Note::malformed_metadata, error.what());
  }
}

bool sniff(std::string_view head) {
  if (!trimmed_text(head).starts_with('{')) return false;
  if (head.find("\"traceEvents\"") != std::string_view::npos) return false;
  const std::size_t nodes = head.find("\"nodes\"");
  return nodes != std::string_view::npos &&
         head.substr(0, nodes).find("\"schema\"") != std::string_view::npos &&
         (head.find("\"ctrl_deps\"", nodes) != std::string_view::npos ||
          head.find("\"parent\"", nodes) != std::string_view::npos);
}

void read(Source& source, std::string_view head, Measured& measured) {
  TraceReader reader(source, head, measured);
  reader.read();
  if (!reader.seen())
    throw Error(ErrorKind::input, source.name() + ": holds no list of nodes of an execution trace");
  if (measured.calls.empty() && !reader.stop().empty())
    throw Error(ErrorKind::input, source.name() + ": its list of nodes " + reader.stop() +
                                      ", before any communication (" + std::string(kCommNode) +
                                      "); the file was cut or damaged");
  if (measured.calls.empty() && reader.odd_nodes() > 0)
    throw Error(ErrorKind::input, source.name() + ": " + std::to_string(reader.odd_nodes()) +
                                      " of its nodes cannot be read, and no other is communication"
                                      " (" +
                                      std::string(kCommNode) + ")");
  if (measured.calls.empty())
    throw Error(ErrorKind::input, source.name() + ": its nodes hold no communication (" +
                                      std::string(kCommNode) +
                                      "); was torch.distributed in use while it was recorded?");
}

}  // namespace

extern const MeasuredFormat kExecutionTrace;
constinit const MeasuredFormat kExecutionTrace{
    .name = "execution_trace",
    .summary = "PyTorch execution traces (Chakra host traces), JSON",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
