// A stack machine, as the format wants it: values are pushed, MARK notes a place, and a container
// swallows what lies above the last mark. Sample (PyTorch's C++ pickler, protocol 2):
//
//   80 02          PROTO 2
//   7d             EMPTY_DICT
//   28             MARK
//   58 07 00 00 00 76 65 72 73 69 6f 6e   BINUNICODE "version"
//   71 00          BINPUT 0
//   58 03 00 00 00 32 2e 39               BINUNICODE "2.9"
//   ...
//   75             SETITEMS: everything above the mark goes into the dict below it
//   2e             STOP
//
// Python itself runs code for GLOBAL with REDUCE and a dozen others. Here these are refused, but
// for the identities of torch.jit._pickle ("this list is one of integers"), whose result is their
// first argument. Each opcode costs constant time and makes at most one value, so that time and
// memory are linear in the text.
#include "ingest/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>

#include "base/decimal.h"
#include "base/error.h"
#include "base/utf8.h"

namespace commlens {
namespace {

// Every value is of one byte at least.
constexpr std::size_t kMostNodes = std::size_t{64} << 20U;

class PickleReader {
 public:
  PickleReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}
  ReadTree read();

 private:
  // The text ends inside an opcode.
  struct Cut {};

  [[noreturn]] void refuse(const std::string& why) const;
  std::string_view take(std::uint64_t length);
  std::uint64_t take_unsigned(int bytes);
  std::string_view take_line();
  NodeId pop();
  NodeId top() const;
  void push(NodeId node) { stack_.push_back(node); }
  // What lies above the last mark.
  std::vector<NodeId> pop_mark();
  void step(unsigned char code);
  bool scalar(unsigned char code);
  bool text_line(unsigned char code);
  bool counted_text(unsigned char code);
  bool container(unsigned char code);
  bool memo(unsigned char code);
  bool harmless_call(unsigned char code);
  void long_integer(std::string_view bytes);
  void push_list(const std::vector<NodeId>& items);
  void fill(NodeId target, const std::vector<NodeId>& items, NodeKind kind);
  void put(std::uint64_t at);
  void get(std::uint64_t at);
  void close_cut();

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  ReadTree result_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<NodeId> memo_;
  NodeId identity_ = kNoValue;  // stands for a harmless function on the stack
};

std::string hex(unsigned char byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0x%02x", byte);
  return text.data();
}

void PickleReader::refuse(const std::string& why) const {
  const auto code = static_cast<unsigned char>(text_[opcode_at_]);
  const std::string shown =
      code > ' ' && code < 0x7F ? hex(code) + " '" + static_cast<char>(code) + "'" : hex(code);
  throw Error(ErrorKind::input, name_ + ": byte " + std::to_string(opcode_at_) +
                                    ": pickle opcode " + shown + " " + why +
                                    "; the file is damaged or no dump, copy it again from where "
                                    "it was written");
}

std::string_view PickleReader::take(std::uint64_t length) {
  if (length > text_.size() - at_) throw Cut{};
  const std::string_view bytes = text_.substr(at_, length);
  at_ += length;
  return bytes;
}

// Little endian, of up to eight bytes.
std::uint64_t PickleReader::take_unsigned(int bytes) {
  const std::string_view raw = take(static_cast<std::uint64_t>(bytes));
  std::uint64_t value = 0;
  for (std::size_t i = raw.size(); i-- > 0;)
    value = (value << 8U) | static_cast<unsigned char>(raw[i]);
  return value;
}

std::string_view PickleReader::take_line() {
  const std::size_t end = text_.find('\n', at_);
  if (end == std::string_view::npos) throw Cut{};
  const std::string_view line = text_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

NodeId PickleReader::top() const {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) refuse("needs a value that is not there");
  return stack_.back();
}

NodeId PickleReader::pop() {
  const NodeId node = top();
  stack_.pop_back();
  return node;
}

std::vector<NodeId> PickleReader::pop_mark() {
  if (marks_.empty()) refuse("needs a mark that is not there");
  const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<NodeId> items(from, stack_.end());
  stack_.erase(from, stack_.end());
  marks_.pop_back();
  return items;
}

// Two's complement, little endian; what is beyond 64 bits has no use here.
void PickleReader::long_integer(std::string_view bytes) {
  if (bytes.size() > 8) return push(result_.tree.add_null());
  std::uint64_t value = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0
                            ? ~std::uint64_t{0}
                            : 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
  push(result_.tree.add_integer(static_cast<std::int64_t>(value)));
}

bool PickleReader::scalar(unsigned char code) {
  Tree& tree = result_.tree;
  switch (code) {
    case 'N': push(tree.add_null()); return true;
    case 0x88: push(tree.add_boolean(true)); return true;
    case 0x89: push(tree.add_boolean(false)); return true;
    case 'K': push(tree.add_integer(static_cast<std::int64_t>(take_unsigned(1)))); return true;
    case 'M': push(tree.add_integer(static_cast<std::int64_t>(take_unsigned(2)))); return true;
    case 'J':
      push(tree.add_integer(
          static_cast<std::int32_t>(static_cast<std::uint32_t>(take_unsigned(4)))));
      return true;
    case 0x8a: long_integer(take(take_unsigned(1))); return true;
    case 0x8b: long_integer(take(take_unsigned(4))); return true;
    case 'G': {
      std::uint64_t bits = 0;
      for (const char byte : take(8)) bits = (bits << 8U) | static_cast<unsigned char>(byte);
      push(tree.add_real(std::bit_cast<double>(bits)));
      return true;
    }
    default: return false;
  }
}

// Protocol 0: values as lines of text.
bool PickleReader::text_line(unsigned char code) {
  Tree& tree = result_.tree;
  if (code != 'I' && code != 'L' && code != 'F' && code != 'V') return false;
  std::string_view line = take_line();
  if (code == 'V') {
    push(tree.add_text(line));
    return true;
  }
  if (code == 'I' && (line == "00" || line == "01")) {
    push(tree.add_boolean(line == "01"));
    return true;
  }
  if (code == 'L' && line.ends_with('L')) line.remove_suffix(1);
  if (code == 'F') {
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size())
      refuse("is followed by no number");
    push(tree.add_real(value));
    return true;
  }
  const auto value = parse_int(line);
  if (!value) refuse("is followed by no whole number of 64 bits");
  push(tree.add_integer(*value));
  return true;
}

bool PickleReader::counted_text(unsigned char code) {
  int length_bytes = 0;
  switch (code) {
    case 0x8c:
    case 'C':
    case 'U': length_bytes = 1; break;
    case 'X':
    case 'B':
    case 'T': length_bytes = 4; break;
    case 0x8d:
    case 0x8e: length_bytes = 8; break;
    default: return false;
  }
  push(result_.tree.add_text(take(take_unsigned(length_bytes))));
  return true;
}

void PickleReader::push_list(const std::vector<NodeId>& items) {
  const NodeId list = result_.tree.add_list();
  for (const NodeId item : items) result_.tree.append(list, item);
  push(list);
}

// Items into the container that lies below them.
void PickleReader::fill(NodeId target, const std::vector<NodeId>& items, NodeKind kind) {
  if (result_.tree.kind(target) != kind) refuse("fills a value that is no such container");
  if (kind == NodeKind::dict && items.size() % 2 != 0) refuse("has a key without a value");
  if (std::find(items.begin(), items.end(), target) != items.end())
    refuse("puts a container into itself");
  for (const NodeId item : items) result_.tree.append(target, item);
}

bool PickleReader::container(unsigned char code) {
  Tree& tree = result_.tree;
  switch (code) {
    case '}': push(tree.add_dict()); return true;
    case ']':
    case ')':
    case 0x8f: push(tree.add_list()); return true;
    case '(': marks_.push_back(stack_.size()); return true;
    case 't':
    case 'l':
    case 0x91: push_list(pop_mark()); return true;
    case 'd': {
      const std::vector<NodeId> items = pop_mark();
      const NodeId dict = tree.add_dict();
      fill(dict, items, NodeKind::dict);
      push(dict);
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<NodeId> items(code - 0x84U);
      for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
      push_list(items);
      return true;
    }
    case 'u':
    case 'e':
    case 0x90: {
      const std::vector<NodeId> items = pop_mark();
      fill(top(), items, code == 'u' ? NodeKind::dict : NodeKind::list);
      return true;
    }
    case 's': {
      const NodeId value = pop();
      const NodeId key = pop();
      fill(top(), {key, value}, NodeKind::dict);
      return true;
    }
    case 'a': {
      const NodeId item = pop();
      fill(top(), {item}, NodeKind::list);
      return true;
    }
    default: return false;
  }
}

void PickleReader::put(std::uint64_t at) {
  // Numbers rise one by one from 0, so that none is larger than the bytes before it.
  if (at > at_) refuse("names a memo larger than the file can hold");
  if (at >= memo_.size()) memo_.resize(at + 1, kNoValue);
  memo_[at] = top();
}

void PickleReader::get(std::uint64_t at) {
  if (at >= memo_.size() || memo_[at] == kNoValue) refuse("asks for a memo that was not made");
  push(memo_[at]);
}

bool PickleReader::memo(unsigned char code) {
  const auto number_in_line = [this] {
    const auto number = parse_uint(take_line());
    if (!number) refuse("is followed by no number");
    return *number;
  };
  switch (code) {
    case 'q': put(take_unsigned(1)); return true;
    case 'r': put(take_unsigned(4)); return true;
    case 'p': put(number_in_line()); return true;
    case 0x94: put(memo_.size()); return true;
    case 'h': get(take_unsigned(1)); return true;
    case 'j': get(take_unsigned(4)); return true;
    case 'g': get(number_in_line()); return true;
    case '0':
      // Python lets POP take a mark, too.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case '1': pop_mark(); return true;
    case '2': push(top()); return true;
    default: return false;
  }
}

// GLOBAL of a function that returns its first argument, and REDUCE of it.
bool PickleReader::harmless_call(unsigned char code) {
  if (code == 'c') {
    const std::string_view module = take_line();
    const std::string_view function = take_line();
    constexpr std::string_view kIdentities[] = {"build_intlist", "build_doublelist",
                                                "build_boollist", "build_tensorlist",
                                                "restore_type_tag"};
    const bool known = std::find(std::begin(kIdentities), std::end(kIdentities), function) !=
                       std::end(kIdentities);
    if (module != "torch.jit._pickle" || !known)
      refuse("would run code (" + printable(module.substr(0, 40)) + "." +
             printable(function.substr(0, 40)) + "), which is refused");
    if (identity_ == kNoValue) identity_ = result_.tree.add_null();
    push(identity_);
    return true;
  }
  if (code != 'R') return false;
  const NodeId arguments = pop();
  if (pop() != identity_ || identity_ == kNoValue ||
      result_.tree.kind(arguments) != NodeKind::list || result_.tree.items(arguments).empty())
    refuse("would run code, which is refused");
  push(result_.tree.items(arguments).front());
  return true;
}

void PickleReader::step(unsigned char code) {
  if (code == 0x80) {
    if (const std::uint64_t version = take_unsigned(1); version > 5)
      refuse("names protocol " + std::to_string(version) + ", which is not known");
    return;
  }
  if (code == 0x95) {
    take_unsigned(8);  // FRAME: how long the next stretch is; it is read on its own
    return;
  }
  if (scalar(code) || counted_text(code) || container(code) || memo(code) || text_line(code) ||
      harmless_call(code))
    return;
  refuse("is not one of those that data needs");
}

// The text ended: what lies above each mark goes where it would have gone. A container whose end
// was lost says so; a key without its value is left out.
void PickleReader::close_cut() {
  Tree& tree = result_.tree;
  while (!marks_.empty()) {
    std::vector<NodeId> items = pop_mark();
    if (stack_.empty()) break;
    const NodeId target = stack_.back();
    const NodeKind kind = tree.kind(target);
    if (kind != NodeKind::list && kind != NodeKind::dict) continue;
    if (kind == NodeKind::dict && items.size() % 2 != 0) items.pop_back();
    for (const NodeId item : items) {
      if (item != target) tree.append(target, item);
    }
    tree.mark_cut(target);
  }
  if (!stack_.empty()) result_.root = stack_.front();
}

ReadTree PickleReader::read() {
  try {
    while (true) {
      if (result_.tree.size() > kMostNodes) refuse("comes behind more values than a dump holds");
      opcode_at_ = at_;
      result_.tree.set_position(at_);
      const auto code = static_cast<unsigned char>(take(1).front());
      if (code == '.') break;
      step(code);
    }
    result_.root = pop();
    result_.surplus_bytes = static_cast<std::int64_t>(text_.size() - at_);
  } catch (const Cut&) {
    result_.truncation =
        name_ + ": ends at byte " + std::to_string(text_.size()) + " in the middle of the pickle";
    close_cut();
  }
  if (result_.tree.first_endless(result_.root) != kNoValue)
    throw Error(ErrorKind::input, name_ + ": the pickle nests values more than " +
                                      std::to_string(Tree::kDeepest) +
                                      " deep or puts one into itself; it is no dump");
  return std::move(result_);
}

}  // namespace

ReadTree read_pickle(std::string_view text, const std::string& name) {
  return PickleReader(text, name).read();
}

}  // namespace commlens
