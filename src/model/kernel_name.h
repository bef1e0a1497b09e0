// What a GPU kernel's name says about communication: names of NCCL, RCCL and the other libraries
// that move data.
//
// A name is the weakest evidence: fused kernels show the first task's collective, RCCL's and old
// NCCL's generic kernels show nothing. So the answer carries how far it can be trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/operation.h"

namespace commlens {

// Which activity class a name puts a kernel in.
enum class NameClass : std::uint8_t { compute, communication };

struct NameVerdict {
  NameClass kind = NameClass::compute;
  Op op = Op::unknown;  // meaningful for communication
  // Look for better evidence: the op is unknown, or the kernel need not do what is named.
  bool op_may_lie = false;
  // "NCCL", "NCCL symmetric", "RCCL", "NCCL or RCCL", "MSCCL", "DeepEP", ...; static; empty for
  // compute.
  std::string_view library;
  // Element type of an NCCL reduction, in c10's words; static. Its sign may be lost: NCCL runs
  // signed integers as unsigned. Empty for others.
  std::string_view dtype;
  // Compute by the rules, but its name holds a word of communication: said to the user.
  bool possible = false;
};

// One rule of the user's (`--rules FILE`).
struct NameRule {
  std::string pattern;  // a glob over the stripped name: `*` any text, `?` one byte
  NameClass kind = NameClass::communication;
  Op op = Op::unknown;
};

// Reads a rules file: one rule a line, `PATTERN = OP` or `PATTERN = compute`.
// A `#` starts a comment at the beginning of a line or behind a blank.
// Throws Error(usage) with the line for what is not understood. `file` is only named in messages.
std::vector<NameRule> parse_name_rules(std::string_view text, std::string_view file);

// The name as rules see it: demangled if mangled, without the return type, template arguments, the
// argument list and the suffix of a clone. Linear in the name, whatever it holds.
//   "void <unnamed>::one_shot_all_reduce_kernel<float, 8>(float*)"
//   "(anonymous namespace)::one_shot_all_reduce_kernel"
std::string stripped_kernel_name(std::string_view name);

// The verdict by the built-in rules. `name` is as the trace has it.
NameVerdict classify_kernel_name(std::string_view name);

// The user's verdict, if one of the rules matches (the first does).
const NameRule* match_rule(const std::vector<NameRule>& rules, std::string_view name);

}  // namespace commlens
