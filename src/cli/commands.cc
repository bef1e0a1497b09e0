#include <algorithm>
#include <iterator>

#include "cli/command.h"

namespace commlens::cli {

// One line a verb.
extern const Command kAnalyze;
extern const Command kTimeline;
extern const Command kWhatIf;
extern const Command kDiagnose;
extern const Command kSimulate;
extern const Command kDemo;
extern const Command kFormats;
extern const Command kAnalyses;
extern const Command kNotes;
extern const Command kCompletions;
extern const Command kMan;

namespace {

constexpr const Command* kCommands[] = {&kAnalyze,  &kTimeline,    &kWhatIf,  &kDiagnose,
                                        &kSimulate, &kDemo,        &kFormats, &kAnalyses,
                                        &kNotes,    &kCompletions, &kMan};

}  // namespace

std::span<const Command* const> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [name](const Command* command) { return command->name == name; });
  return found == std::end(kCommands) ? nullptr : *found;
}

}  // namespace commlens::cli
