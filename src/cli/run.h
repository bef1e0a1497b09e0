// What several verbs share: reading with progress, colours, saying what went wrong.
#pragma once

#include <functional>
#include <string_view>

#include "cli/args.h"

namespace commlens::cli {

// Runs the study with progress on a terminal; says on standard error which inputs could not be
// used.
Study study_inputs(const Arguments& arguments);

// What shows progress on a terminal, and nothing elsewhere; starts measuring for --perf.
std::function<void(std::size_t done, std::size_t total)> progress_for(const Arguments& arguments);

// Says on standard error what was odd in the inputs, for verbs whose result does not say it.
void warn_of_notes(const Arguments& arguments, const Study& study);

// Prints where the time went, if asked to.
void report_perf(const Arguments& arguments);

// Refuses an output that is no name, or one of the inputs: writing would destroy a recording.
void check_output(const Arguments& arguments);

bool wants_color(const OutputOptions& output);

// One line on standard error, "commlens: ...", control characters made harmless.
void complain(std::string_view message);

}  // namespace commlens::cli
