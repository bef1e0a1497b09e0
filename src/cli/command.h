// What a verb is: a name, a summary, an example, a function.
#pragma once

#include <span>
#include <string_view>

#include "cli/args.h"

namespace commlens::cli {

inline constexpr int kDone = 0;
inline constexpr int kFound = 1;  // a gate or a diagnosis found what it was asked to find
inline constexpr int kWrongUsage = 2;
inline constexpr int kUnusableInput = 3;
inline constexpr int kInternal = 4;

struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view example;  // shown by --help
  int (*run)(const Arguments& arguments);
};

// All verbs, in the order of the help.
std::span<const Command* const> commands();
const Command* find_command(std::string_view name);

}  // namespace commlens::cli
