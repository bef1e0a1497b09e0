#include <cstdio>
#include <set>

#include "cli/command.h"
#include "simulate/write_run.h"

namespace commlens::cli {
namespace {

int run_simulate(const Arguments& arguments) {
  const simulate::Scenario& scenario = arguments.scenario;
  simulate::write_run(scenario, arguments.output.path);
  if (!arguments.output.quiet) {
    std::set<int> missing;
    for (const simulate::Fault& fault : scenario.faults.list) {
      if (fault.kind == simulate::FaultKind::missing) missing.insert(fault.rank);
    }
    const int ranks = scenario.spec.world() - static_cast<int>(missing.size());
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
    .run = run_simulate,
};

}  // namespace commlens::cli
