// The jobs and changes that the tool is asked about, each made from a number alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/change.h"

namespace commlens::whatif_accuracy {

// "dp", "tp", "pp", "fsdp", "moe", "3d": all layouts that simulated jobs have.
inline constexpr std::string_view kLayouts[] = {"dp", "tp", "pp", "fsdp", "moe", "3d"};
inline constexpr std::size_t kLayoutCount = std::size(kLayouts);

// A job of a layout; some have a slow rank, a late host, hosts that are too slow for their GPUs, or
// clocks that differ.
simulate::Scenario make_job(std::size_t layout, std::uint64_t number);

struct Question {
  std::string kind{};   // row of the table: "comm speed", "op removed", ...
  std::string words{};  // all of it
  simulate::Scenario scenario{};
  std::vector<simulate::Change> changes{};
};

// The number chooses the layout and the kind of change in turn, and all else by chance.
Question make_question(std::uint64_t number);

}  // namespace commlens::whatif_accuracy
