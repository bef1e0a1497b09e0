#include "base/perf.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <string_view>

namespace commlens {
namespace {

struct StageInfo {
  std::string_view name;
  int level;
  std::string_view bytes;
};

constexpr StageInfo kStages[] = {
#define COMMLENS_STAGE_ROW(name, level, bytes) {#name, level, bytes},
    COMMLENS_STAGES(COMMLENS_STAGE_ROW)
#undef COMMLENS_STAGE_ROW
};

struct Counter {
  std::atomic<std::int64_t> ns{0};
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> bytes{0};
};

std::array<Counter, std::size(kStages)> counters;
bool enabled = false;  // set once, before threads

Counter& counter(Stage stage) { return counters[static_cast<std::size_t>(stage)]; }

}  // namespace

void enable_perf() { enabled = true; }

PerfScope::PerfScope(Stage stage) : stage_(stage), on_(enabled) {
  if (on_) start_ = std::chrono::steady_clock::now();
}

PerfScope::~PerfScope() {
  if (!on_) return;
  counter(stage_).ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
  ++counter(stage_).calls;
}

void count_perf_bytes(Stage stage, std::int64_t bytes) {
  if (enabled) counter(stage).bytes += bytes;
}

void write_perf(Sink& sink) {
  const double total = static_cast<double>(counter(Stage::total).ns) / 1e9;
  for (std::size_t i = 0; i < std::size(kStages); ++i) {
    const StageInfo& info = kStages[i];
    if (counters[i].calls == 0) continue;
    const double seconds = static_cast<double>(counters[i].ns) / 1e9;
    char line[160];
    std::snprintf(line, sizeof line, "%*s%-*.*s %9.4f s %6.1f %% %9lld calls", 2 * info.level, "",
                  18 - 2 * info.level, static_cast<int>(info.name.size()), info.name.data(),
                  seconds, total > 0 ? 100 * seconds / total : 0.0,
                  static_cast<long long>(counters[i].calls));
    sink.append(line);
    if (counters[i].bytes > 0) {
      const double bytes = static_cast<double>(counters[i].bytes);
      std::snprintf(line, sizeof line, " %10.1f MB %8.0f MB/s %.*s", bytes / 1e6,
                    seconds > 0 ? bytes / 1e6 / seconds : 0.0, static_cast<int>(info.bytes.size()),
                    info.bytes.data());
      sink.append(line);
    }
    sink.append('\n');
  }
}

}  // namespace commlens
