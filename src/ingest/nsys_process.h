// One process of a Nsight Systems export, read into a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ingest/nsys_database.h"
#include "model/builder.h"

namespace commlens {

// Which rows are a process's. Where the export does not tell, all are.
struct NsysProcess {
  std::optional<std::int64_t> global_pid;

  static constexpr std::int64_t kThreadBits = 0xFFFFFF;
  std::string of_gpu() const;     // SQL for tables with globalPid
  std::string of_thread() const;  // for tables with globalTid
  static std::int64_t pid(std::int64_t global) { return (global >> 24) & kThreadBits; }
  static std::int64_t tid(std::int64_t global) { return global & kThreadBits; }
};

// Times that no session has, as damage makes them: differences of two would leave 64 bits.
inline constexpr std::int64_t kFarthestInSession = std::int64_t{1} << 61U;
inline bool is_in_session(std::int64_t time) {
  return time >= -kFarthestInSession && time <= kFarthestInSession;
}

// Kernels, copies, sets; launches of whole CUDA graphs.
void read_nsys_gpu(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder);
// Calls that launch, calls that block, what waits for what.
void read_nsys_host(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder);
// NCCL's ranges, with sizes where the export has payloads.
void read_nsys_nccl(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder);

}  // namespace commlens
