// What an output is to the rest of the program: a name and a function from a report to bytes.
#pragma once

#include <span>
#include <string_view>

#include "base/sink.h"
#include "model/report.h"

namespace commlens {

struct WriteOptions {
  bool color = false;  // escape sequences for terminals
};

struct Writer {
  std::string_view name;  // as in --format
  std::string_view summary;
  void (*write)(const Report& report, const WriteOptions& options, Sink& sink);
};

std::span<const Writer* const> writers();
const Writer* find_writer(std::string_view name);

// The version that reports name.
std::string_view program_version();

}  // namespace commlens
