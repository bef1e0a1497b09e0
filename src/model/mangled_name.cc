// Why not abi::__cxa_demangle: a symbol names earlier parts of itself by short references, each of
// which it prints in full. So a hostile symbol of a few hundred bytes prints gigabytes, and nothing
// can stop it on the way. Rules need only the qualified name, which comes first, in plain text:
//
//   _Z N 4vllm 26cross_device_reduce_1stage I f Li8E E E v P f i
//        ----  ----                         ~~~~~~~~~    ~~~~~~~ parameters: never looked at
//        name  name                         template arguments: skipped
//
// The only work is to find the E that ends a list of template arguments. Everything inside that has
// an end of its own ends with E too, so a stack of what is open is enough: no recursion, no output,
// one pass.
//
// Where this is wrong: rare expressions in template arguments are not understood, nor are operators
// other than (), constructors and abbreviated names of std (no kernel has these). Then there is no
// answer, and the name stays mangled. Of 94,000 symbols in installed libraries, 97% were read, all
// as c++filt reads them; the others were of those kinds.
#include "model/mangled_name.h"

#include <algorithm>
#include <cstddef>

namespace commlens {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

class SymbolReader {
 public:
  explicit SymbolReader(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    // What is local to a function is called by that function's name.
    while (take('Z')) {
    }
    const bool nested = take('N');
    if (nested) skip_qualifiers();
    do {
      if (!read_component()) return std::nullopt;
    } while (nested && !take('E'));
    if (name_.empty()) return std::nullopt;
    return std::move(name_);
  }

 private:
  // One part of the name, or the template arguments of the part before.
  bool read_component() {
    take('L');  // of internal linkage
    if (is_digit(peek())) return append(read_source_name());
    if (take('I')) return skip_open("I");
    if (take('B')) return !read_source_name().empty();  // an ABI tag
    if (take("St")) return append("std") && read_component();
    if (take("cl")) return append("operator()");
    if (take("Ul")) return skip_open("U") && append("{lambda()}");
    if (take("Ut")) return skip_number() && append("{unnamed type}");
    return false;
  }

  bool append(std::string_view part) {
    if (part.empty()) return false;
    if (!name_.empty()) name_ += "::";
    // The compilers' spellings of an unnamed namespace: "_GLOBAL__N_1",
    // "_GLOBAL__N__1234abcd_5_file_cu".
    name_ += part.starts_with("_GLOBAL__N") ? std::string_view("(anonymous namespace)") : part;
    return true;
  }

  // Skips to the end of what is open: one letter for each level, the innermost last.
  //   N nested name, I J template arguments, F function type, X expression, L literal waiting for
  //   its value, U parameters of a lambda, Z function around a local name
  bool skip_open(std::string_view open) {
    open_ = open;
    while (!open_.empty()) {
      if (at_ >= text_.size() || !skip_token()) return false;
    }
    return true;
  }

  bool skip_token() {
    const char c = peek();
    if (is_digit(c)) return !read_source_name().empty();
    if (is_lower(c)) return skip_lower();
    ++at_;
    switch (c) {
      case 'E': return close();
      case 'I':
      case 'J':
      case 'F':
      case 'X':
      case 'Z': return push(c);
      case 'N': return push('N') && skip_qualifiers();
      case 'L': return open_.back() == 'N' || skip_literal();
      case 'S': return skip_substitution();
      case 'T': return skip_parameter();
      case 'A': return skip_number();
      case 'U': return skip_unnamed();
      case 'C': return open_.back() != 'N' || skip_any();  // a constructor; else "complex"
      case 'D': return skip_d();
      case '_': return skip_discriminator();
      case 'B':
      case 'G':
      case 'K':
      case 'M':
      case 'O':
      case 'P':
      case 'R':
      case 'V': return true;
      default: return false;
    }
  }

  // A type of one letter, or the two letters of an operator in a name or an expression.
  bool skip_lower() {
    const bool operator_here = open_.back() == 'N' || open_.back() == 'X';
    if (!operator_here) return skip_any();
    const std::string_view code = text_.substr(at_, 2);
    at_ += code.size();
    if (code == "cv" && is_lower(peek()))
      return skip_any();  // a conversion to a type of one letter
    if (open_.back() == 'N') return true;
    if (code == "fp") {
      skip_qualifiers();
      return skip_number();
    }
    constexpr std::string_view kWithEnd[] = {"cl", "il", "tl", "nw", "na", "sP"};
    if (std::find(std::begin(kWithEnd), std::end(kWithEnd), code) != std::end(kWithEnd))
      return push('X');
    if (code == "sr" && is_lower(peek())) return skip_any();
    return true;
  }

  // Behind L: "b1E", "m4096E", "N2at10ScalarTypeE6E", "_Z3fooiE".
  bool skip_literal() {
    if (take("_Z")) return push('F');
    while (!at_end() && std::string_view("PRKVO").find(peek()) != std::string_view::npos) ++at_;
    if (take('N')) return push('L') && push('N') && skip_qualifiers();
    if (is_digit(peek()) && read_source_name().empty()) return false;
    if (take('S')) {
      const bool in_std = peek() == 't';
      if (!skip_substitution() || (in_std && read_source_name().empty())) return false;
    }
    if (take('T') && !skip_parameter()) return false;
    return skip_value();
  }

  // A literal's value has no capital letter before the E that ends it.
  bool skip_value() {
    const std::size_t end = text_.find('E', at_);
    if (end == std::string_view::npos) return false;
    at_ = end + 1;
    return true;
  }

  bool skip_substitution() {  // behind S: "_", "1A_", "t"
    if (is_lower(peek())) return skip_any();
    while (!at_end() && (is_digit(peek()) || (peek() >= 'A' && peek() <= 'Z'))) ++at_;
    return take('_');
  }

  bool skip_parameter() {  // behind T: "_", "0_", "s" (an elaborated type)
    return is_lower(peek()) ? skip_any() : skip_number();
  }

  bool skip_unnamed() {  // behind U: a lambda, an unnamed type, or a vendor's qualifier
    if (take('l')) return push('U');
    if (take('t')) return skip_number();
    return true;
  }

  bool skip_d() {  // behind D: "v4_" (vector), "F16_", "T...E" (decltype), "p", "n"; a destructor
                   // in a name
    if (take('v')) return skip_number();
    if (take('F')) return skip_number_or_letter();
    if (take('t') || take('T') || take('O')) return push('X');
    return skip_any();
  }

  bool skip_number_or_letter() {
    while (is_digit(peek())) ++at_;
    return skip_any();
  }

  // Several entities of one function have the same name: "_0", "__12_".
  bool skip_discriminator() {
    if (take('_')) return skip_number();
    if (is_digit(peek())) ++at_;
    return true;
  }

  bool close() {
    const char closed = open_.back();
    open_.pop_back();
    if (closed == 'U') return skip_number();
    if (closed == 'N' && !open_.empty() && open_.back() == 'L') {
      open_.pop_back();
      return skip_value();
    }
    return true;
  }

  bool push(char kind) {
    open_.push_back(kind);
    return true;
  }

  bool skip_qualifiers() {
    while (take('r') || take('V') || take('K')) {
    }
    if (!take('R')) take('O');
    return true;
  }

  bool skip_number() {  // "_", "12_"
    while (is_digit(peek())) ++at_;
    return take('_');
  }

  bool skip_any() {
    ++at_;
    return at_ <= text_.size();
  }

  // "3foo"; empty where the length does not fit.
  std::string_view read_source_name() {
    std::size_t length = 0;
    while (is_digit(peek()) && length < text_.size()) {
      length = length * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    }
    if (length > text_.size() - at_) return {};
    at_ += length;
    return text_.substr(at_ - length, length);
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(std::min(at_, text_.size())).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string name_;
  std::string open_;
};

}  // namespace

std::optional<std::string> name_in_mangled(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return std::nullopt;
  return SymbolReader(symbol.substr(2)).read();
}

}  // namespace commlens
