// The command line as plain values. args.cc is the only file that knows how it is parsed.
#pragma once

#include <string>

#include "simulate/faults.h"
#include "study/study.h"

namespace commlens::cli {

struct OutputOptions {
  std::string format = "text";  // --format
  std::string path = "-";       // -o; "-" is standard output
  std::string color = "auto";   // --color
  bool perf = false;            // --perf: where the time went, on standard error
  bool quiet = false;           // --quiet: no progress, no warnings on standard error
};

struct Arguments {
  std::string verb;
  OutputOptions output;
  StudyOptions study;           // analyze, timeline
  simulate::Scenario scenario;  // simulate
  std::string shell;            // completions
  std::string help;             // not empty: print this and stop (--help, --version)
};

// Throws Error(usage) with one sentence for words that are not understood.
Arguments parse_arguments(int argc, char** argv);

// A completion script for a shell ("bash", "zsh", "fish"), and the man page, made from the same
// definitions.
std::string completion_script(const std::string& shell);
std::string man_page();

}  // namespace commlens::cli
