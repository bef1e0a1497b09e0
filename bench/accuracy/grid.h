// The jobs that the accuracy of an analysis is measured on: every kind of fault alone and in pairs,
// and healthy ones, each made from its kinds and a seed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/faults.h"

namespace commlens::accuracy {

// What is wrong with a job, or with its recording.
struct FaultKindRow {
  std::string_view name;     // "slow"
  std::string_view summary;  // what it does, and how much
};
std::span<const FaultKindRow> fault_kinds();

struct CaseKey {
  std::vector<std::size_t> kinds{};  // rows of fault_kinds(), each once, ascending; empty: healthy
  std::uint64_t seed = 0;
  bool has(std::string_view kind) const;
};

std::string name_of(const CaseKey& key);  // "slow+clock", "healthy"
// Throws Error(usage) for a name that is none.
std::vector<std::size_t> kinds_of(std::string_view name);

// The same key makes the same scenario, whatever else is in the grid.
simulate::Scenario make_scenario(const CaseKey& key);

// `seeds` jobs for each kind alone, a tenth of that for each pair, ten times that healthy.
std::vector<CaseKey> make_grid(std::int64_t seeds);

}  // namespace commlens::accuracy
