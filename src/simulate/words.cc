#include "simulate/words.h"

#include "base/error.h"

namespace commlens::simulate {
namespace {

constexpr OpWords kAllReduce{
    .op = "all_reduce",
    .collective = "allreduce",
    .annotation = "nccl:all_reduce",
    .dispatch = "c10d::allreduce_",
    .kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
constexpr OpWords kAllGather{
    .op = "all_gather",
    .collective = "_allgather_base",
    .annotation = "nccl:_all_gather_base",
    .dispatch = "c10d::_allgather_base_",
    .kernel = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
constexpr OpWords kReduceScatter{
    .op = "reduce_scatter",
    .collective = "_reduce_scatter_base",
    .annotation = "nccl:_reduce_scatter_base",
    .dispatch = "c10d::_reduce_scatter_base_",
    .kernel = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
constexpr OpWords kAllToAll{.op = "all_to_all",
                            .collective = "all_to_allv",
                            .annotation = "nccl:all_to_all",
                            .dispatch = "c10d::alltoall_base_",
                            .kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"};
constexpr OpWords kSend{.op = "send",
                        .collective = "send",
                        .annotation = "nccl:send",
                        .dispatch = "c10d::send",
                        .kernel = kAllToAll.kernel};
constexpr OpWords kRecv{.op = "recv",
                        .collective = "recv",
                        .annotation = "nccl:recv",
                        .dispatch = "c10d::recv_",
                        .kernel = kAllToAll.kernel};

constexpr KernelType nccl_kernel(const OpWords& words) {
  return {.name = words.kernel,
          .cpu_op = words.dispatch,
          .grid = 24,
          .block = 544,
          .registers = 96,
          .shared_memory = 88'424};
}
constexpr KernelType kAllReduceKernel = nccl_kernel(kAllReduce);
constexpr KernelType kAllGatherKernel = nccl_kernel(kAllGather);
constexpr KernelType kReduceScatterKernel = nccl_kernel(kReduceScatter);
constexpr KernelType kAllToAllKernel = nccl_kernel(kAllToAll);
constexpr KernelType kSendKernel = nccl_kernel(kSend);
constexpr KernelType kRecvKernel = nccl_kernel(kRecv);

constexpr KernelType kNorm{
    "triton_red_fused_add_mul_pow_mean_rsqrt_3", "aten::rms_norm", 2048, 256, 34, 64};
constexpr KernelType kNormBackward{
    "triton_per_fused_mul_sum_rsqrt_backward_7", "RmsNormBackward0", 2048, 256, 48, 128};
constexpr KernelType kQkv{
    "nvjet_sm90_128x256_64x4_2x1_h_bz_coopA_TNN", "aten::mm", 132, 384, 168, 230'424};
constexpr KernelType kAttention{
    "void flash::fwd_kernel<flash::Traits<128, 128, 64, 4, cutlass::bfloat16_t>, "
    "true>(flash::FwdParams)",
    "aten::_flash_attention_forward",
    512,
    256,
    240,
    98'304};
constexpr KernelType kAttentionBackward{
    "void flash::bwd_kernel<flash::Traits<128, 64, 64, 8, cutlass::bfloat16_t>, "
    "true>(flash::BwdParams)",
    "FlashAttentionBackward0",
    512,
    256,
    255,
    147'456};
constexpr KernelType kProjection{
    "nvjet_sm90_128x128_64x6_1x2_h_bz_TNN", "aten::mm", 132, 384, 168, 214'016};
constexpr KernelType kUp{
    "nvjet_sm90_256x128_64x4_1x2_h_bz_coopB_TNN", "aten::mm", 132, 384, 168, 230'424};
constexpr KernelType kActivation{"triton_poi_fused_mul_silu_5", "aten::silu", 4096, 128, 26, 0};
constexpr KernelType kActivationBackward{
    "triton_poi_fused_mul_silu_backward_9", "SiluBackward0", 4096, 128, 32, 0};
constexpr KernelType kDown{
    "nvjet_sm90_192x192_64x4_2x1_v_bz_coopA_TNT", "aten::mm", 132, 384, 168, 230'424};
constexpr KernelType kWeightGradient{
    "nvjet_sm90_256x128_64x4_1x2_h_bz_coopA_NTT", "aten::mm", 132, 384, 168, 230'424};
constexpr KernelType kRouter{
    "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(float const*, unsigned "
    "int, int)",
    "aten::topk",
    1024,
    256,
    40,
    4096};
constexpr KernelType kExperts{
    "void grouped_gemm::kernel<cutlass::bfloat16_t, 128, 256, 64>(grouped_gemm::Problem*)",
    "aten::_grouped_mm",
    132,
    384,
    168,
    230'424};
constexpr KernelType kMerge{
    "void at::native::index_elementwise_kernel<128, 4>(long, at::native::IndexAdd)",
    "aten::index_add_",
    2048,
    128,
    30,
    0};
constexpr KernelType kEmbedding{
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long)",
    "aten::embedding",
    4096,
    256,
    28,
    0};
constexpr KernelType kEmbeddingBackward{
    "void at::native::embedding_backward_feature_kernel<c10::BFloat16, float, long>(long const*, "
    "c10::BFloat16 const*)",
    "EmbeddingBackward0",
    2048,
    256,
    36,
    8192};
constexpr KernelType kLoss{"triton_red_fused__log_softmax_nll_loss_forward_12",
                           "aten::cross_entropy_loss",
                           4096,
                           512,
                           40,
                           256};
constexpr KernelType kLossBackward{
    "triton_red_fused__log_softmax_backward_13", "NllLossBackward0", 4096, 512, 40, 256};
constexpr KernelType kAdam{
    "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>, "
    "at::native::FusedAdam<float, 4>>(at::native::TensorListMetadata<4>)",
    "aten::_fused_adamw_",
    320,
    512,
    56,
    0};

constexpr Catalog kCatalog{
    .attention_forward = {{&kNorm, 40}, {&kQkv, 170}, {&kAttention, 200}, {&kProjection, 110}},
    .mlp_forward = {{&kNorm, 40}, {&kUp, 200}, {&kActivation, 40}, {&kDown, 200}},
    .router = {{&kRouter, 40}},
    .experts_forward = {{&kExperts, 200}, {&kActivation, 20}, {&kExperts, 200}},
    .merge = {{&kMerge, 20}},
    .mlp_backward = {{&kWeightGradient, 200},
                     {&kActivationBackward, 40},
                     {&kUp, 200},
                     {&kNormBackward, 40}},
    .experts_backward = {{&kExperts, 200}, {&kActivationBackward, 20}, {&kExperts, 200}},
    .attention_backward = {{&kWeightGradient, 110},
                           {&kAttentionBackward, 200},
                           {&kQkv, 170},
                           {&kNormBackward, 40}},
    .embedding_forward = {{&kEmbedding, 1000}},
    .embedding_backward = {{&kEmbeddingBackward, 1000}},
    .loss_forward = {{&kLoss, 1000}},
    .loss_backward = {{&kLossBackward, 1000}},
    .optimizer = {{&kAdam, 400}, {&kAdam, 400}, {&kAdam, 200}},
};

[[noreturn]] void unknown_op() {
  throw Error(ErrorKind::internal, "simulate: a job has an operation that has no names");
}

}  // namespace

const OpWords& op_words(Op op) {
  switch (op) {
    case Op::all_reduce: return kAllReduce;
    case Op::all_gather: return kAllGather;
    case Op::reduce_scatter: return kReduceScatter;
    case Op::all_to_all: return kAllToAll;
    case Op::send: return kSend;
    case Op::recv: return kRecv;
    default: unknown_op();
  }
}

const KernelType& communication_kernel(Op op) {
  switch (op) {
    case Op::all_reduce: return kAllReduceKernel;
    case Op::all_gather: return kAllGatherKernel;
    case Op::reduce_scatter: return kReduceScatterKernel;
    case Op::all_to_all: return kAllToAllKernel;
    case Op::send: return kSendKernel;
    case Op::recv: return kRecvKernel;
    default: unknown_op();
  }
}

const Catalog& catalog() { return kCatalog; }

}  // namespace commlens::simulate
