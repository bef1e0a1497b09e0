#include <algorithm>

#include "base/json_out.h"
#include "simulate/kineto_parts.h"

namespace commlens::simulate {
namespace {

void number(JsonOut& json, std::string_view key, std::int64_t value) {
  json.key(key);
  json.value(value);
}

void text(JsonOut& json, std::string_view key, std::string_view value) {
  json.key(key);
  json.value(value);
}

void write_device(JsonOut& json, int id) {
  json.compact_next();
  json.begin_object();
  number(json, "id", id);
  text(json, "name", "NVIDIA H100 80GB HBM3");
  number(json, "totalGlobalMem", 84'943'110'144);
  number(json, "computeMajor", 9);
  number(json, "computeMinor", 0);
  number(json, "maxThreadsPerBlock", 1024);
  number(json, "maxThreadsPerMultiprocessor", 2048);
  number(json, "regsPerBlock", 65'536);
  number(json, "warpSize", 32);
  number(json, "sharedMemPerBlock", 49'152);
  number(json, "numSms", 132);
  number(json, "regsPerMultiprocessor", 65'536);
  number(json, "sharedMemPerBlockOptin", 232'448);
  number(json, "sharedMemPerMultiprocessor", 233'472);
  json.end_object();
}

void write_group(JsonOut& json, const Group& group) {
  json.compact_next();
  json.begin_object();
  text(json, "pg_name", group.name);
  text(json, "pg_desc", group.description);
  text(json, "backend_config", "cuda:nccl");
  number(json, "pg_size", static_cast<std::int64_t>(group.ranks.size()));
  json.key("ranks");
  json.begin_array();
  for (const int rank : group.ranks) json.value(rank);
  json.end_array();
  json.end_object();
}

// A process lists the groups that it is a member of.
void write_groups(JsonOut& json, const Profile& profile) {
  const Layout& layout = profile.job().layout;
  const Place& place = layout.places[static_cast<std::size_t>(profile.rank())];
  number(json, "pg_count",
         std::ranges::count_if(place.group, [](int group) { return group >= 0; }));
  json.key("pg_config");
  json.begin_array();
  for (const int group : place.group) {
    if (group >= 0) write_group(json, layout.groups[static_cast<std::size_t>(group)]);
  }
  json.end_array();
  text(json, "nccl_version", "2.26.2");
}

// Old PyTorch knew no more than the first three.
void write_distributed(JsonOut& json, const Profile& profile) {
  json.key("distributedInfo");
  json.begin_object();
  text(json, "backend", "nccl");
  number(json, "rank", profile.rank());
  number(json, "world_size", profile.job().spec.world());
  if (profile.options().metadata) write_groups(json, profile);
  json.end_object();
}

}  // namespace

// The writer of JSON stays inside the object that the events complete: kineto_writer.cc closes it.
void write_kineto_head(const Profile& profile, Sink& sink) {
  JsonOut json(sink, 2);
  json.begin_object();
  number(json, "schemaVersion", 1);
  json.key("deviceProperties");
  json.begin_array();
  for (int id = 0; id < profile.devices(); ++id) write_device(json, id);
  json.end_array();
  number(json, "cupti_version", 24);
  number(json, "cuda_runtime_version", 12'060);
  number(json, "cuda_driver_version", 12'060);
  write_distributed(json, profile);
  if (const std::string host = profile.host(); !host.empty()) text(json, "host_name", host);
  text(json, "displayTimeUnit", "ms");
  number(json, "baseTimeNanoseconds", kBaseNs);
  json.key("traceEvents");
  sink.append('[');
}

}  // namespace commlens::simulate
