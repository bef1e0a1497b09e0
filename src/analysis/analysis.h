// What an analysis is to the rest of the program: a name, the question it answers, a function from
// a job to a result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/result.h"

namespace commlens {

struct AnalysisOptions {
  // Extra tables by pairs (or more) of keys: {"op", "rank"}. Keys: see `slice_keys`.
  std::vector<std::vector<std::string>> by;
  std::optional<std::int64_t> explain;  // the rank that Job::trails are of
};

struct Analysis {
  std::string_view name;
  std::string_view summary;  // the question it answers, for `commlens analyses`
  Result (*run)(const Job& job, const AnalysisOptions& options);
};

// All analyses, in the order of the report.
std::span<const Analysis* const> analyses();

// What communication can be summed by, besides the tables that are always there.
std::span<const std::string_view> slice_keys();

}  // namespace commlens
