// The only way to fill a Recording: importers push what they read, the builder interns, counts and
// checks.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>

#include "model/trace.h"

namespace commlens {

// One GPU activity as an importer reads it.
struct ActivityInput {
  ActivityKind kind = ActivityKind::kernel;
  Ns start = 0;
  Ns end = 0;
  std::string_view name;
  Stream stream;
  std::uint64_t correlation = 0;
  std::uint64_t external_id = 0;
  MetaId meta;
  CallKey call = {};  // counts only with metadata
};

class TraceBuilder {
 public:
  TraceBuilder(std::string_view path, std::string_view format);

  StringId intern(std::string_view text) { return recording_.strings.intern(text); }
  MetaId add_meta(const CollectiveMeta& meta);
  ThreadId thread(std::int64_t process, std::int64_t thread);

  void add_activity(const ActivityInput& activity);
  void add_launch(std::uint64_t correlation, Ns start, ThreadId thread,
                  std::uint64_t external_id = 0);
  void add_sync_call(const SyncCall& call) { recording_.sync_calls.push_back(call); }
  void add_sync_record(const SyncRecord& record) { recording_.sync_records.push_back(record); }
  // `call` counts only with metadata.
  void add_host_range(const HostRange& range, const CallKey& call = {});
  void add_host_compute(Interval interval, ThreadId thread);
  void add_step(std::int64_t number, Interval range, bool on_gpu);

  // Facts about the recording (rank, groups, clock) are set here directly; the columns are not.
  Recording& about() { return recording_; }
  Notes& notes() { return recording_.notes; }

  // Times count from the start of the recording: 0 is one of them, not a lost one.
  void take_zero_for_a_time() { zero_is_a_time_ = true; }

  // Adds what another builder was given, as if it had been pushed here after everything else.
  void append(TraceBuilder&& later);

  // Checks what can only be checked at the end (lost time stamps, absurd durations, external ids
  // that link nothing) and hands the recording over.
  Recording finish();

 private:
  void append_about(Recording& later);
  void append_activities(Recording& later);
  void append_host(Recording& later);
  void merge_steps();
  void drop_lost_times();
  void cut_absurd_durations();
  void distrust_external_ids();
  void note_odd_names();

  Recording recording_;
  std::map<Stream, StreamId> streams_;
  StreamId last_stream_;
  std::map<std::pair<std::int64_t, std::int64_t>, ThreadId> threads_;
  std::pair<std::int64_t, std::int64_t> last_thread_key_{0, 0};
  ThreadId last_thread_;
  std::map<CollectiveMeta, MetaId> metas_;
  std::vector<std::vector<Interval>> host_compute_;  // by thread, nested ranges left out
  std::size_t external_equals_correlation_ = 0;
  bool zero_is_a_time_ = false;
};

}  // namespace commlens
