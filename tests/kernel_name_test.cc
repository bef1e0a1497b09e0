#include "model/kernel_name.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "model/mangled_name.h"

namespace commlens {
namespace {

struct Stripped {
  std::string_view name;
  std::string_view stripped;
};

TEST(StrippedKernelName, CutsArgumentsWhereTheyBegin) {
  constexpr Stripped kNames[] = {
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
       "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_SendRecv"},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
       "ncclDevKernel_SendRecv"},
      {"void (anonymous namespace)::one_shot_all_reduce_kernel<float, 8>(float*)",
       "(anonymous namespace)::one_shot_all_reduce_kernel"},
      {"void <unnamed>::one_shot_all_reduce_kernel<float, (int)8>(float *)",
       "(anonymous namespace)::one_shot_all_reduce_kernel"},
      {"void at::native::(anonymous namespace)::foo<at::(anonymous namespace)::Bar<(int)4>, "
       "2>(int)",
       "at::native::(anonymous namespace)::foo"},
      {"void ns::Functor::operator()<float>(float*) const", "ns::Functor::operator()"},
      {"ns::operator<(int, int)", "ns::operator<"},
      {"ns::operator<< <int>(int)", "ns::operator<<"},
      {"ns::Ptr<float>::operator->()", "ns::Ptr::operator->"},
      {"ns::operator>><int>(int)", "ns::operator>>"},
      {"bool ns::operator<=><int>(int)", "bool ns::operator<=>"},
      {"my_operator<int>(int)", "my_operator"},
      {"void ns::f<&(ns::operator<(int))>(int)", "ns::f"},
      {"void ns::f<ns::V<((1)>(2))>, ((3)<(4))>::g<int>(int)", "ns::f::g"},
      {"void ns::f<decltype (a->b)>(int)", "ns::f"},
      {"ns::f::{lambda(int)#1}::operator()(int) const", "ns::f::{lambda(int)#1}::operator()"},
      {"void f<ns::g(int)::{lambda(float)#1}>(int, ns::g(int)::{lambda(float)#1})", "f"},
      {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, (bool)0>(int)",
       "internal::gemvx::kernel"},
      {"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>) [clone .kd]",
       "ncclDevKernel_Generic_1"},
      {"ncclDevKernel_Generic_1 [clone .kd]", "ncclDevKernel_Generic_1"},
      {"Cijk_Ailk_Bljk_SB_MT64x64.kd", "Cijk_Ailk_Bljk_SB_MT64x64"},
      {"__device_stub__ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
       "ncclDevKernel_Generic_1"},
      {"ns::__device_stub__kernel(int)", "ns::kernel"},
      {"__device_stub__Z22ncclDevKernel_SendRecvP11ncclDevCommmP8ncclWork(ncclDevComm*, unsigned "
       "long)",
       "ncclDevKernel_SendRecv"},
      {"  triton_poi_fused_add_0d1d2de ", "triton_poi_fused_add_0d1d2de"},
      {"ns::truncated<int, ns::other<", "ns::truncated"},
      {"", ""},
      {"(", "("},
      {"<", "<"},
      {"void ", "void"},
  };
  for (const Stripped& row : kNames)
    EXPECT_EQ(stripped_kernel_name(row.name), row.stripped) << row.name;
}

// Symbols as g++ mangles declarations like the kernels'.
TEST(StrippedKernelName, ReadsMangledNames) {
  constexpr Stripped kNames[] = {
      {"_Z22ncclDevKernel_SendRecvP11ncclDevCommmP8ncclWork", "ncclDevKernel_SendRecv"},
      {"_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
       "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
      {"_Z23ncclDevKernel_Generic_424ncclDevKernelArgsStorageILm4096EE.kd",
       "ncclDevKernel_Generic_4"},
      {"_ZN4vllm26cross_device_reduce_1stageI6__halfLi8EEEvPNS_8RankDataENS_11RankSignalsEPT_ii",
       "vllm::cross_device_reduce_1stage"},
      {"_ZN12_GLOBAL__N_126one_shot_all_reduce_kernelIfLi8ELb1EEEvPT_j",
       "(anonymous namespace)::one_shot_all_reduce_kernel"},
      {"_ZN52_GLOBAL__N__1d6e0ca0_21_CUDASymmetricMemory_cu_0ab1d24barrier_kernelEv",
       "_ZN52_GLOBAL__N__1d6e0ca0_21_CUDASymmetricMemory_cu_0ab1d24barrier_kernelEv"},
      {"_ZN12_GLOBAL__N_126multimem_all_gather_kernelILNS_1EE1EZ4mainEUliE_EEvT0_",
       "(anonymous namespace)::multimem_all_gather_kernel"},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4EZ4mainEUliE0_EEviT0_",
       "at::native::vectorized_elementwise_kernel"},
      {"_ZN4deep5packsIJNS_1VIJLi1ELin2ELc99ELb1ELDnEEEEN12_GLOBAL__N_14PairIPiRKcEEfEEEvDpT_",
       "deep::packs"},
      {"_ZN4deep3retIiEEDTplcvT__ELi1EES1_", "deep::ret"},
      {"_Z8apply_fnIXadL_Z3fooiEEEvv", "apply_fn"},
      {"_ZN3CtxclIiEEvT_", "Ctx::operator()"},
      {"_ZSt4swapIiEvRT_S1_", "std::swap"},
      {"_ZL6kernelv", "kernel"},
      {"_ZZ4mainENKUliE_clEi", "main"},
  };
  for (const Stripped& row : kNames)
    EXPECT_EQ(stripped_kernel_name(row.name), row.stripped) << row.name;
}

TEST(StrippedKernelName, LeavesBrokenSymbolsAsTheyAre) {
  for (std::string_view name :
       {"_Z", "_Z9short", "_ZN", "_ZN3foo", "_ZN3fooI", "_ZN3fooIXE", "_Z99999999999999999999999x",
        "_ZNE", "_ZStE", "_Z3foo\xFF\x01", "_ZN3fooIL", "_ZN3fooILN", "_ZN3fooIS", "_ZN3fooIT",
        "_ZN3fooIUl", "_ZZZZ", "_ZN3fooID", "_ZN3fooIDF"}) {
    const std::string stripped = stripped_kernel_name(name);
    EXPECT_TRUE(stripped == name || stripped == "foo" || stripped == "foo\xFF\x01")
        << name << " " << stripped;
  }
}

TEST(StrippedKernelName, TakesLinearTimeOfHostileNames) {
  // Each substitution repeats the type before it twice: printed in full, this is 2^5000 characters.
  std::string doubling = "_ZN3fooI1A";
  for (int level = 0; level < 5000; ++level) doubling += "1BIS_S_E";
  EXPECT_EQ(stripped_kernel_name(doubling + "EEvv"), "foo");
  constexpr std::size_t kLong = 1'000'000;
  for (std::string piece :
       {"<", "(", "{", "operator", "a<b>::", "((", "<(", "_ZN", "operator<", "A", "a1", ")"}) {
    std::string name = piece;
    while (name.size() < kLong) name += name;
    stripped_kernel_name(name);
    stripped_kernel_name("k<" + name);
    classify_kernel_name(name);
    classify_kernel_name("_ZN1kI" + name);
  }
}

struct Classified {
  std::string_view name;
  Op op;
  std::string_view library;
  std::string_view dtype = "";
  bool may_lie = false;
};

void expect_communication(const Classified& row) {
  const NameVerdict verdict = classify_kernel_name(row.name);
  EXPECT_EQ(verdict.kind, NameClass::communication) << row.name;
  EXPECT_EQ(op_name(verdict.op), op_name(row.op)) << row.name;
  EXPECT_EQ(verdict.library, row.library) << row.name;
  EXPECT_EQ(verdict.dtype, row.dtype) << row.name;
  EXPECT_EQ(verdict.op_may_lie, row.may_lie) << row.name;
  EXPECT_FALSE(verdict.possible) << row.name;
}

TEST(ClassifyKernelName, KnowsNcclOfAllVersions) {
  constexpr Classified kNames[] = {
      {"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", Op::all_reduce, "NCCL", "Float"},
      {"ncclAllReduceTreeLLKernel_sum_f16", Op::all_reduce, "NCCL", "Half"},
      {"ncclAllReduceCollNetLLKernel_sum_i8", Op::all_reduce, "NCCL", "Char"},
      {"ncclAllGatherRingLLKernel_copy_i8", Op::all_gather, "NCCL"},
      {"ncclReduceScatterRingLLKernel_sum_u64", Op::reduce_scatter, "NCCL", "UInt64"},
      {"ncclReduceRingLLKernel_max_f64", Op::reduce, "NCCL", "Double"},
      {"ncclBroadcastRingLLKernel_copy_i8", Op::broadcast, "NCCL"},
      {"ncclSendRecvKernel_copy_i8", Op::send_recv, "NCCL", "", true},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", Op::all_reduce, "NCCL", "Float"},
      {"ncclKernel_AllReduce_TREE_LL_Sum___nv_bfloat16(ncclDevComm*, unsigned long, ncclWork*)",
       Op::all_reduce, "NCCL", "BFloat16"},
      {"ncclKernel_AllReduce_RING_LL_Prod_uint8_t", Op::all_reduce, "NCCL", "Byte"},
      {"ncclKernel_ReduceScatter_RING_LL_Sum_half", Op::reduce_scatter, "NCCL", "Half"},
      {"ncclKernel_Reduce_RING_LL_Max_int64_t", Op::reduce, "NCCL", "Long"},
      {"ncclKernel_AllGather_RING_LL_Sum_int8_t", Op::all_gather, "NCCL"},
      {"ncclKernel_Broadcast_RING_LL_Sum_int8_t", Op::broadcast, "NCCL"},
      {"ncclKernel_AllToAllPivot_RING_SIMPLE_Sum_int8_t", Op::all_to_all, "NCCL"},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
       Op::unknown, "NCCL", "", true},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
       Op::all_reduce, "NCCL", "Float"},
      {"ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", Op::all_reduce,
       "NCCL", "BFloat16"},
      {"ncclDevKernel_ReduceScatter_Sum_f8e4m3_RING_LL", Op::reduce_scatter, "NCCL",
       "Float8_e4m3fn"},
      {"ncclDevKernel_Reduce_Sum_u32_RING_LL", Op::reduce, "NCCL", "UInt32"},
      {"ncclDevKernel_AllGather_RING_LL", Op::all_gather, "NCCL"},
      {"ncclDevKernel_AllGatherV_RING_LL", Op::all_gather, "NCCL"},
      {"ncclDevKernel_Broadcast_RING_LL", Op::broadcast, "NCCL"},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", Op::send_recv,
       "NCCL", "", true},
      {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", Op::unknown, "NCCL or RCCL", "",
       true},
      {"ncclSymDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymDevArgs)", Op::all_reduce,
       "NCCL symmetric", "BFloat16"},
      {"ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_f8e5m2(ncclSymkDevWorkArgs4K)", Op::all_reduce,
       "NCCL symmetric", "Float8_e5m2"},
      {"ncclSymkDevKernel_AllGather_ST", Op::all_gather, "NCCL symmetric"},
      {"ncclSymkDevKernel_AllGather_RailRing_LsaSTMC", Op::all_gather, "NCCL symmetric"},
      {"ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_avg_f16", Op::reduce_scatter,
       "NCCL symmetric", "Half"},
      {"void oneRankReduce<FuncPreMulSum<float>>(void*, void*, unsigned long)", Op::unknown, "NCCL",
       "", true},
      {"ncclSomethingNew(int)", Op::unknown, "NCCL", "", true},
      {"_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
       Op::all_reduce, "NCCL", "BFloat16"},
      {"_Z38ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevCommmP8ncclWork", Op::all_reduce,
       "NCCL", "Float"},
      {"my_fork_ncclDevKernel_AllGather_RING_LL", Op::all_gather, "NCCL"},
  };
  for (const Classified& row : kNames) expect_communication(row);
}

TEST(ClassifyKernelName, KnowsNcclsContributions) {
  constexpr Classified kNames[] = {
      {"nccl_ep_jit_ht_dispatch_kernel", Op::moe_dispatch, "NCCL EP"},
      {"nccl_ep_jit_ht_combine_kernel", Op::moe_combine, "NCCL EP"},
      {"nccl_ep_jit_ht_scan_kernel", Op::unknown, "NCCL", "", true},
      {"void nccl_ep::internode_ll::dispatch<true, 3>(int)", Op::moe_dispatch, "NCCL EP"},
      {"ubx_kernel_allreduce_2shot_mc_lamport", Op::all_reduce, "NCCL ubx"},
      {"ubx_kernel_allgather_uc", Op::all_gather, "NCCL ubx"},
      {"ubx_kernel_a2a_mc", Op::all_to_all, "NCCL ubx"},
      {"ubx_kernel_alltoall_lamport_4", Op::all_to_all, "NCCL ubx"},
      {"ubx_kernel_combine_bf16", Op::moe_combine, "NCCL ubx"},
      {"ubx_kernel_barrier", Op::barrier, "NCCL ubx"},
      {"oneshot_mc_allreduce_kernel", Op::all_reduce, "custom all-reduce"},
      {"twoshot_mc_uc_allreduce", Op::all_reduce, "custom all-reduce"},
      {"lsa_poison_alltoall_kernel", Op::all_to_all, "NCCL"},
      {"lsa_simple_alltoall_kernel", Op::all_to_all, "NCCL"},
      {"reshardKernelUserWindow", Op::unknown, "NCCL", "", true},
  };
  for (const Classified& row : kNames) expect_communication(row);
}

TEST(ClassifyKernelName, KnowsRcclAndMscclWithoutAnOp) {
  constexpr Classified kNames[] = {
      {"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>) [clone .kd]", Op::unknown, "RCCL",
       "", true},
      {"ncclDevKernel_Generic_2.kd", Op::unknown, "RCCL", "", true},
      {"_Z23ncclDevKernel_Generic_424ncclDevKernelArgsStorageILm4096EE.kd", Op::unknown, "RCCL", "",
       true},
      {"ncclDevKernelDebug_Generic(ncclDevComm*, channelMasks, ncclWork*)", Op::unknown, "RCCL", "",
       true},
      {"ncclDevKernelDebug_Generic_4", Op::unknown, "RCCL", "", true},
      {"ncclKernel_Generic", Op::unknown, "RCCL", "", true},
      {"mscclKernel_Sum_half_Simple_true(ncclDevComm*)", Op::unknown, "MSCCL", "", true},
      {"mscclKernel_Prod_rccl_bfloat16_LL128_false", Op::unknown, "MSCCL", "", true},
      {"void mscclpp::allreduce7<float>(float*)", Op::all_reduce, "MSCCL++"},
      {"void mscclpp::collective::allreduceNvls<float>(float*)", Op::all_reduce, "MSCCL++"},
      {"mscclpp::putSignalTest", Op::put_get, "MSCCL++"},
      {"mscclpp::allgather_kernel", Op::all_gather, "MSCCL++"},
  };
  for (const Classified& row : kNames) expect_communication(row);
}

TEST(ClassifyKernelName, KnowsFrameworksAndEngines) {
  constexpr std::string_view kSymm = "PyTorch symmetric memory";
  constexpr std::string_view kCustom = "custom all-reduce";
  constexpr Classified kNames[] = {
      {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
       Op::all_reduce, kSymm},
      {"void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float>(int)",
       Op::all_reduce, kSymm},
      {"void (anonymous namespace)::multimem_one_shot_reduce_kernel<float>(int)", Op::all_reduce,
       kSymm},
      {"void (anonymous namespace)::one_shot_all_reduce_kernel<float, 8>(float*)", Op::all_reduce,
       kSymm},
      {"void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<float>(float*)",
       Op::all_reduce, kSymm},
      {"_ZN12_GLOBAL__N_126one_shot_all_reduce_kernelIfLi8ELb1EEEvPT_j", Op::all_reduce, kSymm},
      {"void (anonymous namespace)::multimem_all_gather_kernel<16>(int)", Op::all_gather, kSymm},
      {"void (anonymous namespace)::reduce_scatter_column_kernel<float>(int)", Op::reduce_scatter,
       kSymm},
      {"(anonymous namespace)::barrier_kernel(unsigned int**, unsigned long)", Op::barrier, kSymm},
      {"(anonymous namespace)::put_signal_kernel(unsigned int**, int)", Op::put_get, kSymm},
      {"(anonymous namespace)::wait_signal_kernel(unsigned int**, int)", Op::put_get, kSymm},
      {"(anonymous namespace)::stream_write_value32_kernel(int)", Op::put_get, kSymm},
      {"two_shot_all_reduce_kernel", Op::all_reduce, kCustom},
      {"one_shot_all_reduce_kernel_0d1d2", Op::all_reduce, kCustom},
      {"multimem_all_reduce_kernel", Op::all_reduce, kSymm},
      {"c10d::nvshmem_extension::allToAllV(void*)", Op::all_to_all, "NVSHMEM"},
      {"c10d::nvshmem_extension::tile_reduce_kernel<float>(int)", Op::reduce, "NVSHMEM"},
      {"allToAllV(void*)", Op::all_to_all, "PyTorch NVSHMEM"},
      {"exchangeSplitAndOffset(void*)", Op::all_to_all, "PyTorch NVSHMEM"},
      {"void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)", Op::all_reduce,
       kCustom},
      {"void vllm::cross_device_reduce_2stage<float, 4>(vllm::RankData*)", Op::all_reduce, kCustom},
      {"void vllm::cross_device_reduce_half_butterfly<float, 4>(int)", Op::all_reduce, kCustom},
      {"void sglang::cross_device_reduce_1stage<float, 2>(int)", Op::all_reduce, kCustom},
      {"void aiter::cross_device_reduce_2stage<float, 2>(int)", Op::all_reduce, kCustom},
      {"void my::fork::cross_device_reduce_1stage<float, 2>(int)", Op::all_reduce, kCustom},
      {"void my::fork::cross_device_reduce_1stage_opt2<float, 2>(int)", Op::all_reduce, kCustom},
      {"_ZN4vllm26cross_device_reduce_1stageI6__halfLi8EEEvPNS_8RankDataENS_11RankSignalsEPT_ii",
       Op::all_reduce, kCustom},
      {"void allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot>(int)", Op::all_reduce,
       kCustom},
      {"void quickreduce::anything<int>(int)", Op::all_reduce, kCustom},
      {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(int)",
       Op::all_reduce, "FlashInfer"},
      {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<1>(int)",
       Op::all_reduce, "FlashInfer"},
      {"void flashinfer::trtllm_mnnvl_allreduce::twoshot_allreduce_kernel<8>(int)", Op::all_reduce,
       "FlashInfer"},
      {"void "
       "flashinfer::trtllm_moe_allreduce_fusion::moereduce_allreduce_fusion_kernel_oneshot_lamport<"
       "1>(int)",
       Op::all_reduce, "FlashInfer"},
      {"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(int)",
       Op::all_reduce, "TensorRT-LLM"},
      {"void fork::allreduce_fusion_kernel_twoshot_direct<1>(int)", Op::all_reduce, kCustom},
      {"void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8>(int)", Op::all_reduce,
       kCustom},
      {"void tensorrt_llm::kernels::twoShotAllReduceKernel<float, 8>(int)", Op::all_reduce,
       kCustom},
      {"void lamport_style_one_shot_all_reduce_norm_kernel<float>(int)", Op::all_reduce, kCustom},
      {"twoshot_allreduce_kernel", Op::all_reduce, kCustom},
      {"oneshotAllreduceFusionKernel", Op::all_reduce, kCustom},
      {"moereduce_allreduce_fusion_kernel_oneshot_lamport", Op::all_reduce, kCustom},
      {"lowPrecisionTwoShotAllReduceHierKernel", Op::all_reduce, kCustom},
      {"userbuffers_fp16_sum_inplace_gpu_mc", Op::all_reduce, "userbuffers"},
      {"userbuffers_fp16_sum_inplace_gpu_rr_rs", Op::reduce_scatter, "userbuffers"},
      {"userbuffers_fp16_sum_inplace_gpu_rr_ag", Op::all_gather, "userbuffers"},
      {"kuserbuffers_pushsend", Op::send, "userbuffers"},
      {"nvshmemi_transfer_rma_p", Op::put_get, "NVSHMEM"},
      {"void nvshmemi_alltoall_kernel<int>(int)", Op::all_to_all, "NVSHMEM"},
      {"barrier_on_stream_kernel_threadgroup", Op::barrier, "NVSHMEM"},
      {"broadcast_on_stream_kernel", Op::broadcast, "NVSHMEM"},
      {"nvshmemi_proxy_quiet_kernel", Op::unknown, "NVSHMEM", "", true},
      {"void symm_mem::all_gather_kernel<4>(int)", Op::all_gather, kSymm},
  };
  for (const Classified& row : kNames) expect_communication(row);
}

TEST(ClassifyKernelName, KnowsMixtureOfExpertsExchange) {
  constexpr Classified kNames[] = {
      {"void deep_ep::internode_ll::dispatch<true, 3, 7168>(void*)", Op::moe_dispatch, "DeepEP"},
      {"void deep_ep::internode_ll::combine<3, 7168, 9>(void*)", Op::moe_combine, "DeepEP"},
      {"void deep_ep::internode_ll::dispatch_opt1_hidden6144<true>(void*)", Op::moe_dispatch,
       "DeepEP"},
      {"deep_ep::internode_ll::clean_low_latency_buffer(int*)", Op::unknown, "DeepEP", "", true},
      {"void deep_ep::internode::notify_dispatch<true, 4>(int)", Op::moe_dispatch, "DeepEP"},
      {"void deep_ep::internode::cached_notify<true>(int)", Op::unknown, "DeepEP", "", true},
      {"void deep_ep::intranode::cached_notify_combine<8>(int)", Op::moe_combine, "DeepEP"},
      {"void deep_ep::intranode::combine<8>(int)", Op::moe_combine, "DeepEP"},
      {"void deep_ep::intranode::barrier<8>(int**)", Op::barrier, "DeepEP"},
      {"void deep_ep::legacy::intranode::dispatch<8>(int)", Op::moe_dispatch, "DeepEP"},
      {"void deep_ep::elastic::hybrid_dispatch_impl<8>(int)", Op::moe_dispatch, "DeepEP"},
      {"void deep_ep::elastic::hybrid_combine_impl<8>(int)", Op::moe_combine, "DeepEP"},
      {"void deep_ep::elastic::combine_reduce_epilogue_impl<8>(int)", Op::moe_combine, "DeepEP"},
      {"void deep_ep::elastic::dispatch_copy_epilogue_impl<8>(int)", Op::moe_dispatch, "DeepEP"},
      {"void deep_ep::elastic::barrier_impl<8>(int)", Op::barrier, "DeepEP"},
      {"void deep_ep::elastic::pp_send_impl<8>(int)", Op::send, "DeepEP"},
      {"void deep_ep::elastic::pp_recv_impl<8>(int)", Op::recv, "DeepEP"},
      {"void my::deep_ep::intranode::dispatch<8>(int)", Op::moe_dispatch, "DeepEP"},
      {"_ZN7deep_ep12internode_ll8dispatchILb1ELi3ELi7168EEEvPvPiPlS3_S3_S4_S3_S2_S2_PfPKvPKl",
       Op::moe_dispatch, "DeepEP"},
      {"void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8>(int)", Op::moe_dispatch,
       "TensorRT-LLM"},
      {"moeA2ACombineKernel", Op::moe_combine, "TensorRT-LLM"},
      {"moeA2APrepareDispatchKernel", Op::moe_dispatch, "TensorRT-LLM"},
      {"moeA2APrepareSomethingKernel", Op::all_to_all, "TensorRT-LLM"},
      {"void mori::moe::EpDispatchInterNodeNormalKernel<float>(int)", Op::moe_dispatch, "MORI"},
      {"void mori::moe::EpCombineIntraNodeKernel<float>(int)", Op::moe_combine, "MORI"},
      {"EpDispatchKernel", Op::moe_dispatch, "expert parallel"},
      {"void hybrid_ep::dispatch_kernel<8>(int)", Op::moe_dispatch, "expert parallel"},
      {"void pplx::AllToAllInterNode::dispatchKernel<int>(int)", Op::moe_dispatch, "PPLX"},
      {"void pplx::combineKernel<int>(int)", Op::moe_combine, "PPLX"},
      {"void pplx::AllToAllIntraNode<int>(int)", Op::all_to_all, "PPLX"},
  };
  for (const Classified& row : kNames) expect_communication(row);
}

TEST(ClassifyKernelName, LeavesComputeAlone) {
  for (std::string_view name :
       {"Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_LDSB0_A2A_GSU1",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
        "at::native::sum_functor<float>>>(int)",
        "void at::native::vectorized_gather_kernel<16, long>(char*)",
        "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)",
        "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
        "void at::native::index_put_kernel<int>(int)",
        "void at::native::elementwise_kernel<128, 2, at::native::broadcast_all_reduce<float>>(int)",
        "void elementwise_broadcast_add<float>(float*)",
        "void segment_reduce_forward_kernel<float>(int)",
        "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<float>, ncclFoo>(int)",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*>, int>(int)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)",
        "splitKreduce_kernel",
        "void cudnn::ops::nchwToNhwcKernel<float, float>(int)",
        "nchwToNhwcKernel",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float>(int)",
        "indexSelect",
        "ampere_sgemm_128x128_tn",
        "nvjet_sm100_tst_8x64_64x16_1x4_h_bz_TNN",
        "reduce_1Block_kernel",
        "SubTensorOpWithScalar1d",
        "__amd_rocclr_fillBufferAligned",
        "small_reduce_kernel",
        "overall_gather",
        "one_shot_small_reduce_kernel",
        "stepDispatched",
        "triton_red_fused_sum_0",
        "gather_kernel",
        "scatter_kernel",
        "broadcast_kernel",
        "reduce_kernel",
        "barrier_kernel",
        "tile_reduce_kernel",
        "void flash::flash_fwd_splitkv_combine_kernel<4>(int)",
        "void deep_ep::layout::get_dispatch_layout<8>(int)",
        "get_dispatch_layout",
        "void dispatcher::run<int>(int)",
        ""}) {
    const NameVerdict verdict = classify_kernel_name(name);
    EXPECT_EQ(verdict.kind, NameClass::compute) << name;
    EXPECT_FALSE(verdict.possible) << name;
    EXPECT_TRUE(verdict.library.empty()) << name;
  }
}

TEST(ClassifyKernelName, AsksAboutWordsOfUnknownLibraries) {
  for (std::string_view name :
       {"void my::dispatch<int>(int)", "my_combine_kernel", "fused_gemm_all_reduce",
        "myAllReduceKernel", "all_gather_gemm_kernel", "gemm_reduce_scatter", "alltoall_kernel",
        "my_all_to_allv", "a2a_kernel", "notify_peers", "p2p_copy", "gemm_symm_mem",
        "triton_sendrecv"}) {
    const NameVerdict verdict = classify_kernel_name(name);
    EXPECT_EQ(verdict.kind, NameClass::compute) << name;
    EXPECT_TRUE(verdict.possible) << name;
  }
}

TEST(NameRules, AreReadLineByLine) {
  const auto rules = parse_name_rules(
      "\xEF\xBB\xBF# our own\r\n"
      "\n"
      "  my::exchange_* = moe_dispatch  # the expert exchange\r\n"
      "ns::{lambda()#1} = all_reduce\n"
      "ns::operator== = compute\n"
      "*noise*=unknown",
      "rules.txt");
  ASSERT_EQ(rules.size(), 4u);
  EXPECT_EQ(rules[0].pattern, "my::exchange_*");
  EXPECT_EQ(rules[0].kind, NameClass::communication);
  EXPECT_EQ(rules[0].op, Op::moe_dispatch);
  EXPECT_EQ(rules[1].pattern, "ns::{lambda()#1}");
  EXPECT_EQ(rules[2].pattern, "ns::operator==");
  EXPECT_EQ(rules[2].kind, NameClass::compute);
  EXPECT_EQ(rules[3].op, Op::unknown);
  EXPECT_TRUE(parse_name_rules("", "empty").empty());
  EXPECT_TRUE(parse_name_rules("# only\n#a comment", "x").empty());
}

std::string rules_error(std::string_view text) {
  try {
    parse_name_rules(text, "rules.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(NameRules, SayWhereTheyAreNotUnderstood) {
  EXPECT_EQ(rules_error("a = send\nnothing"),
            "rules.txt, line 2: expected PATTERN = OP, got \"nothing\"");
  EXPECT_EQ(rules_error("\n\n = send"), "rules.txt, line 3: no pattern before the =");
  EXPECT_NE(rules_error("a = allreduce").find("line 1: \"allreduce\" is no operation"),
            std::string::npos);
  EXPECT_NE(rules_error("a = ").find("all_reduce, all_gather"), std::string::npos);
}

TEST(NameRules, TheFirstMatchWinsOverTheStrippedName) {
  const auto rules = parse_name_rules(
      "my::gemm_??_comm = all_reduce\n"
      "my::* = compute\n"
      "*a*b*c = send\n",
      "rules.txt");
  EXPECT_EQ(match_rule(rules, "void my::gemm_16_comm<float>(float*)"), &rules[0]);
  EXPECT_EQ(match_rule(rules, "_ZN2my12gemm_16_commIfEEvPf"), &rules[0]);
  EXPECT_EQ(match_rule(rules, "void my::gemm_128_comm<float>(float*)"), &rules[1]);
  EXPECT_EQ(match_rule(rules, "xaybbzabc"), &rules[2]);
  EXPECT_EQ(match_rule(rules, "xaybbzab"), nullptr);
  EXPECT_EQ(match_rule(rules, ""), nullptr);
  EXPECT_EQ(match_rule({}, "my::x"), nullptr);
  EXPECT_NE(match_rule(parse_name_rules("* = send", "r"), ""), nullptr);
}

}  // namespace
}  // namespace commlens
