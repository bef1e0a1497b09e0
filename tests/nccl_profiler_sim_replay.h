// Runs written-down calls of NcclProfilerSim and prints every field, to compare with Python's
// class.
//
//   case 3
//   compute forward 0 2
//   comm all_reduce 1 2.5 131072
//   = summary 1 1.5 1.5 1                  num_comm_events total_comm_time overlap_time
//   overlap_ratio = by_op all_reduce 1 1.5 131072        count time bytes = event all_reduce 1 2.5
//   131072 1      start end bytes overlap, in the order of adding = record all_reduce 1 2.5 1.5
//   131072 1 start end duration bytes overlap: the timeline
//
// Where bytes overflow, "= overflow" stands for the summary. Lines with `=` are what is printed,
// and are skipped in the input, so that a file can hold both. Doubles are "%.17g", which reads back
// equal; names are bytes, with those outside letters, digits and `_` as %XX, and `%` alone if
// empty. tests/nccl_profiler_sim_check.py writes and prints the same.
#pragma once

#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "commlens/nccl_profiler_sim.h"

namespace commlens::replay {

inline std::string decoded(const std::string& name) {
  std::string bytes;
  if (name == "%") return bytes;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] != '%') {
      bytes += name[at];
      continue;
    }
    bytes += static_cast<char>(std::stoi(name.substr(at + 1, 2), nullptr, 16));
    at += 2;
  }
  return bytes;
}

inline std::string encoded(const std::string& bytes) {
  std::string name;
  for (char byte : bytes) {
    if (std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_') {
      name += byte;
      continue;
    }
    char escape[4];
    std::snprintf(escape, sizeof escape, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(byte)));
    name += escape;
  }
  return name.empty() ? "%" : name;
}

inline std::string text_of(double number) {
  if (std::isnan(number)) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}

inline void print(const NcclProfilerSim& profiler, std::ostream& out) {
  try {
    const auto summary = profiler.summarize();
    out << "= summary " << summary.num_comm_events << ' ' << text_of(summary.total_comm_time) << ' '
        << text_of(summary.overlap_time) << ' ' << text_of(summary.overlap_ratio) << '\n';
    for (const auto& [op, totals] : summary.by_op) {
      out << "= by_op " << encoded(op) << ' ' << totals.count << ' ' << text_of(totals.time) << ' '
          << totals.bytes << '\n';
    }
  } catch (const std::overflow_error&) {
    out << "= overflow\n";
  }
  for (const auto& event : profiler.events) {
    out << "= event " << encoded(event.op) << ' ' << text_of(event.start) << ' '
        << text_of(event.end) << ' ' << event.bytes << ' ' << event.overlap_with_compute << '\n';
  }
  for (const auto& record : profiler.timeline()) {
    out << "= record " << encoded(record.op) << ' ' << text_of(record.start) << ' '
        << text_of(record.end) << ' ' << text_of(record.duration) << ' ' << record.bytes << ' '
        << record.overlap << '\n';
  }
}

inline void run(std::istream& in, std::ostream& out) {
  NcclProfilerSim profiler;
  bool open = false;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string verb, name, start, end;
    words >> verb >> name >> start >> end;
    if (verb == "case") {
      if (open) print(profiler, out);
      profiler = NcclProfilerSim();
      open = true;
      out << line << '\n';
    } else if (verb == "compute") {
      profiler.add_compute(decoded(name), std::strtod(start.c_str(), nullptr),
                           std::strtod(end.c_str(), nullptr));
    } else if (verb == "comm") {
      std::int64_t bytes = 0;
      words >> bytes;
      profiler.add_comm(decoded(name), std::strtod(start.c_str(), nullptr),
                        std::strtod(end.c_str(), nullptr), bytes);
    }
  }
  if (open) print(profiler, out);
}

}  // namespace commlens::replay
