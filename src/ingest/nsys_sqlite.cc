// Nsight Systems exports: SQLite databases written by `nsys export --type=sqlite`.
//
// Problem: tables and columns come and go with each release, one file holds several processes, and
// beside the events it holds whole environments with their secrets. Method: only named tables,
// columns and keys are asked for; what is missing reads as NULL. Each process that used a GPU is a
// recording of its own. Times count from the start of the session, whose time of day is in
// TARGET_INFO_SESSION_START_TIME. When it is wrong: sizes of messages are there only when exported
// with --include-blobs=true; kernels of CUDA graphs only when traced with --cuda-graph-trace=node.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/error.h"
#include "ingest/format.h"
#include "ingest/nsys_process.h"
#include "model/rank_list.h"

namespace commlens {

extern const Format kNsysSqlite;

namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);

bool sniff(std::string_view head) { return head.starts_with(kMagic); }

bool is_export(const NsysDatabase& database) {
  return database.has("META_DATA_EXPORT") || database.has("StringIds") ||
         database.has("CUPTI_ACTIVITY_KIND_KERNEL");
}

// Processes that ran something on a GPU, by their id.
std::vector<std::int64_t> gpu_processes(NsysDatabase& database) {
  std::vector<std::int64_t> found;
  for (const std::string_view table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                       "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"}) {
    if (!database.has_column(table, "globalPid")) continue;
    database.each(table, {"globalPid"}, [&found](const NsysRow& row) {
      if (row.is_null(0)) return;
      const std::int64_t process = row.integer(0);
      if (std::find(found.begin(), found.end(), process) == found.end()) found.push_back(process);
    });
  }
  std::sort(found.begin(), found.end());
  return found;
}

// GPUs that only this process used. Empty where all tables tell the process by themselves.
std::vector<std::int64_t> own_devices(NsysDatabase& database, std::int64_t process) {
  const auto tells = [&database](std::string_view table) {
    return database.has_column(table, "globalPid");
  };
  std::vector<std::int64_t> own;
  if (std::all_of(kNsysGpuTables.begin(), kNsysGpuTables.end(),
                  [&](std::string_view table) { return tells(table) || !database.has(table); }))
    return own;
  std::map<std::int64_t, std::set<std::int64_t>> users;  // by device
  for (const std::string_view table : kNsysGpuTables) {
    if (!tells(table) || !database.has_column(table, "deviceId")) continue;
    database.each(table, {"globalPid", "deviceId"}, [&users](const NsysRow& row) {
      if (!row.is_null(0) && !row.is_null(1)) users[row.integer(1)].insert(row.integer(0));
    });
  }
  for (const auto& [device, of] : users) {
    if (of.size() == 1 && of.contains(process)) own.push_back(device);
  }
  return own;
}

// The process id of an export of one process; kUnknown where several can be meant, or none is told.
std::int64_t only_process(NsysDatabase& database) {
  std::vector<std::int64_t> found = gpu_processes(database);
  if (found.empty() && database.has_column("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid")) {
    database.each("CUPTI_ACTIVITY_KIND_RUNTIME", {"globalTid"}, [&found](const NsysRow& row) {
      const std::int64_t process = row.integer(0) & ~NsysProcess::kThreadBits;
      if (!row.is_null(0) && std::find(found.begin(), found.end(), process) == found.end())
        found.push_back(process);
    });
  }
  return found.size() == 1 ? NsysProcess::pid(found.front()) : kUnknown;
}

std::vector<std::string> parts(const std::string& path) {
  NsysDatabase database(path);
  const std::vector<std::int64_t> processes = gpu_processes(database);
  std::vector<std::string> names;
  if (processes.size() < 2) return names;
  for (const std::int64_t process : processes) names.push_back(std::to_string(process));
  return names;
}

// The value of a row of a table of names and values; empty where there is none.
std::string value_of(NsysDatabase& database, std::string_view table, std::string_view name) {
  std::string value;
  database.each(
      table, {"value"},
      [&value](const NsysRow& row) {
        if (value.empty()) value = row.text(0);
      },
      "name = '" + std::string(name) + "'");
  return value;
}

void read_clock(NsysDatabase& database, TraceBuilder& builder) {
  Recording& about = builder.about();
  if (value_of(database, "META_DATA_EXPORT", "EXPORT_PARAM_TIME_NORMALIZE") == "true") {
    about.clock = ClockBase::epoch;  // times are of the day already
    return;
  }
  // Times moved by so much, in a direction that nothing tells: no time of the day.
  const std::string moved = value_of(database, "META_DATA_EXPORT", "EXPORT_PARAM_TIME_SHIFT");
  if (!moved.empty() && moved.find_first_not_of("0.") != std::string::npos) return;
  constexpr std::int64_t kLargestBase = std::int64_t{1} << 61U;
  database.each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&about](const NsysRow& row) {
    const std::int64_t base = row.integer(0, -1);
    if (base <= 0 || base > kLargestBase) return;
    about.clock_base = base;
    about.clock = ClockBase::epoch;
  });
}

// Rows whose value is `NAME="value"`: of these, names that launchers give ranks by, and no others.
// They are of the moment when nsys was started, and so of a rank only where each has an nsys of its
// own.
void read_rank_of_launcher(NsysDatabase& database, TraceBuilder& builder) {
  constexpr std::array<std::string_view, 4> kNames{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                                   "PMI_RANK"};
  for (const std::string_view name : kNames) {
    const std::string begin = std::string(name) + "=\"";
    database.each(
        "META_DATA_CAPTURE", {"value"},
        [&](const NsysRow& row) {
          const std::string_view text = row.text(0);
          std::int64_t rank = -1;
          const char* from = text.data() + begin.size();
          const auto end = std::from_chars(from, text.data() + text.size(), rank);
          if (end.ptr != from && rank >= 0 && rank < kMostRanks && !builder.about().rank)
            builder.about().rank = rank;
        },
        "name LIKE 'PROCESS_%:ENVIRONMENT_VARIABLE' AND value LIKE '" + begin + "%'");
  }
}

void read_rank_of_mpi(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  if (process.global_pid && !database.has_column("MPI_RANKS", "globalTid")) return;
  database.each(
      "MPI_RANKS", {"rank"},
      [&builder](const NsysRow& row) {
        const std::int64_t rank = row.integer(0, -1);
        if (rank >= 0 && rank < kMostRanks) builder.about().rank = rank;
      },
      process.global_pid ? process.of_thread() : std::string());
}

// What SQLite has not put into the database yet. It is opened as one that nobody changes, so that
// nothing is written beside it, and then this is not looked at.
void note_unfinished(const std::string& path, TraceBuilder& builder) {
  for (const std::string_view end : {"-wal", "-journal"}) {
    std::error_code unknown;
    const std::string beside = path + std::string(end);
    const auto bytes = std::filesystem::file_size(beside, unknown);
    if (!unknown && bytes > 0) builder.notes().add(Note::unfinished_export, beside);
  }
}

void read(Source& source, std::string_view, const ReadOptions& options, TraceBuilder& builder) {
  if (!source.is_plain_file())
    throw Error(ErrorKind::input, source.name() +
                                      ": a database can only be read from a plain file: unpack it, "
                                      "and give its name");
  NsysDatabase database(source.name());
  if (!is_export(database))
    throw Error(ErrorKind::input, source.name() +
                                      ": is a database, but no export of Nsight Systems (nsys "
                                      "export --type=sqlite)");
  NsysProcess process;
  std::int64_t id = 0;
  if (std::from_chars(options.part.data(), options.part.data() + options.part.size(), id).ec ==
          std::errc{} &&
      !options.part.empty()) {
    process.global_pid = id;
    process.devices = own_devices(database, id);
  }
  Recording& about = builder.about();
  about.backend = "nccl";
  about.session = source.name();
  about.host = value_of(database, "TARGET_INFO_SYSTEM_ENV", "Hostname");
  about.process =
      process.global_pid ? NsysProcess::pid(*process.global_pid) : only_process(database);
  builder.take_zero_for_a_time();
  read_clock(database, builder);
  note_unfinished(source.name(), builder);
  read_nsys_gpu(database, process, builder);
  read_nsys_host(database, process, builder);
  read_nsys_nccl(database, process, builder);
  read_nsys_steps(database, process, builder);
  read_rank_of_mpi(database, process, builder);
  if (!about.rank && !process.global_pid) read_rank_of_launcher(database, builder);
  for (const auto& [table, words] : database.troubles())
    builder.notes().add(Note::damaged_table, words);
}

}  // namespace

constinit const Format kNsysSqlite{
    .name = "nsys-sqlite",
    .summary = "Nsight Systems exports (nsys export --type=sqlite)",
    .sniff = sniff,
    .read = read,
    .parts = parts,
};

}  // namespace commlens
