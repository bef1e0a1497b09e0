// Everything that a writer renders: the inputs, the job, the results of all analyses, what is not
// there and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/notes.h"
#include "model/result.h"

namespace commlens {

struct InputReport {
  std::string path;
  std::string format;  // empty: not known
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> bytes;  // as on disk; nothing where that is not known (a pipe)
  std::int64_t events = 0;
  Notes notes;
};

struct JobReport {
  std::vector<std::int64_t> ranks;  // found
  std::vector<std::int64_t> missing_ranks;
  std::int64_t world_size = 0;  // 0 is unknown
  std::string backend;          // empty is unknown
  std::string nccl_version;     // empty is unknown
  std::vector<std::string> hosts;
  bool all_hosts_known = false;     // of every rank found
  std::string hosts_from;           // how they were found; empty where they were not
  std::vector<std::int64_t> steps;  // numbers
};

struct Report {
  std::vector<InputReport> inputs;
  JobReport job;
  std::vector<Result> results;
  Notes notes;  // about the job as a whole
};

// One note over all inputs and the job.
struct NoteLine {
  Note note{};
  std::int64_t count = 0;
  std::size_t inputs = 0;  // how many of them it fired in; the job counts as one
  std::string example;     // with the input's path; empty: none
};

// Those that fired, the gravest first.
std::vector<NoteLine> collect_notes(const Report& report);

}  // namespace commlens
