#include "cli/run.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/perf.h"
#include "base/utf8.h"

namespace commlens::cli {
namespace {

void show_progress(std::size_t done, std::size_t total) {
  std::fprintf(stderr, "\rreading %zu of %zu\x1B[K", done, total);
  if (done == total) std::fprintf(stderr, "\r\x1B[K");
}

}  // namespace

void complain(std::string_view message) {
  // Line breaks separate inputs in a message over several; anything else that controls a terminal
  // is not printed.
  std::size_t from = 0;
  while (from <= message.size()) {
    const std::size_t to = std::min(message.find('\n', from), message.size());
    std::fprintf(stderr, "%s%s\n", from == 0 ? "commlens: " : "",
                 printable(message.substr(from, to - from)).c_str());
    from = to + 1;
  }
}

void report_perf(const Arguments& arguments) {
  if (!arguments.output.perf) return;
  Sink tree;
  write_perf(tree);
  std::fputs(tree.text().c_str(), stderr);
}

void check_output(const Arguments& arguments) {
  const std::string& output = arguments.output.path;
  if (output.empty()) throw Error(ErrorKind::usage, "-o needs the name of a file");
  std::error_code none;
  for (const std::string& input : arguments.study.paths) {
    if (std::filesystem::is_regular_file(input, none) &&
        std::filesystem::equivalent(input, output, none))
      throw Error(ErrorKind::usage,
                  output + ": is an input, which -o would overwrite; name another file");
  }
}

bool wants_color(const OutputOptions& output) {
  if (output.color != "auto") return output.color == "always";
  const char* refused = std::getenv("NO_COLOR");
  return output.path == "-" && isatty(STDOUT_FILENO) != 0 &&
         (refused == nullptr || *refused == '\0');
}

std::function<void(std::size_t, std::size_t)> progress_for(const Arguments& arguments) {
  if (arguments.output.perf) enable_perf();
  if (arguments.output.quiet || isatty(STDERR_FILENO) == 0) return {};
  return show_progress;
}

Study study_inputs(const Arguments& arguments) {
  StudyOptions options = arguments.study;
  options.progress = progress_for(arguments);
  Study study = run_study(options);
  if (!arguments.output.quiet) {
    for (const std::string& trouble : study.troubles) complain(trouble);
  }
  return study;
}

void warn_of_notes(const Arguments& arguments, const Study& study) {
  if (arguments.output.quiet) return;
  for (const NoteLine& line : collect_notes(study.report)) {
    const NoteInfo& info = note_info(line.note);
    // What could not be used at all was complained of already.
    if (info.severity == Severity::info || line.note == Note::unusable_input) continue;
    std::string message(severity_name(info.severity));
    message += ": " + std::string(info.message) + " (" + std::to_string(line.count) + "x";
    if (line.inputs > 1) message += " in " + std::to_string(line.inputs) + " inputs";
    if (!line.example.empty()) message += ", e.g. " + line.example;
    complain(message + "); " + std::string(info.advice));
  }
}

}  // namespace commlens::cli
