#include "model/semantics.h"

namespace commlens {
namespace {

// From the root to all, or from all to the root.
Needs of_rooted(const MatchedOp& op, std::uint32_t part, Needs root_needs, Needs leaf_needs) {
  if (op.root < 0) return Needs::unknown;
  return static_cast<std::int64_t>(part) == op.root ? root_needs : leaf_needs;
}

}  // namespace

Needs needs_of(const MatchedOp& op, std::uint32_t part, bool zero_split) {
  if (op.pair) return part == 0 ? Needs::nobody : Needs::source;
  switch (op.op) {
    case Op::all_reduce:
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::barrier: return Needs::everyone;
    case Op::all_to_all: return zero_split ? Needs::unknown : Needs::everyone;
    case Op::broadcast:
    case Op::scatter: return of_rooted(op, part, Needs::nobody, Needs::root);
    case Op::reduce:
    case Op::gather: return of_rooted(op, part, Needs::everyone, Needs::nobody);
    default: return Needs::unknown;
  }
}

}  // namespace commlens
