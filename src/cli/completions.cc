#include "cli/completions.h"

#include <vector>

#include "cli/args.h"
#include "study/catalog.h"

namespace commlens::cli {
namespace {

std::string bash_script(const std::vector<VerbWords>& verbs) {
  std::string cases;
  std::string names;
  for (const VerbWords& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    std::string words;
    for (const OptionWords& option : verb.options) words += option_names(option, " ") + " ";
    cases += "    " + verb.name + ") words=\"" + words + "\" ;;\n";
  }
  return "# bash completion for commlens\n_commlens() {\n  local "
         "word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         " --help --version\" -- \"$word\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "  esac\n  if [[ \"$word\" == -* ]]; then\n    COMPREPLY=($(compgen -W \"$words\" -- "
         "\"$word\"))\n  else\n    COMPREPLY=($(compgen -f -- \"$word\"))\n  fi\n}\ncomplete -o "
         "filenames -F _commlens commlens\n";
}

std::string zsh_script(const std::vector<VerbWords>& verbs) {
  return "#compdef commlens\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(verbs);
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_script(const std::vector<VerbWords>& verbs) {
  std::string script = "# fish completion for commlens\n";
  for (const VerbWords& verb : verbs) {
    script += "complete -c commlens -n __fish_use_subcommand -f -a " + verb.name + " -d " +
              fish_quoted(verb.summary) + "\n";
    for (const OptionWords& option : verb.options) {
      if (!option.positional.empty()) continue;
      script += "complete -c commlens -n '__fish_seen_subcommand_from " + verb.name + "'";
      for (const std::string& name : option.short_names) script += " -s " + name;
      for (const std::string& name : option.long_names) script += " -l " + name;
      script += " -d " + fish_quoted(option.help) + "\n";
    }
  }
  return script;
}

}  // namespace

std::string completion_script(const std::string& shell) {
  require_name("shell", shell, {"bash", "zsh", "fish"});
  const std::vector<VerbWords> verbs = describe_verbs();
  return shell == "bash"  ? bash_script(verbs)
         : shell == "zsh" ? zsh_script(verbs)
                          : fish_script(verbs);
}

}  // namespace commlens::cli
