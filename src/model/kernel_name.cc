// Cuts a kernel's name down to what rules look at. Names of the same kernel by different tools:
//
//   _ZN12_GLOBAL__N_126one_shot_all_reduce_kernelIfLi8EEEvPf                               mangled
//   void (anonymous namespace)::one_shot_all_reduce_kernel<float, 8>(float*) demangled void
//   <unnamed>::one_shot_all_reduce_kernel<float, (int)8>(float *)                       demangled
//   by others (anonymous namespace)::one_shot_all_reduce_kernel<float, 8>(float*) [clone .kd] for
//   AMD
//
// The argument list does not begin at the first `(`: "(anonymous namespace)", "operator()",
// "{lambda()#1}" and the casts inside template arguments come earlier. And not every `<` opens
// template arguments: "operator<<". Names can be megabytes of hostile text: one pass, no recursion.
#include "model/kernel_name.h"

#include <cctype>

#include "model/mangled_name.h"

namespace commlens {
namespace {

constexpr std::string_view kUnnamed = "(anonymous namespace)";

bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Length of an operator's name at the start of `text`, or 0: "operator<<" behind `before`.
std::size_t operator_length(std::string_view text, char before) {
  constexpr std::string_view kWord = "operator";
  if (!text.starts_with(kWord) || is_identifier(before)) return 0;
  // Longest first. Those without `<`, `>` or `(` need no care.
  for (std::string_view symbol :
       {"<<=", "<=>", ">>=", "->*", "()", "<<", ">>", "<=", ">=", "->", "<", ">"}) {
    if (text.substr(kWord.size()).starts_with(symbol)) return kWord.size() + symbol.size();
  }
  return 0;
}

// Length of an unnamed namespace at the start of `text`, or 0.
std::size_t unnamed_length(std::string_view text) {
  for (std::string_view spelling : {kUnnamed, std::string_view("<unnamed>")}) {
    if (text.starts_with(spelling)) return spelling.size();
  }
  return 0;
}

// Position behind the bracket that closes the one at `at`, or the end. Only called for `{` and `<`.
//
// Inside template arguments brackets are a stack, since `>` closes only what `<` opened last:
// "Foo<((1)>(2))>".
std::size_t behind_bracket(std::string_view text, std::size_t at) {
  std::string open;
  std::size_t parentheses = 0;
  while (at < text.size()) {
    const std::size_t named = operator_length(text.substr(at), at > 0 ? text[at - 1] : ' ');
    if (named != 0) {
      at += named;
      continue;
    }
    const char c = text[at++];
    if (c == '<' || c == '{') open.push_back(c);
    if (c == '(') {
      open.push_back(c);
      ++parentheses;
    } else if (c == ')' && parentheses > 0) {
      while (open.back() != '(') open.pop_back();  // a `<` in parentheses was a comparison
      open.pop_back();
      --parentheses;
    } else if (c == '>' && open.back() == '<' && text[at - 2] != '-') {
      open.pop_back();
    } else if (c == '}' && open.back() == '{') {
      open.pop_back();
    }
    if (open.empty()) return at;
  }
  return text.size();
}

// The name without template arguments, up to its argument list.
std::string without_arguments(std::string_view text) {
  std::string name;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (const std::size_t unnamed = unnamed_length(rest); unnamed != 0) {
      name += kUnnamed;
      at += unnamed;
      continue;
    }
    std::size_t piece = operator_length(rest, at > 0 ? text[at - 1] : ' ');
    if (piece == 0 && rest.front() == '(') break;
    if (piece == 0 && rest.front() == '<') {
      at = behind_bracket(text, at);
      continue;
    }
    if (piece == 0) piece = rest.front() == '{' ? behind_bracket(text, at) - at : 1;
    name += rest.substr(0, piece);
    at += piece;
  }
  return name;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "std::enable_if::type ns::kernel" -> "ns::kernel". Of template functions demanglers print the
// return type, which of a kernel is void or a way to say it.
std::string_view without_return_type(std::string_view name) {
  if (name.starts_with("void ")) return name.substr(5);
  if (!name.starts_with("std::enable_if")) return name;
  const std::size_t blank = name.find(' ');
  return blank == std::string_view::npos ? name : name.substr(blank + 1);
}

// "ncclDevKernel_Generic_1.kd": the descriptor that AMD's tools name instead of the function.
std::string_view without_clone(std::string_view name) {
  const std::size_t clone = name.find(" [clone");
  if (clone != std::string_view::npos) name = name.substr(0, clone);
  if (name.ends_with(".kd")) name.remove_suffix(3);
  return name;
}

std::string stripped_demangled(std::string_view name) {
  const std::string cut = without_arguments(trimmed(name));
  return std::string(trimmed(without_clone(without_return_type(cut))));
}

// The host-side stub of a kernel, which launches it, instead of the kernel: HIP's is
// "ns::__device_stub__name", CUDA's "__device_stub__Z4nameIfEvPf", where what follows
// "__device_stub_" is the mangled kernel.
std::string without_device_stub(std::string name) {
  constexpr std::string_view kStub = "__device_stub__";
  const std::size_t at = name.find(kStub);
  if (at == std::string::npos) return name;
  const auto kernel = name_in_mangled(std::string_view(name).substr(at + kStub.size() - 1));
  if (kernel) return *kernel;
  return name.erase(at, kStub.size());
}

}  // namespace

std::string stripped_kernel_name(std::string_view name) {
  // Mangled names hold no dot; what follows one names a clone.
  const auto demangled = name_in_mangled(trimmed(name.substr(0, name.find('.'))));
  std::string stripped = without_device_stub(demangled ? *demangled : stripped_demangled(name));
  return stripped.empty() ? std::string(name) : stripped;
}

}  // namespace commlens
