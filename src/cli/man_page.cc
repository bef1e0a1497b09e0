#include "cli/man_page.h"

#include <vector>

#include "cli/args.h"
#include "cli/command.h"

#ifndef COMMLENS_VERSION
#define COMMLENS_VERSION "unknown"
#endif

namespace commlens::cli {
namespace {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
  return out;
}

}  // namespace

std::string man_page() {
  std::string page = ".TH COMMLENS 1 \"\" \"commlens " COMMLENS_VERSION
                     "\" \"User Commands\"\n.SH NAME\ncommlens \\- " +
                     roff(describe_program()) +
                     "\n.SH SYNOPSIS\n.B commlens\n.I VERB\n[options] PATH...\n.SH VERBS\n";
  for (const VerbWords& verb : describe_verbs()) {
    page += ".SS " + verb.name + "\n" + roff(verb.summary) + "\n";
    for (const OptionWords& option : verb.options) {
      const std::string names =
          option.positional.empty() ? option_names(option, ", ") : option.positional;
      page += ".TP\n.B " + roff(names) + (option.value.empty() ? "" : " " + roff(option.value)) +
              "\n" + roff(option.help) + "\n";
    }
    page +=
        ".PP\nExample:\n.PP\n.nf\n.RS\n" + roff(find_command(verb.name)->example) + "\n.RE\n.fi\n";
  }
  return page + ".SH EXIT STATUS\n" + roff(describe_exit_codes()) + "\n";
}

}  // namespace commlens::cli
