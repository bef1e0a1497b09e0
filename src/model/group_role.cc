#include "model/group_role.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace commlens {
namespace {

struct RoleName {
  GroupRole role;
  std::string_view name;
};
constexpr std::array<RoleName, 5> kRoleNames{{{GroupRole::data, "dp"},
                                              {GroupRole::tensor, "tp"},
                                              {GroupRole::pipeline, "pp"},
                                              {GroupRole::expert, "ep"},
                                              {GroupRole::context, "cp"}}};

constexpr std::array<RoleName, 16> kWords{{{GroupRole::data, "dp"},
                                           {GroupRole::data, "ddp"},
                                           {GroupRole::data, "fsdp"},
                                           {GroupRole::data, "hsdp"},
                                           {GroupRole::data, "edp"},
                                           {GroupRole::data, "data"},
                                           {GroupRole::tensor, "tp"},
                                           {GroupRole::tensor, "etp"},
                                           {GroupRole::tensor, "tensor"},
                                           {GroupRole::pipeline, "pp"},
                                           {GroupRole::pipeline, "pipe"},
                                           {GroupRole::pipeline, "pipeline"},
                                           {GroupRole::expert, "ep"},
                                           {GroupRole::expert, "expert"},
                                           {GroupRole::context, "cp"},
                                           {GroupRole::context, "context"}}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::vector<std::string> description_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (is_letter(c)) {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

using Axes = std::array<bool, kRoleNames.size() + 1>;  // by GroupRole

// Those that a description names.
Axes axes_of(std::string_view description) {
  Axes named{};
  for (const std::string& word : description_words(description)) {
    for (const RoleName& known : kWords) {
      if (word == known.name) named[static_cast<std::size_t>(known.role)] = true;
    }
  }
  return named;
}

}  // namespace

std::string_view group_role_name(GroupRole role) {
  const auto* const found = std::find_if(kRoleNames.begin(), kRoleNames.end(),
                                         [role](const RoleName& row) { return row.role == role; });
  return found == kRoleNames.end() ? std::string_view() : found->name;
}

std::optional<GroupRole> group_role_from_name(std::string_view name) {
  const auto* const found = std::find_if(kRoleNames.begin(), kRoleNames.end(),
                                         [name](const RoleName& row) { return row.name == name; });
  return found == kRoleNames.end() ? std::nullopt : std::optional(found->role);
}

std::optional<GroupRole> group_role_from_description(std::string_view description) {
  Axes named = axes_of(description);
  const auto has = [&named](GroupRole role) { return named[static_cast<std::size_t>(role)]; };
  // Gradients are summed over the ranks that hold the same parameters, whatever part of a sequence
  // or which tokens these saw: "DATA_PARALLEL_GROUP_WITH_CP", "EXPERT_DATA_PARALLEL_GROUP".
  if (has(GroupRole::data)) {
    const bool mixed = has(GroupRole::tensor) || has(GroupRole::pipeline);
    return mixed ? GroupRole::unknown : GroupRole::data;
  }
  // "EXPERT_TENSOR_PARALLEL_GROUP" splits the layers of an expert.
  if (has(GroupRole::tensor)) named[static_cast<std::size_t>(GroupRole::expert)] = false;
  std::optional<GroupRole> only;
  for (const RoleName& row : kRoleNames) {
    if (has(row.role)) only = only ? GroupRole::unknown : row.role;
  }
  return only;
}

}  // namespace commlens
