#include "cli/command.h"
#include "cli/run.h"
#include "study/diagnosis.h"

namespace commlens::cli {
namespace {

int run_diagnose(const Arguments& arguments) {
  Sink sink(arguments.output.path);
  const Diagnosis diagnosis = diagnose({.paths = arguments.study.paths,
                                        .input_format = arguments.study.input_format,
                                        .jobs = arguments.study.jobs,
                                        .progress = progress_for(arguments)});
  render_diagnosis(diagnosis, arguments.output.format, sink);
  sink.close();
  if (!arguments.output.quiet) {
    for (const std::string& trouble : diagnosis.troubles) complain(trouble);
  }
  report_perf(arguments);
  if (!diagnosis.findings.empty()) return kFound;
  return diagnosis.any_input_unusable ? kUnusableInput : kDone;
}

}  // namespace

extern const Command kDiagnose;
constinit const Command kDiagnose{
    .name = "diagnose",
    .summary = "Say what is wrong with a hung or crashed job, and who is behind it",
    .example = "commlens diagnose dumps/ --format json -o diagnosis.json",
    .run = run_diagnose,
};

}  // namespace commlens::cli
