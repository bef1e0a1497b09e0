// One process of a Nsight Systems export, read into a recording.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/nsys_database.h"
#include "model/builder.h"

namespace commlens {

// What GPUs did, each with the columns globalPid and deviceId.
inline constexpr std::array<std::string_view, 6> kNsysGpuTables{
    "CUPTI_ACTIVITY_KIND_KERNEL",          "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",          "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"};

// Which rows are a process's. Where the export does not tell, all are.
struct NsysProcess {
  std::optional<std::int64_t> global_pid;
  std::vector<std::int64_t> devices = {};  // that only this one used, by the tables that tell

  static constexpr std::int64_t kThreadBits = 0xFFFFFF;
  // SQL for one of kNsysGpuTables. Where one of several processes is meant and the table does not
  // tell whose its rows are, the GPU tells; what several use is nobody's, so that none counts
  // twice.
  std::string of_gpu(const NsysDatabase& database, std::string_view table) const;
  std::string of_thread() const;  // for tables with globalTid
  static std::int64_t pid(std::int64_t global) { return (global >> 24) & kThreadBits; }
  static std::int64_t tid(std::int64_t global) { return global & kThreadBits; }
};

// NVTX_EVENTS.eventType. Ranges that are pushed and popped nest on their thread; those that are
// started and ended do not, and another thread may end them.
inline constexpr std::int64_t kNsysPushPop = 59;
inline constexpr std::int64_t kNsysStartEnd = 60;

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
// Training steps, as the program marks them.
void read_nsys_steps(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder);

}  // namespace commlens
