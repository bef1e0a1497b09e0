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
void write_distributed(JsonOut& json, const SimulatedJob& job, int rank) {
  const Place& place = job.layout.places[static_cast<std::size_t>(rank)];
  json.key("distributedInfo");
  json.begin_object();
  text(json, "backend", "nccl");
  number(json, "rank", rank);
  number(json, "world_size", job.spec.world());
  number(json, "pg_count",
         std::ranges::count_if(place.group, [](int group) { return group >= 0; }));
  json.key("pg_config");
  json.begin_array();
  for (const int group : place.group) {
    if (group >= 0) write_group(json, job.layout.groups[static_cast<std::size_t>(group)]);
  }
  json.end_array();
  text(json, "nccl_version", "2.26.2");
  json.end_object();
}

}  // namespace

// The writer of JSON stays inside the object that the events complete: kineto_writer.cc closes it.
void write_kineto_head(const SimulatedJob& job, int rank, Sink& sink,
                       const KinetoOptions& options) {
  const Place& place = job.layout.places[static_cast<std::size_t>(rank)];
  JsonOut json(sink, 2);
  json.begin_object();
  number(json, "schemaVersion", 1);
  json.key("deviceProperties");
  json.begin_array();
  // A process sees the GPUs of its host; more than eight are more than hosts have, but every rank
  // needs its own.
  for (int id = 0; id < std::min(job.spec.ranks_per_host, std::max(8, place.device + 1)); ++id)
    write_device(json, id);
  json.end_array();
  number(json, "cupti_version", 24);
  number(json, "cuda_runtime_version", 12'060);
  number(json, "cuda_driver_version", 12'060);
  write_distributed(json, job, rank);
  if (options.host_name) text(json, "host_name", host_name(place.host));
  text(json, "displayTimeUnit", "ms");
  number(json, "baseTimeNanoseconds", kBaseNs);
  json.key("traceEvents");
  sink.append('[');
}

}  // namespace commlens::simulate
