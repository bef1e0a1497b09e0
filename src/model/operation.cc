#include "model/operation.h"

#include <algorithm>
#include <array>

namespace commlens {
namespace {

constexpr std::array<std::string_view, kOpCount> kOpNames = {
    "all_reduce",   "all_gather",  "reduce_scatter", "all_to_all", "broadcast", "reduce",
    "gather",       "scatter",     "send",           "recv",       "send_recv", "barrier",
    "moe_dispatch", "moe_combine", "put_get",        "copy",       "unknown"};

struct NamedOp {
  std::string_view name;
  Op op;
};

// What is left of a collective's name once `collective_stem` has taken its variants away.
constexpr NamedOp kCollectiveStems[] = {
    {"all_reduce", Op::all_reduce},
    {"allreduce", Op::all_reduce},
    {"sparse_all_reduce", Op::all_reduce},
    {"all_gather", Op::all_gather},
    {"allgather", Op::all_gather},
    {"reduce_scatter", Op::reduce_scatter},
    {"all_to_all", Op::all_to_all},
    {"all_to_allv", Op::all_to_all},
    {"alltoall", Op::all_to_all},
    {"broadcast", Op::broadcast},
    {"reduce", Op::reduce},
    {"gather", Op::gather},
    {"scatter", Op::scatter},
    {"send", Op::send},
    {"recv", Op::recv},
    {"recv_any_source", Op::recv},
    {"barrier", Op::barrier},
    {"monitored_barrier", Op::barrier},
    {"all_reduce_barrier", Op::barrier},
    // The range of a whole group launch: mostly point-to-point, but any collective can be in it.
    {"coalesced", Op::unknown},
};

constexpr std::string_view kNamespaces[] = {
    "c10d::", "_c10d_functional::", "_c10d_functional_autograd::", "c10d_functional::"};
constexpr std::string_view kVariants[] = {"_",       "_base",        "_oop",    "_coalesced",
                                          "_sparse", "_into_tensor", "_tensor", "_single",
                                          "_uneven", "_out"};

// One trailing variant off, if there is one and something is left of the name.
std::string_view without_variant(std::string_view name) {
  for (std::string_view variant : kVariants) {
    if (name.size() > variant.size() && name.ends_with(variant)) {
      name.remove_suffix(variant.size());
      return name;
    }
  }
  return name;
}

// "c10d::_allgather_base_" -> "allgather", "reduce_scatter_tensor_coalesced" -> "reduce_scatter".
std::string_view collective_stem(std::string_view name) {
  for (std::string_view space : kNamespaces) {
    if (name.starts_with(space)) {
      name.remove_prefix(space.size());
      break;
    }
  }
  if (name.starts_with('_')) name.remove_prefix(1);
  for (std::string_view shorter = without_variant(name); shorter.size() != name.size();
       shorter = without_variant(name)) {
    name = shorter;
  }
  return name;
}

struct Dtype {
  std::string_view name;
  std::int64_t bytes;
};

// c10's scalar types; those with a prefix of `element_bytes` are not repeated here.
constexpr Dtype kDtypes[] = {
    {"Byte", 1},           {"Char", 1},        {"Bool", 1},
    {"Short", 2},          {"UInt16", 2},      {"Half", 2},
    {"BFloat16", 2},       {"Int", 4},         {"UInt32", 4},
    {"Float", 4},          {"Long", 8},        {"UInt64", 8},
    {"Double", 8},         {"ComplexHalf", 4}, {"ComplexFloat", 8},
    {"ComplexDouble", 16}, {"QInt8", 1},       {"QUInt8", 1},
    {"QInt32", 4},         {"QUInt4x2", 1},    {"QUInt2x4", 1},
    {"Bits1x8", 1},        {"Bits2x4", 1},     {"Bits4x2", 1},
    {"Bits8", 1},          {"Bits16", 2},      {"Float4_e2m1fn_x2", 1},
};

}  // namespace

std::string_view op_name(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }

std::optional<Op> op_from_name(std::string_view name) {
  const auto* found = std::find(kOpNames.begin(), kOpNames.end(), name);
  if (found == kOpNames.end()) return std::nullopt;
  return static_cast<Op>(found - kOpNames.begin());
}

std::optional<Op> op_from_collective_name(std::string_view name) {
  // "send 0->1", "recv 0<-1": ranks of the group, the own one first.
  if (name.starts_with("send ")) return Op::send;
  if (name.starts_with("recv ")) return Op::recv;
  const std::string_view stem = collective_stem(name);
  for (const NamedOp& row : kCollectiveStems) {
    if (row.name == stem) return row.op;
  }
  return std::nullopt;
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  if (dtype.starts_with("Float8_")) return 1;
  for (const Dtype& row : kDtypes) {
    if (row.name == dtype) return row.bytes;
  }
  return std::nullopt;
}

}  // namespace commlens
