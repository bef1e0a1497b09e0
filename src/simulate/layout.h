// Which rank is what, and which ranks communicate: the groups of a job, in the order in which a
// program makes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/job.h"

namespace commlens::simulate {

enum class GroupKind : std::uint8_t { world, tensor, data, expert, pipeline };
inline constexpr int kGroupKinds = 5;

struct Group {
  GroupKind kind = GroupKind::world;
  std::string name{};            // PyTorch's: the number of groups made before it; "0" is the world
  std::string_view description;  // "TENSOR_MODEL_PARALLEL_GROUP", ...
  std::vector<int> ranks{};      // global, ascending
  bool crosses_hosts = false;
};

// Where a rank stands.
struct Place {
  int slice = 0;    // 0 .. tp-1
  int replica = 0;  // 0 .. dp-1
  int stage = 0;    // 0 .. pp-1
  int first_layer = 0;
  int layers = 0;
  int host = 0;
  int device = 0;
  // Its groups, as indices into Layout::groups, by GroupKind; -1 where it has none (a group of one
  // is not made).
  int group[kGroupKinds] = {-1, -1, -1, -1, -1};

  int group_of(GroupKind kind) const { return group[static_cast<int>(kind)]; }
};

struct Layout {
  std::vector<Group> groups{};
  std::vector<Place> places{};  // by rank
};

// `spec` must be valid.
Layout make_layout(const JobSpec& spec);

// Position of a rank in its group; the rank must be a member.
int index_in_group(const Group& group, int rank);

}  // namespace commlens::simulate
