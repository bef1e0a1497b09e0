// The command line as plain values. args*.cc alone know how it is parsed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// What the same definitions say, for completions and the man page.
struct OptionWords {
  std::vector<std::string> short_names;  // without dashes
  std::vector<std::string> long_names;
  std::string value;       // what follows it, such as "FILE"; empty for a flag
  std::string positional;  // the name of one that is no option
  std::string help;
};
struct VerbWords {
  std::string name;
  std::string summary;
  std::vector<OptionWords> options;
};
std::vector<VerbWords> describe_verbs();
// "-o, --output", with what is to stand between two.
std::string option_names(const OptionWords& option, std::string_view between);
std::string describe_program();
std::string describe_exit_codes();

}  // namespace commlens::cli
