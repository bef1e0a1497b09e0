// Verbs that print what is generated from the command line's own definition: completions and the
// man page.
#include "cli/command.h"
#include "cli/completions.h"
#include "cli/man_page.h"

namespace commlens::cli {
namespace {

int print(const Arguments& arguments, const std::string& text) {
  Sink sink(arguments.output.path);
  sink.append(text);
  sink.close();
  return kDone;
}

int run_completions(const Arguments& arguments) {
  return print(arguments, completion_script(arguments.shell));
}
int run_man(const Arguments& arguments) { return print(arguments, man_page()); }

}  // namespace

extern const Command kCompletions;
constinit const Command kCompletions{
    .name = "completions",
    .summary = "Print a completion script for bash, zsh or fish",
    .example = "commlens completions bash > /etc/bash_completion.d/commlens",
    .run = run_completions,
};

extern const Command kMan;
constinit const Command kMan{.name = "man",
                             .summary = "Print the man page",
                             .example = "commlens man | man -l -",
                             .run = run_man};

}  // namespace commlens::cli
