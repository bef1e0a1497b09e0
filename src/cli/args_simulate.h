// The part of the command line that describes simulated jobs.
#pragma once

#include "cli/args.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace commlens::cli {

void add_simulate_options(CLI::App& verb, Arguments& arguments);
// The option's value is a size: "25MB".
void take_size(CLI::Option& option);

}  // namespace commlens::cli
