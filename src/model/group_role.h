// What a process group is for: along which axis of the job's layout its ranks lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace commlens {

enum class GroupRole : std::uint8_t {
  unknown,
  data,      // "dp": gradients, and parameters where these are sharded
  tensor,    // "tp": parts of one layer
  pipeline,  // "pp": consecutive layers
  expert,    // "ep": tokens to experts and back
  context,   // "cp": parts of one sequence
};

std::string_view group_role_name(GroupRole role);  // "dp", ...; unknown: ""
std::optional<GroupRole> group_role_from_name(std::string_view name);

// The role that a description tells by its words, as Megatron-LM, DeepSpeed, DeviceMesh and vLLM
// write them: "mesh_tp", "EXPERT_MODEL_PARALLEL_GROUP", "dp_shard_cp". Unknown where it has words
// of several axes ("TENSOR_AND_CONTEXT_PARALLEL_GROUP"); nothing where it has none ("default_pg").
std::optional<GroupRole> group_role_from_description(std::string_view description);

}  // namespace commlens
