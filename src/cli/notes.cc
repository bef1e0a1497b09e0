#include "cli/command.h"
#include "cli/lists.h"

namespace commlens::cli {
namespace {

int run_notes(const Arguments& arguments) { return print_list(arguments, list_notes()); }

}  // namespace

extern const Command kNotes;
constinit const Command kNotes{
    .name = "notes",
    .summary = "List what can be odd in an input, and what to do about it",
    .example = "commlens notes",
    .run = run_notes};

}  // namespace commlens::cli
