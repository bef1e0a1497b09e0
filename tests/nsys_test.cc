// Nsight Systems exports: databases made here, with what a release has, what an old one lacks, and
// what damage does.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ingest/load.h"
#include "ingest/nsys_payload.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirst = std::int64_t{100} << 24;  // globalPid of process 100
constexpr std::int64_t kSecond = std::int64_t{200} << 24;

class Export {
 public:
  Export()
      : path_(fs::temp_directory_path() /
              ("commlens_nsys_" + std::to_string(::getpid()) + ".sqlite")) {
    fs::remove(path_);
    sqlite3_open(path_.c_str(), &database_);
    run("CREATE TABLE StringIds(id INTEGER, value TEXT)");
    run("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)");
    run("INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '3.25.0')");
    run("INSERT INTO StringIds VALUES(1, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'), (2, 'gemm'),"
        "(3, 'cudaLaunchKernel_v7000'), (4, 'cudaStreamSynchronize_v3020'),"
        "(5, 'cudaStreamWaitEvent_v3020'), (6, 'ncclAllReduce'), (7, 'ncclGroupStart'),"
        "(8, 'ncclGroupEnd'), (9, 'ncclSend'), (10, 'ncclRecv'), (11, 'ncclDevKernel_SendRecv'),"
        "(12, 'cuLaunchKernelEx'), (13, 'ncclCommInitRankConfig')");
  }
  ~Export() {
    close();
    fs::remove(path_);
  }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  void run(const std::string& sql) {
    char* trouble = nullptr;
    ASSERT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, &trouble), SQLITE_OK)
        << trouble << sql;
  }
  void run_with_blob(const std::string& sql, const std::string& blob) {
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sql;
    sqlite3_bind_blob(statement, 1, blob.data(), static_cast<int>(blob.size()), SQLITE_STATIC);
    ASSERT_EQ(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
  }
  void close() {
    if (database_ != nullptr) sqlite3_close(database_);
    database_ = nullptr;
  }
  std::vector<LoadedInput> load() {
    close();
    return commlens::load(split_into_recordings(find_inputs({path_.string()})), {});
  }
  std::string path() const { return path_.string(); }

  // A process with a gemm, an all-reduce that its stream waits for, and NCCL's ranges.
  void add_tables() {
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
        "contextId"
        " INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName "
        "INTEGER,"
        " shortName INTEGER)");
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER,"
        " correlationId INTEGER, nameId INTEGER)");
    run("CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId"
        " INTEGER, globalTid INTEGER, domainId INTEGER, binaryData TEXT)");
    run("INSERT INTO NVTX_EVENTS VALUES(0, NULL, 75, 'NCCL', NULL, 0, 1, NULL)");
  }
  void add_process(std::int64_t pid, int device) {
    const std::string id = std::to_string(pid);
    const std::string thread = std::to_string(pid + 7);
    const std::string on = std::to_string(device);
    run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, " + on + ", 1, 7, 1, " + id +
        ", 2, 2),"
        "(3000, 5000, " +
        on + ", 1, 20, 2, " + id + ", 1, 1)");
    run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(1000, 1010, " + thread +
        ", 1, 3),"
        "(1500, 1510, " +
        thread + ", 2, 3), (1600, 5100, " + thread + ", 3, 4)");
    run("INSERT INTO NVTX_EVENTS VALUES(1400, 1550, 59, NULL, 6, " + thread + ", 1, NULL)");
  }

 private:
  fs::path path_;
  sqlite3* database_ = nullptr;
};

std::string name_of(const Recording& recording, StringId id) {
  return std::string(recording.strings.get(id));
}

TEST(Nsys, EachProcessIsARecording) {
  Export file;
  file.add_tables();
  file.add_process(kSecond, 1);
  file.add_process(kFirst, 0);
  file.run("CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER)");
  file.run("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1779630014975716426)");
  file.run("CREATE TABLE TARGET_INFO_SYSTEM_ENV(name TEXT, value TEXT)");
  file.run("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES('Hostname', 'node-a')");
  const auto inputs = file.load();
  ASSERT_EQ(inputs.size(), 2U);
  for (const LoadedInput& input : inputs) {
    ASSERT_TRUE(input.usable) << input.trouble;
    EXPECT_EQ(input.format, "nsys-sqlite");
    const Recording& recording = input.recording;
    EXPECT_EQ(recording.path, input.path);
    EXPECT_EQ(recording.session, file.path());
    EXPECT_EQ(recording.clock_base, 1779630014975716426);
    EXPECT_EQ(recording.clock, ClockBase::epoch);
    EXPECT_EQ(recording.host, "node-a");
    ASSERT_EQ(recording.gpu.size(), 2U);
    EXPECT_EQ(name_of(recording, recording.gpu.name[0]), "gemm");
    EXPECT_EQ(recording.gpu.start[1], 3000);
    EXPECT_EQ(recording.launches.size(), 2U);
    ASSERT_EQ(recording.sync_calls.size(), 1U);
    EXPECT_EQ(recording.sync_calls[0].kind, SyncKind::stream_sync);
    ASSERT_EQ(recording.host_ranges.size(), 1U);
    EXPECT_EQ(name_of(recording, recording.host_ranges[0].name), "allreduce");
    EXPECT_EQ(recording.notes.count(Note::sizes_not_exported), 1);
  }
  EXPECT_EQ(inputs[0].recording.process, 100);
  EXPECT_EQ(inputs[1].recording.process, 200);
  EXPECT_NE(inputs[0].path, inputs[1].path);
}

// An export of one process is one recording, and names its process all the same: by its kernels or,
// in old exports, by its calls.
TEST(Nsys, TheOnlyProcessIsNamed) {
  for (const bool old : {false, true}) {
    Export file;
    file.add_tables();
    file.add_process(kFirst, 0);
    if (old) file.run("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid");
    const auto inputs = file.load();
    ASSERT_EQ(inputs.size(), 1U);
    EXPECT_EQ(inputs[0].path, file.path());
    EXPECT_EQ(inputs[0].recording.process, 100);
    EXPECT_EQ(inputs[0].recording.gpu.size(), 2U);
  }
}

// Of two tables only one tells the process: rows of the other are told by their GPU, and those of a
// GPU that two processes use are nobody's.
TEST(Nsys, NothingCountsForTwoProcesses) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  file.add_process(kSecond, 1);
  const std::string columns =
      "(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,"
      " correlationId INTEGER, globalPid INTEGER, copyKind INTEGER)";
  file.run("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY" + columns);
  for (const auto& [device, pid] : {std::pair{0, kFirst}, {1, kSecond}, {2, kFirst}, {2, kSecond}})
    file.run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(6000, 6100, " + std::to_string(device) +
             ", 1, 7, 9, " + std::to_string(pid) + ", 1)");
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(7000, 7100, 2, 1, 7, 4, 0, 2, 2)");
  file.run("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid");
  const auto inputs = file.load();
  ASSERT_EQ(inputs.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Recording& recording = inputs[i].recording;
    ASSERT_EQ(recording.gpu.size(), 4U);  // two kernels, two copies
    for (std::size_t row = 0; row < 2; ++row)
      EXPECT_EQ(recording.streams[recording.gpu.stream[row].index()].device,
                static_cast<std::int64_t>(i));
  }
}

// As small as one sample: no context, no process, no tables of the machine; a kernel at 0.
TEST(Nsys, MissingColumnsAreNoTrouble) {
  Export file;
  file.run(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, shortName INTEGER)");
  file.run(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(9, 11, 0, 7, 2, 2), (0, 5, 0, 7, 1, 2),"
      "(20, 18, 0, 7, 3, 2)");
  const auto inputs = file.load();
  ASSERT_EQ(inputs.size(), 1U);
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  ASSERT_EQ(recording.gpu.size(), 2U);  // the third ends before it starts
  EXPECT_EQ(recording.gpu.start[0], 0);
  EXPECT_EQ(recording.notes.count(Note::negative_duration), 1);
  EXPECT_EQ(recording.clock, ClockBase::unknown);
}

// What is no table, or lacks a column without which its rows say nothing, is named; a start that is
// not there is not the start of the session.
TEST(Nsys, WhatCannotBeReadIsNamed) {
  const std::string kernel = "CUPTI_ACTIVITY_KIND_KERNEL";
  for (const auto& [sql, example] :
       {std::pair<std::string, std::string>{
            "ALTER TABLE NVTX_EVENTS RENAME TO x; CREATE VIEW NVTX_EVENTS AS SELECT * FROM x",
            "table NVTX_EVENTS is a view, which may show anything"},
        {"ALTER TABLE " + kernel + " RENAME TO x; CREATE VIEW " + kernel + " AS SELECT * FROM x",
         "table " + kernel + " is a view, which may show anything"},
        {"ALTER TABLE StringIds DROP COLUMN value", "table StringIds has no column value"},
        {"ALTER TABLE " + kernel + " DROP COLUMN start",
         "table " + kernel + " has no column start"},
        {"ALTER TABLE NVTX_EVENTS DROP COLUMN eventType",
         "table NVTX_EVENTS has no column eventType"},
        {"ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN globalTid",
         "table CUPTI_ACTIVITY_KIND_RUNTIME has no column globalTid"}}) {
    Export file;
    file.add_tables();
    file.add_process(kFirst, 0);
    file.run(sql);
    const auto inputs = file.load();
    ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
    const Recording& recording = inputs[0].recording;
    EXPECT_EQ(recording.notes.count(Note::damaged_table), 1) << sql;
    EXPECT_EQ(recording.notes.example(Note::damaged_table), example);
  }
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  file.run("UPDATE " + kernel + " SET start = NULL WHERE correlationId = 1");
  file.run("UPDATE " + kernel + " SET end = NULL WHERE correlationId = 2");
  const auto inputs = file.load();
  const Recording& recording = inputs[0].recording;
  ASSERT_EQ(recording.gpu.size(), 1U);
  EXPECT_EQ(recording.gpu.end[0], 3000);
  EXPECT_EQ(recording.notes.count(Note::missing_time), 1);
  EXPECT_EQ(recording.notes.count(Note::missing_duration), 1);
  EXPECT_EQ(recording.notes.count(Note::damaged_table), 0);
}

// Rows that lack what tells them are counted and said, and no figure is made of them.
TEST(Nsys, WhatRowsLackIsSaid) {
  const std::string kernel = "CUPTI_ACTIVITY_KIND_KERNEL";
  const auto notes_of = [](const std::string& sql, bool two, Note note) {
    Export file;
    file.add_tables();
    file.add_process(kFirst, 0);
    if (two) file.add_process(kSecond, 1);
    if (!sql.empty()) file.run(sql);
    const auto inputs = file.load();
    EXPECT_TRUE(inputs[0].usable) << inputs[0].trouble;
    return std::pair{inputs[0].recording.notes.count(note), inputs[0].recording.gpu.size()};
  };
  using Found = std::pair<std::int64_t, std::size_t>;
  EXPECT_EQ(notes_of("", false, Note::unnamed_kernels), Found(0, 2));
  EXPECT_EQ(notes_of("DROP TABLE StringIds", false, Note::unnamed_kernels), Found(2, 2));
  EXPECT_EQ(notes_of("DELETE FROM StringIds WHERE id = 1", false, Note::unnamed_kernels),
            Found(1, 2));
  const std::string nobodys =
      "UPDATE " + kernel + " SET globalPid = NULL WHERE correlationId = 2 AND deviceId = 0";
  EXPECT_EQ(notes_of(nobodys, true, Note::rows_of_no_process), Found(1, 1));
  EXPECT_EQ(notes_of(nobodys, false, Note::rows_of_no_process), Found(0, 2));  // the only one's
  // Text in place of a time is no time, and not the start of the session.
  EXPECT_EQ(notes_of("UPDATE " + kernel + " SET start = 'abc' WHERE correlationId = 2", false,
                     Note::missing_time),
            Found(1, 1));
}

// A database whose last changes lie beside it, as those of one that is written at the moment.
TEST(Nsys, ChangesBesideTheExportAreSaid) {
  for (const std::string end : {"-wal", "-journal"}) {
    Export file;
    file.add_tables();
    file.add_process(kFirst, 0);
    file.close();
    const std::string beside = file.path() + end;
    std::ofstream(beside).close();
    EXPECT_EQ(file.load()[0].recording.notes.count(Note::unfinished_export), 0);
    std::ofstream(beside) << "changes";
    const auto inputs = file.load();
    EXPECT_EQ(inputs[0].recording.notes.count(Note::unfinished_export), 1);
    EXPECT_EQ(inputs[0].recording.notes.example(Note::unfinished_export), beside);
    fs::remove(beside);
  }
}

// Times that damage made: what lies between two of them leaves 64 bits.
TEST(Nsys, TimesBeyondAnySessionAreLeftOut) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  const std::string id = std::to_string(kFirst);
  const std::string thread = std::to_string(kFirst + 7);
  const std::string least = "-9223372036854775807 - 1";
  const std::string most = "9223372036854775807";
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" + least + ", " + most +
           ", 0, 1, 7, 8, " + id + ", 2, 2), (-9000000000000000000, 4000, 0, 1, 7, 9, " + id +
           ", 2, 2)");
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + least + ", " + most + ", " + thread +
           ", 8, 3), (" + least + ", " + most + ", " + thread + ", 9, 4)");
  file.run("INSERT INTO NVTX_EVENTS VALUES(" + least + ", " + most + ", 59, NULL, 6, " + thread +
           ", 1, NULL)");
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  EXPECT_EQ(recording.gpu.size(), 2U);
  EXPECT_EQ(recording.notes.count(Note::absurd_time), 2);
  EXPECT_EQ(recording.notes.example(Note::absurd_time), "from -9223372036854775808 ns");
  EXPECT_EQ(recording.launches.size(), 2U);
  EXPECT_EQ(recording.sync_calls.size(), 1U);
  EXPECT_EQ(recording.host_ranges.size(), 1U);
}

std::string word(std::uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

TEST(Nsys, PayloadsTellSizesAndRanks) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  file.run("DELETE FROM NVTX_EVENTS WHERE eventType = 59");
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
      " type INTEGER, name TEXT, offset INTEGER)");
  file.run(
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, 16777227, 0, 10, 'NCCL communicator ID', "
      "NULL),"
      "(1, 16777227, 1, 5, 'No. of ranks', 8), (1, 16777227, 2, 5, 'Rank', 12),"
      "(1, 16777221, 0, 10, 'NCCL communicator ID', NULL), (1, 16777221, 1, 22, 'Message size "
      "[bytes]', 8)");
  const std::string thread = std::to_string(kFirst + 7);
  file.run_with_blob("INSERT INTO NVTX_EVENTS VALUES(10, 900, 59, NULL, 13, " + thread + ", 1, ?1)",
                     word(1) + word(16777227) + word(16) + word(32) + word(77) +
                         word(4 + (std::uint64_t{3} << 32U)));
  file.run_with_blob(
      "INSERT INTO NVTX_EVENTS VALUES(1400, 1550, 59, NULL, 6, " + thread + ", 1, ?1)",
      word(1) + word(16777221) + word(16) + word(48) + word(77) + word(4096));
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  EXPECT_EQ(recording.rank, 3);
  EXPECT_EQ(recording.world_size, 4);
  ASSERT_EQ(recording.host_ranges.size(), 1U);
  ASSERT_TRUE(recording.host_ranges[0].meta.valid());
  const CollectiveMeta& meta = recording.metas[recording.host_ranges[0].meta.index()];
  EXPECT_EQ(meta.in_elements, 4096);
  EXPECT_EQ(meta.group_size, 4);
  EXPECT_EQ(recording.notes.count(Note::sizes_not_exported), 0);
}

// An all-gather's payload is one rank's share. Its communicator's size is known for one of the two
// calls: the other has no size, however large the job is.
TEST(Nsys, SharesNeedTheirOwnCommunicatorsRanks) {
  Export file;
  file.add_tables();
  file.run("INSERT INTO StringIds VALUES(20, 'ncclAllGather'), (21, 'ncclCommSplit')");
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
      " type INTEGER, name TEXT, offset INTEGER)");
  file.run(
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES"
      "(1, 50, 0, 10, 'NCCL communicator ID', NULL), (1, 50, 1, 5, 'No. of ranks', 8),"
      "(1, 50, 2, 5, 'Rank', 12), (1, 60, 0, 10, 'NCCL communicator ID', NULL),"
      "(1, 60, 1, 22, 'Message size [bytes]', 8)");
  const std::string thread = std::to_string(kFirst + 7);
  const auto range = [&](int start, int name, std::uint64_t schema, std::uint64_t first,
                         std::uint64_t second) {
    file.run_with_blob("INSERT INTO NVTX_EVENTS VALUES(" + std::to_string(start) + ", " +
                           std::to_string(start + 50) + ", 59, NULL, " + std::to_string(name) +
                           ", " + thread + ", 1, ?1)",
                       word(1) + word(schema) + word(16) + word(32) + word(first) + word(second));
  };
  range(100, 13, 50, 77, 8 + (std::uint64_t{3} << 32U));  // the job: 8 ranks, this is 3
  range(200, 21, 50, 78, 2 + (std::uint64_t{1} << 32U));  // split off: 2 ranks
  range(300, 20, 60, 78, 4096);
  range(400, 20, 60, 99, 4096);  // made before the recording began
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  EXPECT_EQ(recording.rank, 3);
  EXPECT_EQ(recording.world_size, 8);
  ASSERT_EQ(recording.host_ranges.size(), 2U);
  ASSERT_TRUE(recording.host_ranges[0].meta.valid());
  const CollectiveMeta& meta = recording.metas[recording.host_ranges[0].meta.index()];
  EXPECT_EQ(meta.in_elements, 4096);
  EXPECT_EQ(meta.out_elements, 8192);
  EXPECT_EQ(meta.group_size, 2);
  EXPECT_EQ(recording.strings.get(meta.group_name), "0x4e");  // 78
  // Its communicator is known all the same.
  ASSERT_TRUE(recording.host_ranges[1].meta.valid());
  const CollectiveMeta& other = recording.metas[recording.host_ranges[1].meta.index()];
  EXPECT_EQ(other.in_elements, kUnknown);
  EXPECT_EQ(other.group_size, 0);
  EXPECT_EQ(recording.strings.get(other.group_name), "0x63");  // 99
  EXPECT_EQ(recording.notes.count(Note::sizes_not_exported), 1);
}

// Without offsets entries lie as C lays them: u64 at 0, int at 8, u64 at 16. Rows in any order, and
// once for each process.
TEST(Nsys, EntriesWithoutOffsetsLieAsInC) {
  Export file;
  file.add_tables();
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
      " type INTEGER, name TEXT)");
  for (int process = 0; process < 2; ++process)
    file.run(
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, 60, 2, 22, 'Message size [bytes]'),"
        "(1, 60, 1, 5, 'Root'), (1, 60, 0, 10, 'NCCL communicator ID')");
  file.run_with_blob("INSERT INTO NVTX_EVENTS VALUES(300, 350, 59, NULL, 6, " +
                         std::to_string(kFirst + 7) + ", 1, ?1)",
                     word(1) + word(60) + word(24) + word(32) + word(77) + word(1) + word(4096));
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
           std::to_string(kFirst) + ", 2, 2)");
  const auto inputs = file.load();
  const Recording& recording = inputs[0].recording;
  ASSERT_EQ(recording.host_ranges.size(), 1U);
  ASSERT_TRUE(recording.host_ranges[0].meta.valid());
  const CollectiveMeta& meta = recording.metas[recording.host_ranges[0].meta.index()];
  EXPECT_EQ(meta.in_elements, 4096);
  EXPECT_EQ(recording.strings.get(meta.group_name), "0x4d");
  EXPECT_EQ(recording.host_calls.find(0).rank, 1);
}

// Stated offsets count in any order, 0 too where nothing else lies there. Where entries would share
// bytes, none is believed.
TEST(Nsys, StatedOffsetsNeedNotAscend) {
  struct Case {
    std::string entries;
    std::int64_t size;
    std::string group;
  };
  for (const Case& each :
       {Case{"(1, 60, 0, 5, 'Reduction', 16), (1, 60, 1, 22, 'Message size [bytes]', 8),"
             "(1, 60, 2, 10, 'NCCL communicator ID', 24)",
             4096, "0x4d"},
        Case{"(1, 60, 0, 10, 'NCCL communicator ID', 24), (1, 60, 1, 5, 'Root', 0),"
             "(1, 60, 2, 22, 'Message size [bytes]', 0)",
             4096, "0x4d"},
        Case{"(1, 60, 0, 22, 'Message size [bytes]', 8), (1, 60, 1, 10, 'NCCL communicator ID', "
             "12)",
             kUnknown, ""}}) {
    Export file;
    file.add_tables();
    file.run(
        "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
        " type INTEGER, name TEXT, offset INTEGER)");
    file.run("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES" + each.entries);
    file.run_with_blob(
        "INSERT INTO NVTX_EVENTS VALUES(300, 350, 59, NULL, 6, " + std::to_string(kFirst + 7) +
            ", 1, ?1)",
        word(1) + word(60) + word(32) + word(32) + word(0) + word(4096) + word(3) + word(77));
    file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
             std::to_string(kFirst) + ", 2, 2)");
    const auto inputs = file.load();
    const Recording& recording = inputs[0].recording;
    ASSERT_EQ(recording.host_ranges.size(), 1U);
    ASSERT_EQ(recording.host_ranges[0].meta.valid(), each.size >= 0) << each.entries;
    if (each.size < 0) continue;
    const CollectiveMeta& meta = recording.metas[recording.host_ranges[0].meta.index()];
    EXPECT_EQ(meta.in_elements, each.size);
    EXPECT_EQ(recording.strings.get(meta.group_name), each.group);
  }
}

// A call whose payload is: 4096 bytes of communicator 77, then the reduction and the type, each an
// enumeration's value; between them they lie as a compiler would lay them, unless the size of an
// enumeration is another one. `tables`: SQL that describes the enumerations.
CollectiveMeta meta_by_enums(const std::string& tables, const std::string& values,
                             std::string& dtype, std::string& reduction) {
  Export file;
  file.add_tables();
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
      " type INTEGER, name TEXT, offset INTEGER)");
  file.run(
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, 60, 0, 10, 'NCCL communicator ID', NULL),"
      "(1, 60, 1, 22, 'Message size [bytes]', NULL),"
      "(1, 60, 2, 16777230, 'Reduction operation', NULL), (1, 60, 3, 16777231, 'dataType', NULL)");
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_ENUMS(domainId INTEGER, schemaId INTEGER, name TEXT, size "
      "INTEGER)");
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_ENUM_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
      " name TEXT, value INTEGER, isFlag INTEGER)");
  if (!tables.empty()) file.run(tables);
  file.run_with_blob("INSERT INTO NVTX_EVENTS VALUES(300, 350, 59, NULL, 6, " +
                         std::to_string(kFirst + 7) + ", 1, ?1)",
                     word(1) + word(60) + word(24) + word(32) + word(77) + word(4096) + values);
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
           std::to_string(kFirst) + ", 2, 2)");
  const auto inputs = file.load();
  const Recording& recording = inputs[0].recording;
  EXPECT_EQ(recording.host_ranges.size(), 1U);
  EXPECT_TRUE(recording.host_ranges[0].meta.valid());
  const CollectiveMeta meta = recording.metas[recording.host_ranges[0].meta.index()];
  dtype = name_of(recording, meta.dtype);
  reduction = meta.reduction.valid() ? name_of(recording, meta.reduction) : "";
  return meta;
}

// Two values of 4 bytes.
std::string halves(std::uint64_t first, std::uint64_t second) {
  return word(first | (second << 32U));
}

TEST(Nsys, EnumerationsTellTheirNames) {
  const std::string sizes =
      "INSERT INTO NVTX_PAYLOAD_ENUMS VALUES(1, 16777230, 'ncclRedOp', 4), (1, 16777231, 'type', "
      "4);";
  // Numbers of the export's own, and not those of NCCL. Rows repeat for each process.
  const std::string names =
      "INSERT INTO NVTX_PAYLOAD_ENUM_ENTRIES VALUES(1, 16777230, 0, 'Sum', 0, 0),"
      "(1, 16777230, 1, 'Max', 7, 0), (1, 16777230, 1, 'Max', 7, 0),"
      "(1, 16777231, 0, 'ncclBfloat16', 3, 0), (1, 16777231, 1, 'opaque', 4, 0),"
      "(2, 16777231, 1, 'ncclInt8', 3, 0);";
  std::string dtype;
  std::string reduction;
  CollectiveMeta meta = meta_by_enums(sizes + names, halves(7, 3), dtype, reduction);
  EXPECT_EQ(dtype, "BFloat16");
  EXPECT_EQ(reduction, "max");
  EXPECT_EQ(meta.in_elements, 2048);  // of two bytes
  EXPECT_FALSE(meta.counts_bytes);
  // A number without a name is a reduction of the program's own, but no type; nor is a name that
  // says no type.
  for (const std::uint64_t type : {9U, 4U}) {
    meta = meta_by_enums(sizes + names, halves(9, type), dtype, reduction);
    EXPECT_EQ(reduction, "user-defined");
    EXPECT_EQ(dtype, "Byte");
    EXPECT_EQ(meta.in_elements, 4096);
    EXPECT_TRUE(meta.counts_bytes);
  }
  // Without the tables the numbers are NCCL's own: 4 averages, 9 is bfloat16.
  for (const std::string& tables : {std::string(), sizes}) {
    meta = meta_by_enums(tables, halves(4, 9), dtype, reduction);
    EXPECT_EQ(dtype, "BFloat16");
    EXPECT_EQ(reduction, "avg");
    EXPECT_EQ(meta.in_elements, 2048);
  }
  // Of one byte and of two: the second lies behind the first, at its own alignment.
  meta = meta_by_enums(
      "INSERT INTO NVTX_PAYLOAD_ENUMS VALUES(1, 16777230, 'op', 1), (1, 16777231, 'type', 2)",
      word(2U | (6U << 16U)), dtype, reduction);
  EXPECT_EQ(dtype, "Half");
  EXPECT_EQ(reduction, "max");
  // One value with two names, or flags: no name counts.
  for (const std::string more :
       {"INSERT INTO NVTX_PAYLOAD_ENUM_ENTRIES VALUES(1, 16777231, 2, 'ncclFloat32', 3, 0)",
        "INSERT INTO NVTX_PAYLOAD_ENUM_ENTRIES VALUES(1, 16777231, 2, 'ncclFloat32', 8, 1)"}) {
    meta = meta_by_enums(sizes + names + more, halves(7, 3), dtype, reduction);
    EXPECT_EQ(dtype, "Byte");
    EXPECT_EQ(reduction, "max");
  }
}

// Processes with two releases of NCCL give one number to two layouts: neither is believed.
TEST(Nsys, SchemasThatContradictEachOtherAreNotRead) {
  Export file;
  file.add_tables();
  file.run(
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER,"
      " type INTEGER, name TEXT, offset INTEGER)");
  file.run(
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, 60, 0, 22, 'Message size [bytes]', 0),"
      "(1, 60, 0, 10, 'NCCL communicator ID', 0), (1, 60, 1, 22, 'Message size [bytes]', 8)");
  file.run_with_blob("INSERT INTO NVTX_EVENTS VALUES(300, 350, 59, NULL, 6, " +
                         std::to_string(kFirst + 7) + ", 1, ?1)",
                     word(1) + word(60) + word(16) + word(32) + word(77) + word(4096));
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
           std::to_string(kFirst) + ", 2, 2)");
  const auto inputs = file.load();
  const Recording& recording = inputs[0].recording;
  ASSERT_EQ(recording.host_ranges.size(), 1U);
  EXPECT_FALSE(recording.host_ranges[0].meta.valid());
  EXPECT_EQ(recording.notes.count(Note::sizes_not_exported), 1);
}

TEST(NsysPayload, JsonIsReadByNamesAnywhereInIt) {
  const auto read = [](const std::string& json) {
    NsysPayload payload;
    read_json_payload(json, payload);
    payload.finish();
    return payload;
  };
  const NsysPayload plain = read(
      R"({"NCCL communicator ID": 12715772615376301750, "Message size [bytes]": 4096, "Peer rank": 3})");
  EXPECT_FALSE(plain.odd);
  EXPECT_EQ(plain.communicator, 12715772615376301750ULL);  // beyond 63 bits
  EXPECT_EQ(plain.bytes, 4096);
  EXPECT_EQ(plain.peer, 3);
  // Any case, in a list, in quotes, with what is not known around it.
  const NsysPayload nested = read(
      R"([{"Payload": {"BYTES": "512", "nccl communicator id": "0x4d", "x": [1, {"y": "}\""}]}}])");
  EXPECT_FALSE(nested.odd);
  EXPECT_EQ(nested.bytes, 512);
  EXPECT_EQ(nested.communicator, 0x4dU);
  // 300 elements of two bytes.
  const NsysPayload counted =
      read(R"({"commHash": 77, "commRank": 1, "count": 300, "dataType": "ncclBfloat16"})");
  EXPECT_EQ(counted.bytes, 600);
  EXPECT_EQ(counted.dtype, "BFloat16");
  EXPECT_EQ(read(R"({"Reduction operation": 1})").reduction, "product");
  EXPECT_EQ(read(R"({"redop": "ncclAvg"})").reduction, "avg");
  EXPECT_EQ(counted.rank, 1);
  EXPECT_FALSE(counted.of_gpu);
  EXPECT_TRUE(read(R"({"apiId": 3, "count": 300, "dataType": 7})").of_gpu);
  EXPECT_EQ(read(R"({"Bytes": 1125899906842624})").bytes, std::int64_t{1} << 50U);
  // No size without the type.
  EXPECT_EQ(read(R"({"count": 300})").bytes, -1);
  EXPECT_FALSE(read("").odd);
}

TEST(NsysPayload, OddJsonSaysNothing) {
  const auto read = [](const std::string& json) {
    NsysPayload payload;
    read_json_payload(json, payload);
    payload.finish();
    return payload;
  };
  const std::string deep(20, '[');
  for (const std::string& json :
       {std::string(R"({"Bytes": 4096)"), std::string(R"({"Bytes": 4096}})"),
        std::string(R"({"Bytes" 4096})"), std::string(R"({"Bytes": 4096, "Bytes": 8192})"),
        std::string(R"({"Bytes": -1})"), std::string(R"({"Bytes": 1.5})"),
        std::string(R"({"Bytes": 9223372036854775808})"),  // 2^63
        std::string(R"({"Bytes": 1125899906842625})"),     // 2^50 and one
        std::string(R"({"Bytes": 99999999999999999999999})"), std::string(R"({"Bytes": "4 KB"})"),
        std::string(R"({"Bytes": NaN})"),
        std::string(R"({"Bytes": 4096, "count": 8, "datatype": 7})"),
        std::string(R"({"count": 9223372036854775807, "datatype": 7})"),
        std::string(R"({"Bytes": 4096, "datatype": 7, "dataType": "ncclInt8"})"),
        std::string(R"({"Bytes": "4096)"), std::string("\""), deep, std::string("x"),
        "{\"a\": \"" + std::string(70'000, 'b') + "\", \"Bytes\": 4096}"}) {
    const NsysPayload payload = read(json);
    EXPECT_TRUE(payload.odd) << json;
    EXPECT_EQ(payload.bytes, -1) << json;
  }
}

// As JSON, as JSON that stands in StringIds, and in a table of its own; one is damaged.
TEST(Nsys, PayloadsOfTheOtherFormsTellSizes) {
  Export file;
  file.add_tables();
  file.run("DROP TABLE NVTX_EVENTS");
  file.run(
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId"
      " INTEGER, globalTid INTEGER, domainId INTEGER, jsonText TEXT, jsonTextId INTEGER, eventId"
      " INTEGER)");
  file.run("INSERT INTO NVTX_EVENTS VALUES(0, NULL, 75, 'NCCL', NULL, 0, 1, NULL, NULL, 1)");
  file.run(R"(INSERT INTO StringIds VALUES(30, '{"Message size [bytes]": 2048}'))");
  const std::string thread = std::to_string(kFirst + 7);
  const auto call = [&](int start, const std::string& text, const std::string& json,
                        const std::string& json_id, int event) {
    file.run("INSERT INTO NVTX_EVENTS VALUES(" + std::to_string(start) + ", " +
             std::to_string(start + 50) + ", 59, '" + text + "', NULL, " + thread + ", 1, " + json +
             ", " + json_id + ", " + std::to_string(event) + ")");
  };
  call(100, "ncclCommInitRank",
       R"('{"NCCL communicator ID": 77, "No. of ranks": 4, "Rank": 3, "CUDA device": 0}')", "NULL",
       2);
  call(200, "ncclAllReduce", R"('{"NCCL communicator ID": 77, "Message size [bytes]": 1024}')",
       "NULL", 3);
  call(300, "ncclAllReduce", "NULL", "30", 4);
  call(400, "ncclAllGather", "NULL", "NULL", 5);
  call(500, "ncclAllReduce", R"('{"token": "hunter2", "Message size [bytes]": 1024')", "NULL", 6);
  // Nsight's own tracing: the call, and the operation on the GPU.
  call(600, "AllReduce", R"('{"commHash": 77, "count": 10, "dataType": "ncclFloat32"}')", "NULL",
       7);
  call(700, "AllReduce",
       R"('{"commHash": 77, "count": 10, "dataType": "ncclFloat32", "apiId": 7}')", "NULL", 8);
  const std::string table =
      "\"DYNAMIC_NVTXPAYLOAD_DATATYPE_" + std::to_string(kFirst) + "_1_16777220\"";
  file.run("CREATE TABLE " + table +
           "(eventId INTEGER, \"NCCL communicator ID\" INTEGER, \"Message size [bytes]\" INTEGER)");
  file.run("INSERT INTO " + table + " VALUES(5, 77, 512)");
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
           std::to_string(kFirst) + ", 2, 2)");
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  EXPECT_EQ(recording.rank, 3);
  EXPECT_EQ(recording.world_size, 4);
  ASSERT_EQ(recording.host_ranges.size(), 5U);
  const auto out = [&recording](std::size_t row) {
    const MetaId meta = recording.host_ranges[row].meta;
    return meta.valid() ? recording.metas[meta.index()].out_elements : kUnknown;
  };
  EXPECT_EQ(out(0), 1024);
  EXPECT_EQ(out(1), 2048);
  EXPECT_EQ(out(2), 2048);  // 512 of each of 4 ranks
  EXPECT_EQ(out(3), kUnknown);
  EXPECT_EQ(out(4), 10);  // of four bytes
  EXPECT_EQ(recording.notes.count(Note::odd_payload), 1);
  EXPECT_EQ(recording.notes.example(Note::odd_payload), "at 500 ns");
  EXPECT_EQ(recording.notes.count(Note::sizes_not_exported), 1);
  for (std::size_t i = 0; i < recording.strings.size(); ++i)
    EXPECT_EQ(recording.strings.get(StringId::from(i)).find("hunter2"), std::string_view::npos);
}

// Times that the export has moved are no times of the day.
TEST(Nsys, MovedTimesHaveNoClock) {
  for (const auto& [shift, clock] : {std::pair{"0", ClockBase::epoch},
                                     {"500", ClockBase::unknown},
                                     {"-500", ClockBase::unknown}}) {
    Export file;
    file.add_tables();
    file.add_process(kFirst, 0);
    file.run("CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER)");
    file.run("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1779630014975716426)");
    file.run("INSERT INTO META_DATA_EXPORT VALUES('EXPORT_PARAM_TIME_SHIFT', '" +
             std::string(shift) + "')");
    EXPECT_EQ(file.load()[0].recording.clock, clock) << shift;
  }
}

// A group's kernels are launched inside its end.
TEST(Nsys, AGroupIsToldByItsEnd) {
  Export file;
  file.add_tables();
  const std::string thread = std::to_string(kFirst + 7);
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
           std::to_string(kFirst) + ", 11, 11)");
  file.run("INSERT INTO NVTX_EVENTS VALUES(100, 110, 59, NULL, 7, " + thread +
           ", 1, NULL),"
           "(120, 130, 59, NULL, 9, " +
           thread + ", 1, NULL), (140, 150, 59, NULL, 10, " + thread +
           ", 1, NULL),"
           "(160, 300, 59, NULL, 8, " +
           thread + ", 1, NULL), (400, 410, 59, 'aten::mul', NULL, " + thread + ", 0, NULL)");
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  ASSERT_EQ(recording.host_ranges.size(), 3U);
  EXPECT_EQ(name_of(recording, recording.host_ranges[2].name), "coalesced");
  EXPECT_EQ(recording.host_ranges[2].start, 160);
}

// Rows of NVTX_EVENTS: start, end, type, name, thread that starts it, domain, thread that ends it.
struct Marked {
  int start;
  int end;
  int type;
  std::string name;
  std::int64_t thread;
  int domain;
  std::int64_t end_thread;
};

// One kernel, and these ranges.
std::vector<LoadedInput> load_marked(const std::vector<Marked>& ranges) {
  Export file;
  file.add_tables();
  file.run("ALTER TABLE NVTX_EVENTS ADD COLUMN endGlobalTid INTEGER");
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 3000, 0, 1, 7, 1, " +
           std::to_string(kFirst) + ", 2, 2)");
  for (const Marked& range : ranges)
    file.run("INSERT INTO NVTX_EVENTS VALUES(" + std::to_string(range.start) + ", " +
             (range.end < 0 ? "NULL" : std::to_string(range.end)) + ", " +
             std::to_string(range.type) + ", '" + range.name + "', NULL, " +
             std::to_string(range.thread) + ", " + std::to_string(range.domain) + ", NULL, " +
             std::to_string(range.end_thread) + ")");
  return file.load();
}

// "7 100-200, 8 200-300"
std::string steps_of(const std::vector<Marked>& ranges) {
  const auto inputs = load_marked(ranges);
  EXPECT_TRUE(inputs[0].usable) << inputs[0].trouble;
  std::string text;
  for (const StepRange& step : inputs[0].recording.steps)
    text += (text.empty() ? "" : ", ") + std::to_string(step.number) + " " +
            std::to_string(step.host.start) + "-" + std::to_string(step.host.end);
  return text + (inputs[0].recording.notes.count(Note::odd_steps) > 0 ? " odd" : "");
}

// Of any type, thread and domain; the last one is not ended.
TEST(Nsys, RangesThatAreNamedLikeStepsAreSteps) {
  constexpr std::int64_t kOne = kFirst + 7;
  constexpr std::int64_t kOther = kFirst + 8;
  EXPECT_EQ(steps_of({{100, 200, 60, "step 7", kOne, 3, kOther},
                      {200, 300, 60, "step 8", kOther, 3, kOne},
                      {300, -1, 60, "step 9", kOne, 3, 0}}),
            "7 100-200, 8 200-300");
  for (const std::string name : {"Iteration_", "train_step=", "ProfilerStep#", "STEP", "iter: #"})
    EXPECT_EQ(steps_of({{100, 200, 59, name + "7", kOne, 0, 0}}), "7 100-200") << name;
  EXPECT_EQ(steps_of({{100, 200, 59, "iteration 7/90", kOne, 0, 0}}), "7 100-200");
  for (const std::string name :
       {"step", "step 7 forward", "optimizer step 7", "batch 7", "7", "step 7/", "step 7/b",
        "step 7.5", "step 99999999999999999999", "steps 7", "pre-step 7"})
    EXPECT_EQ(steps_of({{100, 200, 59, name, kOne, 0, 0}}), "") << name;
  // Steps of several families: what covers most, and no numbers that come again.
  EXPECT_EQ(steps_of({{100, 200, 59, "iteration 7", kOne, 0, 0},
                      {110, 140, 59, "step 0", kOne, 0, 0},
                      {140, 190, 59, "step 1", kOne, 0, 0},
                      {200, 300, 59, "iteration 8", kOne, 0, 0},
                      {210, 240, 59, "step 0", kOne, 0, 0},
                      {240, 290, 59, "step 1", kOne, 0, 0}}),
            "7 100-200, 8 200-300");
  EXPECT_EQ(steps_of({{100, 200, 59, "iteration 7", kOne, 0, 0},
                      {110, 190, 59, "global step 21", kOne, 0, 0}}),
            "7 100-200");
  EXPECT_EQ(steps_of({{100, 200, 59, "iteration 7", kOne, 0, 0},
                      {110, 190, 59, "ProfilerStep#21", kOne, 0, 0}}),
            "21 110-190");
  // Numbers that come again; ranges that overlap.
  EXPECT_EQ(steps_of({{100, 200, 59, "step 0", kOne, 0, 0}, {200, 300, 59, "step 0", kOne, 0, 0}}),
            " odd");
  EXPECT_EQ(
      steps_of({{100, 200, 60, "step 0", kOne, 0, kOne}, {190, 300, 60, "step 1", kOne, 0, kOne}}),
      " odd");
}

// "allreduce 100-150": calls as they are read.
std::string calls_of(const std::vector<Marked>& ranges) {
  const auto inputs = load_marked(ranges);
  EXPECT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const Recording& recording = inputs[0].recording;
  std::string text;
  for (const HostRange& range : recording.host_ranges)
    text += (text.empty() ? "" : ", ") + name_of(recording, range.name) + " " +
            std::to_string(range.start) + "-" + std::to_string(range.end);
  return text;
}

// They do not nest: what was launched in one is known where nothing else of NCCL's was open.
TEST(Nsys, StartedAndEndedRangesAreCallsWhereTheyAreAlone) {
  constexpr std::int64_t kOne = kFirst + 7;
  constexpr std::int64_t kOther = kFirst + 8;
  EXPECT_EQ(calls_of({{100, 150, 60, "ncclAllReduce", kOne, 1, kOne},
                      {150, 190, 60, "ncclAllGather", kOne, 1, kOne},
                      {120, 130, 60, "ncclReduce", kOther, 1, kOther}}),
            "allreduce 100-150, reduce 120-130, all_gather 150-190");
  // Ended elsewhere; overlapping; holding or inside one of NCCL's own; in another domain.
  EXPECT_EQ(calls_of({{100, 150, 60, "ncclAllReduce", kOne, 1, kOther},
                      {200, 250, 60, "ncclAllReduce", kOne, 1, kOne},
                      {240, 290, 60, "ncclAllGather", kOne, 1, kOne},
                      {300, 390, 60, "ncclAllReduce", kOne, 1, kOne},
                      {310, 350, 59, "ncclAllReduce", kOne, 1, 0},
                      {400, 490, 59, "ncclReduce", kOne, 1, 0},
                      {410, 450, 60, "ncclReduce", kOne, 1, kOne},
                      {500, 550, 60, "ncclBroadcast", kOne, 0, kOne}}),
            "allreduce 310-350, reduce 400-490");
  // Between the start and the end of a group.
  EXPECT_EQ(calls_of({{100, 110, 59, "ncclGroupStart", kOne, 1, 0},
                      {120, 130, 60, "ncclSend", kOne, 1, kOne},
                      {140, 190, 59, "ncclGroupEnd", kOne, 1, 0}}),
            "send 120-130, coalesced 140-190");
}

// What waited for what, as far as the record of the event is there.
TEST(Nsys, WaitsNeedTheirEvent) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  const std::string id = std::to_string(kFirst);
  file.run(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId "
      "INTEGER,"
      " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType "
      "INTEGER,"
      " eventSyncId INTEGER)");
  file.run(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(eventSyncId INTEGER, correlationId INTEGER, "
      "deviceId"
      " INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER)");
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(41, 10, 0, 1, 7, " + id + ")");
  file.run("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(1200, 1210, 0, 1, 20, 11, " +
           id +
           ", 2, 41),"
           "(1300, 1310, 0, 1, 20, 12, " +
           id + ", 2, 99), (1600, 5100, 0, 1, 7, 3, " + id + ", 3, 0)");
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const auto& records = inputs[0].recording.sync_records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].kind, SyncKind::stream_wait);
  EXPECT_EQ(records[0].source.stream, 7);
  EXPECT_EQ(records[0].stream.stream, 20);
  EXPECT_EQ(records[0].record_correlation, 10U);
  EXPECT_EQ(records[1].kind, SyncKind::stream_sync);
}

// An environment holds secrets: of all its rows only the rank is looked at.
TEST(Nsys, NothingOfTheEnvironmentIsKept) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  file.run("CREATE TABLE META_DATA_CAPTURE(name TEXT, value TEXT)");
  file.run(
      "INSERT INTO META_DATA_CAPTURE VALUES"
      "('PROCESS_0:ENVIRONMENT_VARIABLE', 'HF_TOKEN=\"hf_planted_secret\"'),"
      "('PROCESS_0:ENVIRONMENT_VARIABLE', 'RANK=\"5\"'),"
      "('PROCESS_0:ENVIRONMENT_VARIABLE', 'RANKING=\"9\"')");
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  EXPECT_EQ(inputs[0].recording.rank, 5);
  for (std::size_t i = 0; i < inputs[0].recording.strings.size(); ++i)
    EXPECT_EQ(inputs[0].recording.strings.get(StringId::from(i)).find("planted"),
              std::string_view::npos);
}

TEST(Nsys, OtherDatabasesAreRefused) {
  Export file;
  file.run("DROP TABLE StringIds");
  file.run("DROP TABLE META_DATA_EXPORT");
  file.run("CREATE TABLE contacts(name TEXT)");
  const auto inputs = file.load();
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_FALSE(inputs[0].usable);
  EXPECT_NE(inputs[0].trouble.find("no export of Nsight Systems"), std::string::npos)
      << inputs[0].trouble;
}

// A page of a table that is zeros: the rows before it count, and how many these are is said.
TEST(Nsys, ADamagedTableSaysWhereItBreaksOff) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  file.run(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
      " INSERT INTO StringIds SELECT 100 + i, printf('name %d', i) FROM n");
  file.close();
  // Leaves of the strings' table hold these names; the last of them is far behind the first.
  std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(bytes), std::istreambuf_iterator<char>()};
  const std::size_t page = all.find("name 1000") / 4096 * 4096;
  bytes.clear();
  bytes.seekp(static_cast<std::streamoff>(page));
  bytes << std::string(4096, '\0');
  bytes.close();
  const auto inputs = file.load();
  ASSERT_TRUE(inputs[0].usable) << inputs[0].trouble;
  const std::string said(inputs[0].recording.notes.example(Note::damaged_table));
  EXPECT_TRUE(said.starts_with("table StringIds is damaged behind ")) << said;
  EXPECT_TRUE(said.ends_with(" rows of those asked for (database disk image is malformed)"))
      << said;
  ASSERT_EQ(inputs[0].recording.gpu.size(), 2U);  // whose names stand before the damage
  EXPECT_EQ(name_of(inputs[0].recording, inputs[0].recording.gpu.name[0]), "gemm");
}

// Cut anywhere, or with bytes changed anywhere: usable or not, but nothing worse.
TEST(Nsys, DamageIsSaidOrHarmless) {
  Export file;
  file.add_tables();
  file.add_process(kFirst, 0);
  file.close();
  std::ifstream whole(file.path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), std::istreambuf_iterator<char>()};
  const std::string copy = file.path() + ".damaged";
  const auto read_copy = [&copy](const std::string& text) {
    std::ofstream(copy, std::ios::binary) << text;
    for (const LoadedInput& input : load(split_into_recordings(find_inputs({copy})), {}))
      EXPECT_TRUE(input.usable || !input.trouble.empty());
  };
  for (std::size_t length = 0; length < bytes.size(); length += 997)
    read_copy(bytes.substr(0, length));
  for (std::size_t at = 16; at < bytes.size(); at += 211) {
    std::string damaged = bytes;
    for (std::size_t i = at; i < std::min(bytes.size(), at + 7); ++i)
      damaged[i] = static_cast<char>(~damaged[i]);
    read_copy(damaged);
  }
  fs::remove(copy);
}

}  // namespace
}  // namespace commlens
