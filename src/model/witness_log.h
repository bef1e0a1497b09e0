// What logs tell beyond calls: messages in order of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// A warning or an error that a process printed.
struct LogMessage {
  std::int64_t line = 0;   // from 1
  std::int64_t rank = -1;  // global; -1: unknown
  std::string text;        // without the launcher's prefix
};

struct LogFacts {
  std::vector<LogMessage> messages;  // in the order of the file
};

}  // namespace commlens
