#include "simulate/layout.h"

#include <algorithm>

namespace commlens::simulate {
namespace {

std::string_view description_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::world: return "default_pg";
    case GroupKind::tensor: return "TENSOR_MODEL_PARALLEL_GROUP";
    case GroupKind::data: return "DATA_PARALLEL_GROUP";
    case GroupKind::expert: return "EXPERT_MODEL_PARALLEL_GROUP";
    case GroupKind::pipeline: return "PIPELINE_MODEL_PARALLEL_GROUP";
  }
  return "undefined";
}

Place place_of(const JobSpec& spec, int rank) {
  Place place;
  place.slice = rank % spec.tp;
  place.replica = rank / spec.tp % spec.dp;
  place.stage = rank / (spec.tp * spec.dp);
  const int each = spec.layers / spec.pp;
  const int more = spec.layers % spec.pp;  // the first `more` stages have one layer more
  place.layers = each + (place.stage < more ? 1 : 0);
  place.first_layer = place.stage * each + std::min(place.stage, more);
  place.host = rank / spec.ranks_per_host;
  place.device = rank % spec.ranks_per_host;
  return place;
}

void add_group(Layout& layout, GroupKind kind, std::vector<int> ranks) {
  const int index = static_cast<int>(layout.groups.size());
  Group group{.kind = kind,
              .name = std::to_string(index),
              .description = description_of(kind),
              .ranks = std::move(ranks)};
  for (const int rank : group.ranks) {
    Place& place = layout.places[static_cast<std::size_t>(rank)];
    place.group[static_cast<int>(kind)] = index;
    group.crosses_hosts |=
        place.host != layout.places[static_cast<std::size_t>(group.ranks[0])].host;
  }
  layout.groups.push_back(std::move(group));
}

// All groups of one kind: `size` ranks each, `stride` apart, for every rank that can be the first
// of one.
void add_groups(Layout& layout, GroupKind kind, int size, int stride) {
  if (size < 2) return;
  const int world = static_cast<int>(layout.places.size());
  for (int first = 0; first < world; ++first) {
    if (first / stride % size != 0) continue;
    std::vector<int> ranks;
    for (int i = 0; i < size; ++i) ranks.push_back(first + i * stride);
    add_group(layout, kind, std::move(ranks));
  }
}

}  // namespace

Layout make_layout(const JobSpec& spec) {
  Layout layout;
  std::vector<int> all;
  for (int rank = 0; rank < spec.world(); ++rank) {
    layout.places.push_back(place_of(spec, rank));
    all.push_back(rank);
  }
  add_group(layout, GroupKind::world, std::move(all));
  add_groups(layout, GroupKind::tensor, spec.tp, 1);
  add_groups(layout, GroupKind::data, spec.dp, spec.tp);
  if (spec.moe) add_groups(layout, GroupKind::expert, spec.expert_group(), spec.tp);
  add_groups(layout, GroupKind::pipeline, spec.pp, spec.tp * spec.dp);
  return layout;
}

int index_in_group(const Group& group, int rank) {
  return static_cast<int>(std::ranges::lower_bound(group.ranks, rank) - group.ranks.begin());
}

}  // namespace commlens::simulate
