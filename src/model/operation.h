// The words of the field: what a communication does, on which type of element.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace commlens {

// What a communication does. The names printed are those of `op_name`.
enum class Op : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  recv,
  send_recv,  // both in one kernel (grouped), or point-to-point of unknown direction
  barrier,
  moe_dispatch,  // mixture-of-experts all-to-all-v by a library of its own (DeepEP and its like)
  moe_combine,
  put_get,  // one-sided copies (NVSHMEM)
  copy,     // a memory copy that moves a collective's data
  unknown,  // surely communication, but which is not known (RCCL's generic kernel)
};
inline constexpr int kOpCount = static_cast<int>(Op::unknown) + 1;

// "all_reduce", ...; `op_from_name` is its inverse and nothing else.
std::string_view op_name(Op op);
std::optional<Op> op_from_name(std::string_view name);

// The op behind a name that PyTorch writes, in any of its spellings: "Collective name"
// ("_allgather_base", "all_to_allv", "reduce_scatter_tensor_coalesced"), the ranges' names behind
// their "nccl:" prefix ("send 0->1", "_all_gather_base", "all_reduce_barrier"), c10d:: operators.
// Op::unknown for "coalesced", the range of a whole group launch: mostly sends and receives, but
// any collective can be in it. Nothing for records that are no communication ("wait", "init") and
// for names that are not known.
std::optional<Op> op_from_collective_name(std::string_view name);

// Element type of a message, by the names that c10 uses ("BFloat16", "Float8_e4m3fn").
// Bytes of one element; nothing where the type is not known, and then the message's size is not.
std::optional<std::int64_t> element_bytes(std::string_view dtype);

}  // namespace commlens
