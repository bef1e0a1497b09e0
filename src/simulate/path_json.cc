#include <string_view>

#include "base/json_out.h"
#include "simulate/path_truth.h"

namespace commlens::simulate {
namespace {

void member(JsonOut& json, std::string_view key, std::int64_t value) {
  json.key(key);
  json.value(value);
}

constexpr std::pair<PathClass, std::string_view> kNames[] = {
    {PathClass::compute, "compute_ns"},
    {PathClass::transfer, "transfer_ns"},
    {PathClass::host, "host_ns"},
    {PathClass::memory, "memory_ns"},
};

void write_sums(JsonOut& json, const PathTruth::Sums& sums) {
  for (const auto& [kind, name] : kNames) member(json, name, sums[static_cast<std::size_t>(kind)]);
}

void write_by_op(JsonOut& json, const Layout& layout, const PathTruth& path) {
  json.key("by_op");
  json.begin_array();
  for (const auto& [key, ns] : path.by_op) {
    json.compact_next();
    json.begin_object();
    json.key("op");
    json.value(op_words(key.first).op);
    json.key("group");
    json.value(layout.groups[static_cast<std::size_t>(key.second)].name);
    member(json, "ns", ns);
    json.end_object();
  }
  json.end_array();
}

void write_by_rank(JsonOut& json, const PathTruth& path) {
  json.key("by_rank");
  json.begin_array();
  for (std::size_t rank = 0; rank < path.by_rank.size(); ++rank) {
    const PathTruth::Sums& sums = path.by_rank[rank];
    json.compact_next();
    json.begin_object();
    member(json, "rank", static_cast<std::int64_t>(rank));
    member(json, "ns", sums[0] + sums[1] + sums[2] + sums[3]);
    write_sums(json, sums);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_critical_path(JsonOut& json, const Layout& layout, const PathTruth& path) {
  json.key("critical_path");
  json.begin_object();
  member(json, "window_ns", path.window());
  write_sums(json, path.sums);
  write_by_op(json, layout, path);
  write_by_rank(json, path);
  member(json, "rank_changes", path.rank_changes);
  json.end_object();
}

}  // namespace commlens::simulate
