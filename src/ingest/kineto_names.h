// What the names of events say.
#pragma once

#include <optional>
#include <string_view>

#include "ingest/call_names.h"
#include "model/trace.h"

namespace commlens {

inline constexpr std::string_view kStepPrefix = "ProfilerStep#";
inline constexpr std::string_view kRecordName = "record_param_comms";

// The record's name to what waits for what; nothing for one that is not known.
std::optional<SyncKind> sync_record_kind(std::string_view name);

// "wait" and "init" are records of the same form that communicate nothing. A collective of a name
// that is not known communicates all the same: its group and size count, its op is unknown.
inline bool is_communication_record(std::string_view collective) {
  return !collective.empty() && collective != "wait" && collective != "init";
}

// The backend of a range named after a collective ("nccl:all_reduce" -> "nccl"), or empty.
std::string_view annotation_backend(std::string_view name);
// Of those that move the data themselves, on the host, within the range.
inline bool is_host_backend(std::string_view backend) {
  return backend == "gloo" || backend == "mpi" || backend == "ucc";
}

}  // namespace commlens
