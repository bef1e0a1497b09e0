// The first error in time, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnose/log_view.h"

namespace commlens {

struct LogEventRef {
  const Witness* witness = nullptr;
  const LogEvent* event = nullptr;
};

struct LogCause {
  LogEventRef root;
  std::vector<LogEventRef> alike;      // the same, from other lines
  std::vector<LogEventRef> followers;  // what the others wrote when it had happened
  bool by_time = false;                // time stamps say that it came first
  bool only_followers = false;         // `root` itself is the echo of something that is not here
};

// Nothing where no line is an error by itself.
std::optional<LogCause> find_log_cause(const LogView& view);

// Warnings of NCCL's that ended nothing: all ranks of the process's communicators called on and
// destroyed them in good order.
std::vector<LogEventRef> survived_warnings(const LogView& view);

// Whether a watchdog gave up on an operation.
bool has_timed_out(const LogView& view);

// Whether the job failed or hung, as far as the logs say: what only costs speed is then not the
// answer.
bool has_failed(const LogView& view);

}  // namespace commlens
