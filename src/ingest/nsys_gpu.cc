// CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid,
// demangledName, shortName), _MEMCPY (..., copyKind, bytes), _MEMSET, _GRAPH_TRACE. Names are ids
// of StringIds. Columns that a release lacks read as NULL.
#include <array>

#include "ingest/nsys_process.h"

namespace commlens {
namespace {

// By copyKind, as PyTorch's profiler would name them.
constexpr std::array<std::string_view, 14> kCopies{
    "Memcpy Unknown", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA", "Memcpy AtoH",
    "Memcpy AtoA",    "Memcpy AtoD", "Memcpy DtoA", "Memcpy DtoD", "Memcpy HtoH",
    "Memcpy PtoP",    "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"};

std::string_view copy_name(std::int64_t kind) {
  const bool known = kind >= 0 && kind < static_cast<std::int64_t>(kCopies.size());
  return kCopies[known ? static_cast<std::size_t>(kind) : 0];
}

// The columns that all these tables begin with.
const std::vector<std::string_view> kColumns{"start",     "end",      "deviceId",
                                             "contextId", "streamId", "correlationId"};

ActivityInput activity_of(const NsysRow& row, ActivityKind kind, std::string_view name) {
  return {.kind = kind,
          .start = row.integer(0),
          .end = row.integer(1, row.integer(0)),
          .name = name,
          .stream = {.device = row.integer(2),
                     .context = row.integer(3, kUnknown),
                     .stream = row.integer(4)},
          .correlation = static_cast<std::uint64_t>(row.integer(5)),
          .external_id = 0,
          .meta = {}};
}

class GpuReader {
 public:
  GpuReader(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder)
      : database_(database), process_(process), builder_(builder) {}

  template <class Name>
  std::int64_t read(std::string_view table, std::vector<std::string_view> more, ActivityKind kind,
                    Name name) {
    std::vector<std::string_view> columns = kColumns;
    columns.insert(columns.end(), more.begin(), more.end());
    database_.need(table, {"start", "end", "deviceId", "streamId", "correlationId"});
    if (process_.global_pid) database_.need(table, {"globalPid"});
    columns.push_back("globalPid");
    const int owner = static_cast<int>(columns.size()) - 1;
    const bool told = process_.global_pid && database_.has_column(table, "globalPid");
    std::string where = process_.of_gpu(database_, table);
    if (told) where += " OR globalPid IS NULL";
    std::int64_t rows = 0;
    database_.each(
        table, columns,
        [&](const NsysRow& row) {
          ++builder_.about().events;
          if (told && row.is_null(owner))
            return builder_.notes().add(Note::rows_of_no_process, "in " + std::string(table));
          ++rows;
          if (has_times(row)) add(activity_of(row, kind, name(row)));
        },
        where, "start");
    return rows;
  }

 private:
  void add(const ActivityInput& activity) {
    if (activity.kind == ActivityKind::kernel && activity.name.empty())
      builder_.notes().add(Note::unnamed_kernels, "at " + std::to_string(activity.start) + " ns");
    builder_.add_activity(activity);
  }

  bool has_times(const NsysRow& row) {
    const std::int64_t start = row.integer(0);
    const std::int64_t end = row.integer(1, start);
    if (!row.is_number(0)) {
      builder_.notes().add(Note::missing_time);
      return false;
    }
    if (!row.is_number(1)) builder_.notes().add(Note::missing_duration);
    if (!is_in_session(start) || !is_in_session(end)) {
      builder_.notes().add(Note::absurd_time, "from " + std::to_string(start) + " ns");
      return false;
    }
    if (end < start) builder_.notes().add(Note::negative_duration);
    return end >= start;
  }

  NsysDatabase& database_;
  const NsysProcess& process_;
  TraceBuilder& builder_;
};

}  // namespace

void read_nsys_gpu(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  GpuReader reader(database, process, builder);
  if (!database.has_column("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"))
    database.need("CUPTI_ACTIVITY_KIND_KERNEL", {"shortName"});
  reader.read("CUPTI_ACTIVITY_KIND_KERNEL", {"demangledName", "shortName"}, ActivityKind::kernel,
              [&database](const NsysRow& row) {
                const std::string_view full = database.string(row.integer(6, -1));
                return full.empty() ? database.string(row.integer(7, -1)) : full;
              });
  reader.read("CUPTI_ACTIVITY_KIND_MEMCPY", {"copyKind"}, ActivityKind::memcpy,
              [](const NsysRow& row) { return copy_name(row.integer(6, -1)); });
  reader.read("CUPTI_ACTIVITY_KIND_MEMSET", {}, ActivityKind::memset,
              [](const NsysRow&) { return std::string_view("Memset (Device)"); });
  const std::int64_t graphs =
      reader.read("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {}, ActivityKind::kernel,
                  [](const NsysRow&) { return std::string_view("CUDA graph"); });
  if (graphs > 0) builder.notes().add(Note::whole_graphs, graphs);
}

}  // namespace commlens
