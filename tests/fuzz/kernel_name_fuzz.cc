// Any bytes as a kernel's name and as a file of the user's rules: nothing crashes, and a verdict
// says nothing that its own fields deny.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/kernel_name.h"

namespace {

void check_name(std::string_view name) {
  const commlens::NameVerdict verdict = commlens::classify_kernel_name(name);
  if (commlens::stripped_kernel_name(name).empty() != name.empty()) std::abort();
  const bool compute = verdict.kind == commlens::NameClass::compute;
  if (compute != verdict.library.empty()) std::abort();
  if (compute && verdict.op_may_lie) std::abort();
  if (!compute && verdict.possible) std::abort();
  if (!compute && verdict.op == commlens::Op::unknown && !verdict.op_may_lie) std::abort();
}

void check_rules(std::string_view text) {
  try {
    const auto rules = commlens::parse_name_rules(text, "rules");
    commlens::match_rule(rules, text);
  } catch (const commlens::Error&) {  // not understood: said to the user
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_name(text);
  check_rules(text);
  return 0;
}
