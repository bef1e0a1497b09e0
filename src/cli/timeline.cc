#include <unistd.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/run.h"

namespace commlens::cli {
namespace {

int run_timeline(const Arguments& arguments) {
  if (arguments.output.path == "-" && isatty(STDOUT_FILENO) != 0) {
    throw Error(ErrorKind::usage,
                "a timeline is megabytes: name a file with -o, such as -o run.pftrace");
  }
  check_options(arguments.study);
  Sink sink(arguments.output.path);
  Arguments with_activities = arguments;
  with_activities.study.keep_activities = true;
  const Study study = study_inputs(with_activities);
  render_timeline(study, arguments.output.path.ends_with(".pftrace") ? "pftrace" : "json", sink);
  sink.close();
  warn_of_notes(arguments, study);
  report_perf(arguments);
  return study.any_input_unusable ? kUnusableInput : kDone;
}

}  // namespace

extern const Command kTimeline;
constinit const Command kTimeline{
    .name = "timeline",
    .summary = "Write one merged timeline of all ranks, for ui.perfetto.dev",
    .example = "commlens timeline traces/ -o run.pftrace",
    .run = run_timeline,
};

}  // namespace commlens::cli
