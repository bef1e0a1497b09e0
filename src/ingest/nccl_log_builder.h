// Collects what the lines of one log say; the only way to fill LogFacts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/nccl_log_fields.h"
#include "ingest/nccl_log_prefix.h"
#include "model/witness_log.h"

namespace commlens {

// What a reader of one subject made of a record.
enum class Understood : std::uint8_t {
  no,   // not its subject
  cut,  // begins like its subject and stops in the middle: the next line may hold the rest
  yes,
};

class LogBuilder {
 public:
  // Communicators that are told apart in one log.
  static constexpr std::size_t kMostComms = 500'000;

  explicit LogBuilder(LogFacts& facts) : facts_(facts) {}

  LogFacts& facts() { return facts_; }
  // The process that wrote the record.
  LogProcessId process_of(const LogRecord& record);
  LogProcess& process(LogProcessId id) { return facts_.processes[id.index()]; }

  // The communicator that this pointer means now, made where it is not known yet.
  LogCommId comm_of(LogProcessId process, std::uint64_t pointer, std::int64_t line);
  // A communicator that is initialised at this line, unless the pointer's is the same one.
  LogCommId initialised(const LogComm& seen);
  LogComm& comm(LogCommId id) { return facts_.comms[id.index()]; }

  void add(LogChannel channel) { keep(facts_.channels, std::move(channel)); }
  void add(LogChannelCount row) { keep(facts_.channel_counts, row); }
  // Calls that are both traced and told with an op count are kept once, with that.
  void add(const LogCall& call);
  void add(LogTuning tuning) { keep(facts_.tuning, std::move(tuning)); }
  void add(LogSetting setting) { keep(facts_.settings, std::move(setting)); }
  void add(LogInterfaces list) { keep(facts_.interfaces, std::move(list)); }
  void add(LogInitTimings timings) { keep(facts_.timings, std::move(timings)); }
  void add(LogWatchdog line) { keep(facts_.watchdog, std::move(line)); }
  void add(LogDesync line) { keep(facts_.desync, std::move(line)); }
  // A rank that a line of a list names, for the lines that follow it.
  void set_listed_rank(std::int64_t rank, std::int64_t line) {
    listed_rank_ = rank;
    listed_line_ = line;
  }
  // The rank that was named at most `lines` before `line`; -1: none.
  std::int64_t listed_rank(std::int64_t line, std::int64_t lines) const {
    return listed_rank_ >= 0 && line - listed_line_ <= lines ? listed_rank_ : -1;
  }
  // A list that goes on from one line to the next.
  void open_list(std::int64_t line) { list_line_ = line; }
  bool in_list(std::int64_t line) const { return list_line_ > 0 && line - list_line_ <= 1; }
  // With who, where, when and the text of `record` filled in.
  void add(LogEvent event, const LogRecord& record);
  // What can be told only when all lines are read.
  void finish();

 private:
  // More of one thing than any log that a person looks at; beyond it they are only counted.
  static constexpr std::size_t kMost = 4'000'000;
  static constexpr std::size_t kMostEvents = 200'000;

  template <class Row>
  void keep(std::vector<Row>& rows, Row row) {
    if (rows.size() < kMost) {
      rows.push_back(std::move(row));
    } else {
      ++facts_.lost;
    }
  }
  std::string_view whole_host(const LogRecord& record) const;
  bool is_counting(const LogCall& call) const;

  LogFacts& facts_;
  std::int64_t listed_rank_ = -1;
  std::int64_t listed_line_ = 0;
  std::int64_t list_line_ = 0;
  std::vector<bool> counting_;  // by process: whether its calls have op counts
  std::map<std::pair<std::string, std::int64_t>, LogProcessId, std::less<>> processes_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, LogCommId> comms_;
};

// "file:line: text" belongs to the verdicts; this is the text of a record, limited and safe.
std::string record_text(const LogRecord& record);

// One subject each. They are asked in the order of nccl_log.cc until one knows the record.
Understood read_settings(const LogRecord& record, LogBuilder& builder);
Understood read_communicators(const LogRecord& record, LogBuilder& builder);
Understood read_channels(const LogRecord& record, LogBuilder& builder);
Understood read_network(const LogRecord& record, LogBuilder& builder);
Understood read_timings(const LogRecord& record, LogBuilder& builder);
Understood read_tuning(const LogRecord& record, LogBuilder& builder);
Understood read_calls(const LogRecord& record, LogBuilder& builder);
Understood read_call_trace(const LogRecord& record, LogBuilder& builder);
Understood read_errors(const LogRecord& record, LogBuilder& builder);
Understood read_watchdog(const LogRecord& record, LogBuilder& builder);
Understood read_desync(const LogRecord& record, LogBuilder& builder);
Understood read_last_error(const LogRecord& record, LogBuilder& builder);
Understood read_program(const LogRecord& record, LogBuilder& builder);
// Lines that are known to hold nothing that is wanted.
Understood read_known(const LogRecord& record, LogBuilder& builder);

// An operation by NCCL's name ("AllReduce") or c10d's ("_ALLGATHER_BASE"); unknown for others.
Op op_of_nccl_name(std::string_view name);
Op op_of_c10d_name(std::string_view name);

}  // namespace commlens
