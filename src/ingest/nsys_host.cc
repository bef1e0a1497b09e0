// CUPTI_ACTIVITY_KIND_RUNTIME holds runtime and driver calls (start, end, globalTid, correlationId,
// nameId): "cudaLaunchKernel_v7000", "cuLaunchKernelEx". _SYNCHRONIZATION says what waited for
// what (syncType 2: a stream for an event), _CUDA_EVENT where events were recorded; the latter is
// empty in many exports, and the source of a wait is then not known.
#include <map>
#include <optional>

#include "ingest/call_names.h"
#include "ingest/nsys_process.h"

namespace commlens {
namespace {

// Of streams and events where the column does not apply.
constexpr std::int64_t kNotApplicable = 4294967295;

std::optional<SyncKind> sync_kind(std::int64_t type) {
  switch (type) {
    case 1: return SyncKind::event_sync;
    case 2: return SyncKind::stream_wait;
    case 3: return SyncKind::stream_sync;
    case 4: return SyncKind::device_sync;
    default: return std::nullopt;
  }
}

void read_calls(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
  database.need(kTable, {"start", "end", "globalTid", "correlationId", "nameId"});
  database.each(
      kTable, {"start", "end", "globalTid", "correlationId", "nameId"},
      [&](const NsysRow& row) {
        ++builder.about().events;
        const std::string_view name = database.string(row.integer(4, -1));
        const auto correlation = static_cast<std::uint64_t>(row.integer(3));
        const auto blocking = blocking_kind(name);
        if (!is_launch(name) && !blocking) return;
        if (!row.is_number(0) || !is_in_session(row.integer(0)) || !is_in_session(row.integer(1)))
          return;
        const std::int64_t global = row.integer(2);
        const ThreadId thread = builder.thread(NsysProcess::pid(global), NsysProcess::tid(global));
        if (is_launch(name)) builder.add_launch(correlation, row.integer(0), thread);
        if (blocking && row.integer(1) >= row.integer(0))
          builder.add_sync_call({.start = row.integer(0),
                                 .end = row.integer(1),
                                 .correlation = correlation,
                                 .thread = thread,
                                 .kind = *blocking});
      },
      process.global_pid ? process.of_thread() : std::string(), "start");
}

// Where an event was recorded.
struct Recorded {
  std::uint64_t correlation = 0;
  Stream stream;
};

using Events = std::map<std::int64_t, Recorded>;  // by eventSyncId

Events read_events(NsysDatabase& database, const NsysProcess& process) {
  constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
  Events events;
  database.each(
      kTable, {"eventSyncId", "correlationId", "deviceId", "contextId", "streamId"},
      [&events](const NsysRow& row) {
        if (row.integer(0) == 0) return;
        events[row.integer(0)] = {.correlation = static_cast<std::uint64_t>(row.integer(1)),
                                  .stream = {.device = row.integer(2),
                                             .context = row.integer(3, kUnknown),
                                             .stream = row.integer(4)}};
      },
      process.of_gpu(database, kTable));
  return events;
}

void read_waits(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  const Events events = read_events(database, process);
  constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
  database.each(
      kTable,
      {"start", "deviceId", "contextId", "streamId", "correlationId", "syncType", "eventSyncId"},
      [&](const NsysRow& row) {
        ++builder.about().events;
        const auto kind = sync_kind(row.integer(5));
        if (!kind || !row.is_number(0) || !is_in_session(row.integer(0))) return;
        SyncRecord record{.start = row.integer(0),
                          .correlation = static_cast<std::uint64_t>(row.integer(4)),
                          .stream = {.device = row.integer(1),
                                     .context = row.integer(2, kUnknown),
                                     .stream = row.integer(3, kNotApplicable)},
                          .source = {.device = 0, .context = kUnknown, .stream = kUnknown},
                          .kind = *kind};
        if (record.stream.stream == kNotApplicable) record.stream.stream = kUnknown;
        const auto event = events.find(row.integer(6));
        const bool needs_event = *kind == SyncKind::stream_wait || *kind == SyncKind::event_sync;
        if (needs_event && event == events.end()) return;  // for what is not known
        if (needs_event) {
          record.record_correlation = event->second.correlation;
          record.source = event->second.stream;
        }
        builder.add_sync_record(record);
      },
      process.of_gpu(database, kTable), "start");
}

}  // namespace

std::string NsysProcess::of_gpu(const NsysDatabase& database, std::string_view table) const {
  if (!global_pid) return {};
  if (database.has_column(table, "globalPid")) return "globalPid = " + std::to_string(*global_pid);
  std::string list;
  for (const std::int64_t device : devices)
    list += (list.empty() ? "" : ", ") + std::to_string(device);
  return "deviceId IN (" + list + ")";
}

std::string NsysProcess::of_thread() const {
  return "(globalTid & ~" + std::to_string(kThreadBits) + ") = " + std::to_string(*global_pid);
}

void read_nsys_host(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  read_calls(database, process, builder);
  read_waits(database, process, builder);
}

}  // namespace commlens
