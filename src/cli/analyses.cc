#include "cli/command.h"
#include "cli/lists.h"

namespace commlens::cli {
namespace {

int run_analyses(const Arguments& arguments) { return print_list(arguments, list_analyses()); }

}  // namespace

extern const Command kAnalyses;
constinit const Command kAnalyses{.name = "analyses",
                                  .summary = "List what is computed",
                                  .example = "commlens analyses",
                                  .run = run_analyses};

}  // namespace commlens::cli
