#include "cli/command.h"
#include "cli/run.h"

namespace commlens::cli {
namespace {

int run_whatif(const Arguments& arguments) {
  check_options(arguments.study);
  Sink sink(arguments.output.path);
  const Study study = study_inputs(arguments);
  render_prediction(study, arguments.output.format, sink);
  sink.close();
  warn_of_notes(arguments, study);
  report_perf(arguments);
  return study.any_input_unusable ? kUnusableInput : kDone;
}

}  // namespace

extern const Command kWhatIf;
constinit const Command kWhatIf{
    .name = "whatif",
    .summary = "Replay the run under a changed assumption: what would the step time be?",
    .example = "commlens whatif traces/ --comm-speed 2 --fix-rank 5",
    .run = run_whatif,
};

}  // namespace commlens::cli
