// The words of a name in one spelling, for rules that do not care how a library writes them.
//
//   (anonymous namespace)::one_shot_all_reduce_kernel
//   _anonymous_namespace_one_shot_all_reduce_kernel_
//
//   tensorrt_llm::kernels::oneShotAllReduceKernel
//   _tensorrt_llm_kernels_one_shot_all_reduce_kernel_
//
//   ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD
//   _nccl_symk_dev_kernel_reduce_scatter_rail_all_to_all_lsa_ld_
//
// Whole words keep "small_reduce" from being an "all_reduce".
#pragma once

#include <string>
#include <string_view>

namespace commlens {

// Lower case, an underscore before and behind each word. Linear.
std::string words_of(std::string_view name);

// Whether the words match a pattern in which `*` is any text.
bool matches_words(std::string_view pattern, std::string_view words);

}  // namespace commlens
