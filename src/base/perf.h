// Where a run's time goes, for users' reports (`--perf`): a fixed tree of stages with seconds,
// bytes and calls.
//
// Times are summed over the threads that were in a stage, so they can exceed the wall time. Off by
// default; then a scope costs one look at a flag.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/sink.h"

namespace commlens {

// The tree: a stage with a deeper level belongs to the one before it with a lower level.
//   name, level, what `bytes` counts (empty: nothing)
#define COMMLENS_STAGES(X)                                \
  X(total, 0, "")                                         \
  X(read, 1, "of text")                                   \
  X(fetch, 2, "of text, read from disk and decompressed") \
  X(classify, 1, "")                                      \
  X(windows, 1, "")                                       \
  X(own_times, 1, "")                                     \
  X(figures, 1, "")                                       \
  X(dependencies, 1, "")                                  \
  X(arrange, 1, "")                                       \
  X(relate, 1, "")                                        \
  X(path, 1, "")                                          \
  X(contexts, 2, "")                                      \
  X(advice, 2, "")                                        \
  X(analyses, 1, "")                                      \
  X(output, 1, "")

enum class Stage : std::uint8_t {
#define COMMLENS_STAGE_ENUM(name, level, bytes) name,
  COMMLENS_STAGES(COMMLENS_STAGE_ENUM)
#undef COMMLENS_STAGE_ENUM
};

// Measures from its making to its end.
class PerfScope {
 public:
  explicit PerfScope(Stage stage);
  ~PerfScope();
  PerfScope(const PerfScope&) = delete;
  PerfScope& operator=(const PerfScope&) = delete;

 private:
  Stage stage_;
  bool on_;
  std::chrono::steady_clock::time_point start_;
};

// Before any thread is started.
void enable_perf();
void count_perf_bytes(Stage stage, std::int64_t bytes);

// The tree as text, a line a stage: seconds, share of the total, calls, bytes a second.
void write_perf(Sink& sink);

}  // namespace commlens
