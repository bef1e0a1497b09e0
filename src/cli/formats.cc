#include "cli/command.h"
#include "cli/lists.h"

namespace commlens::cli {
namespace {

int run(const Arguments& arguments) { return print_list(arguments, list_formats()); }

}  // namespace

extern const Command kFormats;
constinit const Command kFormats{.name = "formats",
                                 .summary = "List what can be read",
                                 .example = "commlens formats",
                                 .run = run};

}  // namespace commlens::cli
