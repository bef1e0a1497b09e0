// The user's rules file:
//
//   # our fork of the expert exchange
//   my_ns::exchange_*   = moe_dispatch
//   *fused_gemm_signal* = compute
#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "model/kernel_name.h"

namespace commlens {
namespace {

std::string_view trimmed_rule(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// A `#` starts a comment at the beginning of a line or behind a blank: "{lambda()#1}" is a name.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  }
  return line;
}

[[noreturn]] void fail(std::string_view file, int line, const std::string& what) {
  throw Error(ErrorKind::usage, printable(file) + ", line " + std::to_string(line) + ": " + what);
}

std::string known_ops() {
  std::string names;
  for (int op = 0; op < kOpCount; ++op) {
    names += op == 0 ? "" : ", ";
    names += op_name(static_cast<Op>(op));
  }
  return names;
}

NameRule parse_rule(std::string_view line, std::string_view file, int number) {
  // The last `=`, since "operator==" holds some.
  const std::size_t equals = line.rfind('=');
  if (equals == std::string_view::npos) {
    fail(file, number, "expected PATTERN = OP, got \"" + printable(line) + "\"");
  }
  const std::string_view pattern = trimmed_rule(line.substr(0, equals));
  const std::string_view word = trimmed_rule(line.substr(equals + 1));
  if (pattern.empty()) fail(file, number, "no pattern before the =");
  if (word == "compute") return {std::string(pattern), NameClass::compute, Op::unknown};
  const auto op = op_from_name(word);
  if (!op) {
    fail(file, number,
         "\"" + printable(word) + "\" is no operation; write compute or one of " + known_ops());
  }
  return {std::string(pattern), NameClass::communication, *op};
}

// `*` is any text, `?` one byte. Where a later part fails, only the last star needs another try.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace

std::vector<NameRule> parse_name_rules(std::string_view text, std::string_view file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<NameRule> rules;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed_rule(without_comment(text.substr(0, end)));
    if (!line.empty()) rules.push_back(parse_rule(line, file, number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rules;
}

const NameRule* match_rule(const std::vector<NameRule>& rules, std::string_view name) {
  if (rules.empty()) return nullptr;
  const std::string stripped = stripped_kernel_name(name);
  for (const NameRule& rule : rules) {
    if (glob_matches(rule.pattern, stripped)) return &rule;
  }
  return nullptr;
}

}  // namespace commlens
