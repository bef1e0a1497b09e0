// Data dependences of each kind of operation: who holds a part of what another one must get.
//
//   all_reduce, all_gather,      every rank's result holds something of every rank
//   reduce_scatter, all_to_all
//   broadcast, scatter           the others' results come from the root; the root gets nothing
//   reduce, gather               the root's result holds something of everybody; the others get
//   none send, recv                   the destination's data come from the source
//
// Where an operation's algorithm synchronises more than its data do (a chunked broadcast's root can
// be held by full buffers), that is left out: a missing need makes bounds wider and waits fewer, a
// wrong one would blame somebody for nothing. For the same reason libraries whose protocol is their
// own (moe_dispatch, put_get, copies) and operations that are not known say `unknown`.
#include "model/semantics.h"

namespace commlens {
namespace {

Needs needs_of_rooted(const MatchedOp& op, std::uint32_t part) {
  if (op.root < 0 || static_cast<std::uint32_t>(op.root) >= op.count) return Needs::unknown;
  const bool is_root = part == static_cast<std::uint32_t>(op.root);
  const bool to_root = op.op == Op::reduce || op.op == Op::gather;
  if (to_root) return is_root ? Needs::everyone : Needs::nobody;
  return is_root ? Needs::nobody : Needs::root;
}

}  // namespace

Needs needs_of(const MatchedOp& op, std::uint32_t part, bool zero_split) {
  if (op.pair) return part == 0 ? Needs::nobody : zero_split ? Needs::unknown : Needs::source;
  switch (op.op) {
    case Op::barrier: return Needs::everyone;  // moves nothing, and is there for nothing else
    case Op::all_reduce:
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all: return zero_split ? Needs::unknown : Needs::everyone;
    case Op::broadcast:
    case Op::scatter:
    case Op::reduce:
    case Op::gather: return zero_split ? Needs::unknown : needs_of_rooted(op, part);
    case Op::send:
    case Op::recv:
    case Op::send_recv:
    case Op::moe_dispatch:
    case Op::moe_combine:
    case Op::put_get:
    case Op::copy:
    case Op::unknown: return Needs::unknown;
  }
  return Needs::unknown;
}

bool synchronises_everyone(const MatchedOp& op, bool zero_split) {
  return op.count > 0 && !op.pair && op.op != Op::reduce && op.op != Op::gather &&
         needs_of(op, 0, zero_split) == Needs::everyone;
}

}  // namespace commlens
