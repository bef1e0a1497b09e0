#include <cstdio>

#include "cli/command.h"
#include "simulate/write_run.h"

namespace commlens::cli {
namespace {

int run(const Arguments& arguments) {
  simulate::write_run(arguments.job, arguments.output.path, arguments.record);
  if (!arguments.output.quiet) {
    const int ranks = arguments.job.world();
    std::fprintf(stderr, "wrote %d rank%s and truth.json; try: commlens analyze %s\n", ranks,
                 ranks == 1 ? "" : "s", arguments.output.path.c_str());
  }
  return kDone;
}

}  // namespace

extern const Command kSimulate;
constinit const Command kSimulate{
    .name = "simulate",
    .summary =
        "Write the traces of a described job, with what a perfect analysis must find in them",
    .example = "commlens simulate --dp 4 --tp 2 --layers 8 --steps 4 -o run/",
    .run = run,
};

}  // namespace commlens::cli
