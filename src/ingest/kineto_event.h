// One entry of "traceEvents": what it is, and what of it goes to the builder.
#pragma once

#include <string_view>

#include "ingest/format.h"
#include "ingest/json_scan.h"
#include "ingest/kineto_arguments.h"

namespace commlens {

// Reads events one after the other into a builder. An event is used whole or, when its text is
// damaged, not at all.
class KinetoEvents {
 public:
  KinetoEvents(TraceBuilder& builder, const ReadOptions& options)
      : builder_(builder), options_(options) {}

  // Reads the event whose `{` stands before `at`; `at` is left behind its `}` (ok) or where the
  // damage shows (bad). `offset` is where it stands in the text, for notes.
  Scan read(const char*& at, const char* end, std::int64_t offset);

 private:
  enum class Category : std::uint8_t {
    unknown,  // not seen yet
    kernel,
    memcpy,
    memset,
    runtime,
    cpu_op,
    annotation,
    gpu_annotation,
    recording_span,
    sync,
    ignored,
  };
  struct Event {
    Category category = Category::unknown;
    bool other_phase = false;  // "ph" is there and not "X"
    bool args_taken = false;  // the last "args" were read into arguments_; else they wait in `args`
    int duplicate_keys = 0;
    Token name, pid, tid, ts, dur, args;
  };
  struct Times {
    bool usable = false;
    Interval interval;
  };

  static Category category_of(std::string_view name);
  static Category category_in_lower_case(std::string_view name);
  enum class Key : std::uint8_t { ph, cat, name, pid, tid, ts, dur, args, other };
  static Key key_of(std::string_view key);
  static const char* read_usual_head(const char* at, const char* end, Category& category);
  static bool read_usual_name(const char*& at, const char* end, Token& name);
  Scan read_members(const char*& at, const char* end, const char* behind, Category category);
  Scan pass_over(const char*& at, const char* end);
  void read_member(Key key, Walker& walker, Event& event);
  void note_oddities(const Walker& walker);
  void note_depth();
  void read_arguments(Walker& walker, Category category) {
    arguments_.read(walker, static_cast<std::size_t>(category));
  }
  bool wanted(const Event& event) const;
  bool wanted_name(Category category, std::string_view name) const;
  bool reads_arguments(const Event& event) const;

  void use(const Event& event);
  void use_activity(const Event& event, ActivityKind kind);
  void use_runtime(const Event& event);
  void use_sync(const Event& event);
  void use_cpu_op(const Event& event);
  void use_annotation(const Event& event);
  void use_step(const Event& event, bool on_gpu);
  Times times(const Event& event, bool on_gpu);
  MetaId meta();
  CallKey call() const;
  Stream stream(const Event& event) const;
  ThreadId thread(const Event& event);
  StringId intern(const Token& token);
  std::string_view text(const Token& token);

  TraceBuilder& builder_;
  const ReadOptions& options_;
  std::int64_t offset_ = 0;
  KeyHabit habit_;             // of the members behind an event's usual head
  KeyHabit other_habit_;       // of those of events that begin otherwise
  KinetoArguments arguments_;  // of the event at hand; not a part of it, since most events have
                               // none that matter
  std::string scratch_;
};

}  // namespace commlens
