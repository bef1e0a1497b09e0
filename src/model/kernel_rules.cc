// The built-in rules: one table, first match wins.
//
// A rule looks at the words of a name in one spelling (name_words.h), so that one row covers a
// library's habits and its forks. No rule rests on a bare reduce, gather, scatter, broadcast,
// dispatch or combine: those are everyday words of compute kernels, and only say which op where the
// library is known.
//
// Which names may lie (`op_may_lie`):
// - Those without an op (Generic, mscclKernel_): surely communication, of any kind.
// - NCCL's SendRecv: all-to-all, gather and scatter run as SendRecv in every version; in 2.14-2.18
//   it is also the entry of averaging all-reduces and of whatever has no kernel of its own.
// - Not ncclDevKernel_AllReduce and its like, although a fused group shows only its first task's
//   name: groups of mixed collectives are rare, and a flag on every kernel of every trace would say
//   nothing.
#include "model/kernel_name.h"
#include "model/name_words.h"

namespace commlens {
namespace {

constexpr std::string_view kNcclOrRccl = "NCCL or RCCL";
constexpr std::string_view kSymmMem = "PyTorch symmetric memory";
constexpr std::string_view kCustom = "custom all-reduce";
constexpr std::string_view kCompute = "";  // the library of compute kernels

enum class Says : std::uint8_t {
  op,       // the kernel does `op`
  lies,     // the name says `op`, the kernel need not do it
  by_words  // what the first word for an op says; unknown if there is none
};

struct Rule {
  std::string_view pattern;  // over the words; `*` is any text
  std::string_view library;
  Says says = Says::by_words;
  Op op = Op::unknown;
};

constexpr Rule kRules[] = {
    // Counts locally before DeepEP's dispatch.
    {"*_get_dispatch_layout_*", kCompute},

    // NVIDIA's and AMD's NCCL. The expert-parallel kernels of its contributions are "nccl" too.
    {"*_nccl_ep*_dispatch_*", "NCCL EP", Says::op, Op::moe_dispatch},
    {"*_nccl_ep*_combine_*", "NCCL EP", Says::op, Op::moe_combine},
    {"*_nccl_sym_dev_kernel_*", "NCCL symmetric"},
    {"*_nccl_symk_dev_kernel_*", "NCCL symmetric"},
    {"*_nccl_dev_kernel_generic_", kNcclOrRccl, Says::lies},
    {"*_nccl_dev_kernel_generic_*", "RCCL", Says::lies},  // _1, _2, _4: the unroll factor
    {"*_nccl_dev_kernel_debug_generic_*", "RCCL", Says::lies},
    {"*_nccl_kernel_generic_*", "RCCL", Says::lies},
    // The generic entry of 2.14 to 2.18: whatever has no kernel of its own ran through it.
    {"*_nccl_kernel_send_recv_*", "NCCL", Says::lies},
    {"*nccl*_send_recv_*", "NCCL", Says::lies, Op::send_recv},
    {"*nccl*", "NCCL"},
    {"*_one_rank_reduce_*", "NCCL", Says::lies},  // any reduction with scaling, of one rank
    {"*_reshard_kernel_user_window_*", "NCCL", Says::lies},
    {"*_lsa*_all_to_all_*", "NCCL", Says::op, Op::all_to_all},
    {"*_ubx_kernel*_combine_*", "NCCL ubx", Says::op, Op::moe_combine},
    {"*_ubx_*", "NCCL ubx"},
    {"*_msccl_kernel_*", "MSCCL"},
    {"*_mscclpp_*", "MSCCL++"},
    {"*_rccl_*", "RCCL"},
    {"*_hccl_*", "HCCL"},

    // Mixture-of-experts exchange. Patched builds append to the names: "dispatch_opt1_hidden6144".
    {"*_deep_ep*_dispatch_*", "DeepEP", Says::op, Op::moe_dispatch},
    {"*_deep_ep*_combine_*", "DeepEP", Says::op, Op::moe_combine},
    {"*_deep_ep_*", "DeepEP"},
    {"*_moe_all_to_all*_dispatch_*", "TensorRT-LLM", Says::op, Op::moe_dispatch},
    {"*_moe_all_to_all*_combine_*", "TensorRT-LLM", Says::op, Op::moe_combine},
    {"*_moe_all_to_all_prepare_*", "TensorRT-LLM", Says::op, Op::all_to_all},
    {"*_mori_*_ep_dispatch_*", "MORI", Says::op, Op::moe_dispatch},
    {"*_mori_*_ep_combine_*", "MORI", Says::op, Op::moe_combine},
    {"*_ep_dispatch*_kernel_*", "expert parallel", Says::op, Op::moe_dispatch},
    {"*_ep_combine*_kernel_*", "expert parallel", Says::op, Op::moe_combine},
    {"*_pplx*_dispatch_*", "PPLX", Says::op, Op::moe_dispatch},
    {"*_pplx*_combine_*", "PPLX", Says::op, Op::moe_combine},
    {"*_pplx*_all_to_all_*", "PPLX", Says::op, Op::all_to_all},

    // One-sided libraries.
    {"*nvshmem*", "NVSHMEM"},
    {"*rocshmem*", "rocSHMEM"},
    {"*_on_stream_kernel_*", "NVSHMEM"},
    {"*_all_to_all_v*exchange_split_and_offset_*", "PyTorch NVSHMEM", Says::op, Op::all_to_all},
    {"_all_to_all_v_*", "PyTorch NVSHMEM", Says::op, Op::all_to_all},
    {"_exchange_split_and_offset_*", "PyTorch NVSHMEM", Says::op, Op::all_to_all},

    // PyTorch symmetric memory, its samples in Triton, and what it shares names with.
    {"*_multimem*_all_reduce_*", kSymmMem, Says::op, Op::all_reduce},
    {"*_multimem_one_shot_reduce_*", kSymmMem, Says::op, Op::all_reduce},
    {"*_multimem*_all_gather_*", kSymmMem, Says::op, Op::all_gather},
    {"*_symm*_all_gather*_kernel_*", kSymmMem, Says::op, Op::all_gather},
    {"_anonymous_namespace_reduce_scatter_*", kSymmMem, Says::op, Op::reduce_scatter},
    {"_anonymous_namespace_barrier_kernel_", kSymmMem, Says::op, Op::barrier},
    {"_anonymous_namespace_put_signal_kernel_", kSymmMem, Says::op, Op::put_get},
    {"_anonymous_namespace_wait_signal_kernel_", kSymmMem, Says::op, Op::put_get},
    {"_anonymous_namespace_stream_write_value32_*", kSymmMem, Says::op, Op::put_get},
    {"_anonymous_namespace_one_shot_all_reduce_*", kSymmMem, Says::op, Op::all_reduce},
    {"_anonymous_namespace_two_shot_all_reduce_*", kSymmMem, Says::op, Op::all_reduce},

    // All-reduces of inference engines, many fused with a norm or a quantisation.
    {"*_flashinfer*_all_reduce_fusion_kernel_*", "FlashInfer", Says::op, Op::all_reduce},
    {"*_flashinfer_trtllm_mnnvl*", "FlashInfer", Says::op, Op::all_reduce},
    {"*_tensorrt_llm*_all_reduce_fusion_kernel_*", "TensorRT-LLM", Says::op, Op::all_reduce},
    {"*_all_reduce_fusion_kernel_*", kCustom, Says::op, Op::all_reduce},
    {"*_moe_all_reduce_*", kCustom, Says::op, Op::all_reduce},
    {"*_cross_device_reduce_1stage_*", kCustom, Says::op, Op::all_reduce},
    {"*_cross_device_reduce_2stage_*", kCustom, Says::op, Op::all_reduce},
    {"*_cross_device_reduce_half_butterfly_*", kCustom, Says::op, Op::all_reduce},
    {"*_quickreduce_*", kCustom, Says::op, Op::all_reduce},
    {"*_all_reduce_prototype_*", kCustom, Says::op, Op::all_reduce},
    {"*_one_shot*_all_reduce_*", kCustom, Says::op, Op::all_reduce},
    {"*_two_shot*_all_reduce_*", kCustom, Says::op, Op::all_reduce},
    {"*_lamport*_all_reduce_*", kCustom, Says::op, Op::all_reduce},
    {"*_low_precision*_all_reduce_*", kCustom, Says::op, Op::all_reduce},

    // User buffers of Transformer Engine and TensorRT-LLM ("userbuffers_fp16_sum_inplace_gpu_mc").
    {"*userbuffers*_rs_*", "userbuffers", Says::op, Op::reduce_scatter},
    {"*userbuffers*_ag_*", "userbuffers", Says::op, Op::all_gather},
    {"*userbuffers*_sum_inplace_*", "userbuffers", Says::op, Op::all_reduce},
    {"*userbuffers*sendrecv*", "userbuffers", Says::op, Op::send_recv},
    {"*userbuffers*send*", "userbuffers", Says::op, Op::send},
    {"*userbuffers*recv*", "userbuffers", Says::op, Op::recv},
    {"*userbuffers_*", "userbuffers"},

    // Compute although a word of communication is in the name: not even "possible".
    {"_cijk_*", kCompute},  // AMD's matrix products, full of capitals of any kind
    {"_at_native_*", kCompute},
    {"_at_cuda_*", kCompute},
    {"_cub_*", kCompute},
    {"_thrust_*", kCompute},
    {"*_rocprim_*", kCompute},
    {"*_flash*_combine_*", kCompute},  // joins the parts of one attention
    {"*_split*kv*_combine_*", kCompute},
    {"*_attention*_combine_*", kCompute},
    {"*_mla*_combine_*", kCompute},
};

struct WordOp {
  std::string_view word;
  Op op;
};

// For names of a known library. Where two begin at the same place, the first listed counts.
constexpr WordOp kWordOps[] = {
    {"_all_reduce_", Op::all_reduce},
    {"_all_gather_", Op::all_gather},
    {"_reduce_scatter_", Op::reduce_scatter},
    {"_all_to_all_", Op::all_to_all},
    {"_broadcast_", Op::broadcast},
    {"_reduce_", Op::reduce},
    {"_gather_", Op::gather},
    {"_scatter_", Op::scatter},
    {"_send_recv_", Op::send_recv},
    {"_send_", Op::send},
    {"_recv_", Op::recv},
    {"_barrier_", Op::barrier},
    {"_sync_", Op::barrier},
    {"_put_", Op::put_get},
    {"_get_", Op::put_get},
    {"_rma_", Op::put_get},
};

// Words that make a kernel of an unknown library worth a question to the user.
constexpr std::string_view kPossibleWords[] = {"_all_reduce_", "_all_gather_", "_reduce_scatter_",
                                               "_all_to_all_", "_send_recv_",  "_dispatch_",
                                               "_combine_",    "_notify_",     "_p2p_",
                                               "_multimem_",   "_symm_mem_",   "_rdma_"};

struct TypeName {
  std::string_view token;
  std::string_view c10;
};

// NCCL's type tokens and C types. NCCL runs signed integers as unsigned: only the size is sure.
constexpr TypeName kTypes[] = {
    {"i8", "Char"},
    {"u8", "Byte"},
    {"i32", "Int"},
    {"u32", "UInt32"},
    {"i64", "Long"},
    {"u64", "UInt64"},
    {"f16", "Half"},
    {"f32", "Float"},
    {"f64", "Double"},
    {"bf16", "BFloat16"},
    {"f8e4m3", "Float8_e4m3fn"},
    {"f8e5m2", "Float8_e5m2"},
    {"int8_t", "Char"},
    {"uint8_t", "Byte"},
    {"int32_t", "Int"},
    {"uint32_t", "UInt32"},
    {"int64_t", "Long"},
    {"uint64_t", "UInt64"},
    {"half", "Half"},
    {"float", "Float"},
    {"double", "Double"},
    {"__nv_bfloat16", "BFloat16"},
    {"hip_bfloat16", "BFloat16"},
    {"rccl_bfloat16", "BFloat16"},
};

Op first_op(std::string_view words) {
  Op op = Op::unknown;
  std::size_t first = std::string_view::npos;
  for (const WordOp& row : kWordOps) {
    const std::size_t at = words.find(row.word);
    if (at < first) {
      first = at;
      op = row.op;
    }
  }
  return op;
}

// The type token of a reduction's name. Copies are named by a fixed byte type, which says nothing.
std::string_view type_in(std::string_view name, Op op) {
  if (op != Op::all_reduce && op != Op::reduce && op != Op::reduce_scatter) return {};
  for (const TypeName& type : kTypes) {
    const std::string token = "_" + std::string(type.token);
    const std::size_t at = name.rfind(token);
    if (at == std::string_view::npos) continue;
    const std::size_t end = at + token.size();
    if (end == name.size() || name[end] == '_') return type.c10;
  }
  return {};
}

NameVerdict verdict_of(const Rule& rule, std::string_view name, std::string_view words) {
  NameVerdict verdict;
  if (rule.library == kCompute) return verdict;
  verdict.kind = NameClass::communication;
  verdict.library = rule.library;
  verdict.op = rule.says == Says::by_words ? first_op(words) : rule.op;
  verdict.op_may_lie = rule.says == Says::lies || verdict.op == Op::unknown;
  if (name.starts_with("nccl")) verdict.dtype = type_in(name, verdict.op);
  return verdict;
}

}  // namespace

NameVerdict classify_kernel_name(std::string_view name) {
  const std::string stripped = stripped_kernel_name(name);
  const std::string words = words_of(stripped);
  for (const Rule& rule : kRules) {
    if (matches_words(rule.pattern, words)) return verdict_of(rule, stripped, words);
  }
  NameVerdict verdict;
  for (std::string_view word : kPossibleWords) {
    verdict.possible = verdict.possible || words.find(word) != std::string::npos;
  }
  return verdict;
}

}  // namespace commlens
