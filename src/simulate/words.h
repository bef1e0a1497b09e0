// How PyTorch, NCCL and the CUDA runtime spell what a simulated job does: the names that traces
// carry.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/operation.h"

namespace commlens::simulate {

// The spellings of one communication.
struct OpWords {
  std::string_view op;          // as commlens prints it: "all_gather"
  std::string_view collective;  // "Collective name" of record_param_comms: "_allgather_base"
  std::string_view annotation;  // the user annotation around the launch: "nccl:_all_gather_base"
  std::string_view dispatch;    // the operator that Python called: "c10d::_allgather_base_"
  std::string_view kernel;      // NCCL's, for bf16
};
// Only of the operations that jobs are made of; any other is an internal error.
const OpWords& op_words(Op op);

// A kind of kernel, and of the operator that launches it.
struct KernelType {
  std::string_view name;
  std::string_view cpu_op;
  int grid = 0;   // blocks
  int block = 0;  // threads
  int registers = 0;
  int shared_memory = 0;  // bytes
};

// A kernel with its share of the time of the stretch that it belongs to.
struct KernelShare {
  const KernelType* type = nullptr;
  int permille = 0;
};

// Forward and backward halves of a layer, the mixture-of-experts variants of the second half, and
// the rest. The shares of the attention and mlp halves together are 1000; those of a mixture of
// experts' router, experts and merge are mlp's.
struct Catalog {
  KernelShare attention_forward[4];
  KernelShare mlp_forward[4];
  KernelShare router[1];
  KernelShare experts_forward[3];
  KernelShare merge[1];
  KernelShare mlp_backward[4];
  KernelShare experts_backward[3];
  KernelShare attention_backward[4];
  KernelShare embedding_forward[1];
  KernelShare embedding_backward[1];
  KernelShare loss_forward[1];
  KernelShare loss_backward[1];
  KernelShare optimizer[3];
};
const Catalog& catalog();

// What NCCL launches: name by op, 24 channels.
const KernelType& communication_kernel(Op op);

}  // namespace commlens::simulate
