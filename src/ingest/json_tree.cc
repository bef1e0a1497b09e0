#include "ingest/json_tree.h"

#include <charconv>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/json_scan.h"

namespace commlens {
namespace {

class JsonTreeReader {
 public:
  JsonTreeReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}
  ReadTree read();

 private:
  struct Cut {};

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, name_ + ": byte " + std::to_string(at_) + ": " + what +
                                      "; the file is damaged, copy it again from where it was "
                                      "written");
  }
  char peek() const {
    if (at_ >= text_.size()) throw Cut{};
    return text_[at_];
  }
  void skip_blanks() {
    while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) <= ' ') ++at_;
  }
  void add(NodeId node);
  void value();
  void member();
  NodeId string();
  NodeId scalar();
  void close(char bracket);

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  ReadTree result_;
  std::vector<NodeId> open_;
};

void JsonTreeReader::add(NodeId node) {
  if (open_.empty()) {
    result_.root = node;
  } else {
    result_.tree.append(open_.back(), node);
  }
}

NodeId JsonTreeReader::string() {
  std::size_t end = at_ + 1;
  bool escaped = false;
  while (end < text_.size() && text_[end] != '"') {
    escaped |= text_[end] == '\\';
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= text_.size()) throw Cut{};
  const std::string_view raw = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return escaped ? result_.tree.add_text(unescaped(raw)) : result_.tree.add_text(raw);
}

NodeId JsonTreeReader::scalar() {
  std::size_t end = text_.find_first_of(" \t\r\n,]}:[{\"", at_);
  if (end == std::string_view::npos) {
    // A whole file of one word is not cut.
    const std::string_view rest = text_.substr(at_);
    if (!open_.empty() || (rest != "null" && rest != "true" && rest != "false")) throw Cut{};
    end = text_.size();
  }
  const std::string_view word = text_.substr(at_, end - at_);
  Tree& tree = result_.tree;
  NodeId node = kNoValue;
  double real = 0;
  if (word == "true" || word == "false") {
    node = tree.add_boolean(word == "true");
  } else if (word == "null" || word == "NaN" || word == "Infinity" || word == "-Infinity") {
    node = tree.add_null();
  } else if (const auto number = parse_int(word)) {
    node = tree.add_integer(*number);
  } else if (const auto [last, error] =
                 std::from_chars(word.data(), word.data() + word.size(), real);
             error == std::errc() && last == word.data() + word.size()) {
    node = tree.add_real(real);
  } else {
    refuse("no JSON value stands here");
  }
  at_ = end;
  return node;
}

// A value, or the beginning of a container.
void JsonTreeReader::value() {
  const char first = peek();
  result_.tree.set_position(at_);
  if (first == '"') return add(string());
  if (first != '{' && first != '[') return add(scalar());
  if (open_.size() >= Tree::kDeepest)
    refuse("values nest more than " + std::to_string(Tree::kDeepest) + " deep");
  const NodeId container = first == '{' ? result_.tree.add_dict() : result_.tree.add_list();
  add(container);
  open_.push_back(container);
  ++at_;
}

// A key and its value; the key counts only once its value has begun.
void JsonTreeReader::member() {
  if (peek() != '"') refuse("a key in quotes should stand here");
  const NodeId key = string();
  skip_blanks();
  if (peek() != ':') refuse("a colon should stand behind the key");
  ++at_;
  skip_blanks();
  const char first = peek();
  const bool whole = first != '{' && first != '[';
  const NodeId node = !whole ? kNoValue : first == '"' ? string() : scalar();
  add(key);
  if (whole) return add(node);
  value();
}

void JsonTreeReader::close(char bracket) {
  const bool dict = result_.tree.kind(open_.back()) == NodeKind::dict;
  if ((bracket == '}') != dict) refuse("the wrong bracket closes a value");
  open_.pop_back();
  ++at_;
}

ReadTree JsonTreeReader::read() {
  try {
    skip_blanks();
    value();
    bool first = true;  // nothing was read yet in the innermost container
    while (!open_.empty()) {
      skip_blanks();
      if (peek() == '}' || peek() == ']') {
        close(text_[at_]);
        first = false;
        continue;
      }
      if (!first) {
        if (peek() != ',') refuse("a comma or a closing bracket should stand here");
        ++at_;
        skip_blanks();
        peek();
      }
      const std::size_t depth = open_.size();
      if (result_.tree.kind(open_.back()) == NodeKind::dict) {
        member();
      } else {
        value();
      }
      first = open_.size() > depth;
    }
    skip_blanks();
    result_.surplus_bytes = static_cast<std::int64_t>(text_.size() - at_);
  } catch (const Cut&) {
    result_.truncation =
        name_ + ": ends at byte " + std::to_string(text_.size()) + " in the middle of the JSON";
    for (const NodeId container : open_) result_.tree.mark_cut(container);
  }
  return std::move(result_);
}

}  // namespace

ReadTree read_json_tree(std::string_view text, const std::string& name) {
  return JsonTreeReader(text, name).read();
}

}  // namespace commlens
