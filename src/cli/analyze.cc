#include "cli/command.h"
#include "cli/run.h"

namespace commlens::cli {
namespace {

int run_analyze(const Arguments& arguments) {
  check_options(arguments.study);
  Sink sink(arguments.output
                .path);  // opened before the work: a mistyped folder should not cost ten minutes
  const Study study = study_inputs(arguments);
  render(study, arguments.output.format, wants_color(arguments.output), sink);
  sink.close();
  // The text report holds them already.
  if (arguments.output.format != "text" || arguments.output.path != "-")
    warn_of_notes(arguments, study);
  report_perf(arguments);
  return study.any_input_unusable ? kUnusableInput : kDone;
}

}  // namespace

extern const Command kAnalyze;
constinit const Command kAnalyze{
    .name = "analyze",
    .summary = "Say where communication time goes in these traces",
    .example = "commlens analyze traces/ --steps 10..13 --format json -o analysis.json",
    .run = run_analyze,
};

}  // namespace commlens::cli
