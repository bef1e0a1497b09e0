// The command line of every verb. This and args_simulate.cc alone include CLI11, which takes
// seconds to compile.
#include "cli/args.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "cli/args_simulate.h"
#include "cli/command.h"
#include "cli/question_words.h"
#include "model/rank_list.h"
#include "study/catalog.h"

#ifndef COMMLENS_VERSION
#define COMMLENS_VERSION "unknown"
#endif

namespace commlens::cli {
namespace {

constexpr const char* kSummary = "Where communication time goes in multi-GPU training and serving";
constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 a gate or diagnose found what it was asked to find, 2 wrong usage, 3 "
    "an input could not be used, 4 internal error.";

// Texts that become numbers or lists after parsing.
struct RawTexts {
  std::string steps;
  std::string ranks;
  std::vector<std::string> by;
  Question question;
};

// An empty text comes from a script's unset variable; taken as "all" it would hide that.
CLI::Validator not_empty() {
  return {[](std::string& text) { return std::string(text.empty() ? "a value is missing" : ""); },
          "", ""};
}

CLI::Validator number_of_threads() {
  const auto check = [](std::string& text) -> std::string {
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (digits && !text.empty() && text.size() <= 4) return {};
    return "\"" + text + "\" is no number of threads; give 0 for all cores, or 1 to 9999";
  };
  return {check, "", ""};
}

CLI::Validator number_of_rank() {
  const auto check = [](std::string& text) -> std::string {
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (digits && !text.empty() && text.size() <= 9) return {};
    return "\"" + text + "\" is no rank; give one number, such as 5 (again for each further rank)";
  };
  return {check, "", ""};
}

void add_output_options(CLI::App& verb, OutputOptions& output, bool with_format) {
  if (with_format)
    verb.add_option("--format", output.format, "How to print: text or json")
        ->type_name("NAME")
        ->capture_default_str();
  verb.add_option("-o,--output", output.path,
                  with_format ? "Write here instead of to standard output"
                              : "Write here instead of to standard output: in Perfetto's format "
                                "where the name ends in .pftrace, else as JSON")
      ->type_name("FILE");
  verb.add_option("--color", output.color, "auto, always or never")
      ->type_name("WHEN")
      ->capture_default_str();
  verb.add_flag("--quiet", output.quiet, "No progress and no warnings on standard error");
}

void add_paths(CLI::App& verb, StudyOptions& study) {
  verb.add_option("PATH", study.paths, "Files, folders or globs; formats are told apart by content")
      ->required()
      ->type_name("");
}

void add_reading_options(CLI::App& verb, StudyOptions& study) {
  verb.add_option("--input-format", study.input_format,
                  "Read every input as this format (see `commlens formats`)")
      ->type_name("NAME");
  verb.add_option("--jobs", study.jobs, "Threads; 0 means all cores")
      ->check(number_of_threads())
      ->type_name("N")
      ->capture_default_str();
}

void add_study_options(CLI::App& verb, StudyOptions& study, RawTexts& raw) {
  add_paths(verb, study);
  verb.add_option("--steps", raw.steps, "Only these steps, by their number: 5 or 5..8")
      ->check(not_empty())
      ->type_name("A..B");
  verb.add_option("--ranks", raw.ranks, "Only these ranks: 0-3,7")
      ->check(not_empty())
      ->type_name("LIST");
  verb.add_option("--window", study.window, "gpu (first GPU start to last end) or steps")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--rules", study.rules_file,
                  "Extra kernel classification: lines of PATTERN = OP, or = compute")
      ->type_name("FILE");
  verb.add_option("--rank-from", study.rank_from, "Take ranks only from: file, name or order")
      ->type_name("NAME");
  verb.add_option("--hosts", study.hosts,
                  "Which rank is on which host: a file of \"RANKS HOST\" lines, or a pattern on "
                  "the path with a (group)")
      ->type_name("FILE|REGEX");
  add_reading_options(verb, study);
}

void add_rate_options(CLI::App& verb, StudyOptions& study) {
  verb.add_option("--peak", study.peaks,
                  "Bus bandwidth in GB/s that links can reach: 180, all_reduce=180 or "
                  "dp:all_reduce=40; repeatable")
      ->check(not_empty())
      ->type_name("RATES")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);  // the next word is a PATH
  verb.add_option("--calibrate", study.calibrations,
                  "What links can reach, as nccl-tests measured and printed it; OP=FILE where the "
                  "file does not name the operation; repeatable")
      ->check(not_empty())
      ->type_name("FILE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

// Adds a repeatable option that changes the speed of some of the communication.
void add_speed_option(CLI::App& verb, const std::string& name, std::vector<SpeedChange>& changes,
                      const std::string& words, const std::string& help) {
  verb.add_option_function<std::vector<std::string>>(
          name,
          [name, &changes](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) changes.push_back(parse_speed_change(name, text));
          },
          help + "; repeatable")
      ->type_name(words)
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

void add_question_options(CLI::App& verb, Question& question) {
  verb.add_option("--comm-speed", question.comm_speed,
                  "All communication so many times as fast: 2 halves every transfer")
      ->type_name("K");
  add_speed_option(
      verb, "--op", question.ops, "CHANGE",
      "One operation's transfers take so many times as long (all_reduce=0.5; 0 removes "
      "it), or are so many times as fast (all_reduce:speed=2)");
  add_speed_option(verb, "--group", question.groups, "GROUP:speed=K",
                   "The same for a process group, by role (dp, tp, pp, ep, cp), description or "
                   "name: dp:speed=2");
  add_speed_option(verb, "--links", question.links, "LINKS:speed=K",
                   "The same for groups that cross hosts (ib) or stay inside one (nvlink): "
                   "ib:speed=0.5");
  verb.add_option("--fix-rank", question.fix_ranks,
                  "This rank's kernels take what its peers' take; repeatable")
      ->type_name("RANK")
      ->check(number_of_rank())
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  take_size(
      *verb.add_option("--bucket", question.bucket,
                       "Data-parallel all-reduces merged until they hold so much, such as 25MB"));
  verb.add_flag("--perfect-overlap", question.perfect_overlap,
                "Nothing waits for communication, its bytes are still moved: a bound");
  verb.add_flag("--no-host-delay", question.no_host_delay, "Every launch comes in time");
}

std::unique_ptr<CLI::App> make_app(Arguments& arguments, RawTexts& raw) {
  auto app = std::make_unique<CLI::App>(kSummary, "commlens");
  app->require_subcommand(1);
  app->get_formatter()->label("SUBCOMMAND", "VERB");
  app->get_formatter()->label("Subcommands", "Verbs");
  app->set_version_flag("--version", std::string("commlens ") + COMMLENS_VERSION);
  app->footer(kExitCodes);
  for (const Command* command : commands()) {
    CLI::App* verb = app->add_subcommand(std::string(command->name), std::string(command->summary));
    verb->footer("Example:\n  " + std::string(command->example));
    if (command->name == "analyze" || command->name == "timeline" || command->name == "whatif") {
      add_study_options(*verb, arguments.study, raw);
      add_output_options(*verb, arguments.output, command->name != "timeline");
      if (command->name == "whatif") {
        add_question_options(*verb, raw.question);
        // A question is about all that was recorded: check_options says so, help does not list
        // them.
        for (const char* option : {"--steps", "--window"}) verb->get_option(option)->group("");
      }
      verb->add_flag("--perf", arguments.output.perf,
                     "Print where the time went, on standard error");
      if (command->name == "analyze") {
        verb->add_option("--context", arguments.study.context,
                         "Read inputs once more to say where the critical path was launched: auto "
                         "(those of up to 50,000 events), always, never")
            ->type_name("WHEN")
            ->capture_default_str();
        verb->add_option("--explain", arguments.study.explain,
                         "Also follow this rank's longest waits back to where they came from")
            ->type_name("RANK")
            ->check(number_of_rank());
        add_rate_options(*verb, arguments.study);
      }
      if (command->name == "analyze")
        verb->add_option("--by", raw.by,
                         "Also sum communication by these keys: op,rank (op, group, size, dtype, "
                         "stream, step, rank, device, host, evidence); repeatable")
            ->check(not_empty())
            ->type_name("KEYS")
            ->take_all()
            ->expected(1)
            ->allow_extra_args(false);  // the next word is a PATH
    } else if (command->name == "diagnose") {
      add_paths(*verb, arguments.study);
      add_reading_options(*verb, arguments.study);
      add_output_options(*verb, arguments.output, true);
      verb->add_flag("--perf", arguments.output.perf,
                     "Print where the time went, on standard error");
    } else if (command->name == "simulate") {
      add_simulate_options(*verb, arguments);
    } else if (command->name == "completions") {
      verb->add_option("SHELL", arguments.shell, "bash, zsh or fish")->required()->type_name("");
      verb->add_option("-o,--output", arguments.output.path,
                       "Write here instead of to standard output")
          ->type_name("FILE");
    } else {
      add_output_options(*verb, arguments.output, command->name != "man");
    }
  }
  return app;
}

std::vector<std::string> split_keys(const std::string& text) {
  std::vector<std::string> keys;
  std::istringstream stream(text);
  for (std::string key; std::getline(stream, key, ',');) keys.push_back(key);
  return keys;
}

void finish(Arguments& arguments, const RawTexts& raw) {
  if (!raw.steps.empty()) arguments.study.steps = parse_ranges(raw.steps, "--steps");
  if (!raw.ranks.empty()) arguments.study.ranks = parse_ranges(raw.ranks, "--ranks");
  if (arguments.verb == "whatif") {
    check_question(raw.question);
    arguments.study.question = raw.question;
  }
  for (const std::string& keys : raw.by) arguments.study.by.push_back(split_keys(keys));
  require_name("--format", arguments.output.format, names_of(list_writers()));
  require_name("--color", arguments.output.color, {"auto", "always", "never"});
}

// A first word that is no verb is refused here, where the verbs are known to suggest from.
void check_verb(int argc, char** argv) {
  std::vector<std::string_view> verbs;
  for (const Command* command : commands()) verbs.push_back(command->name);
  if (argc < 2) throw Error(ErrorKind::usage, "a verb is missing; `commlens --help` lists them");
  if (argv[1][0] == '-') {
    require_name("option", argv[1], {"-h", "--help", "--version"});
  } else {
    require_name("verb", argv[1], verbs);
  }
}

// An option that is not known, with the nearest that is.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  const std::size_t at = message.find("--");
  const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error);
  if (extras == nullptr || at == std::string::npos) return message;
  const std::string word = message.substr(at, message.find_first_of(" =]", at) - at);
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands()) {
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  try {
    require_name("option", word, views);
  } catch (const Error& better) {
    return better.what();
  }
  return message;
}

std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

OptionWords words(const CLI::Option& option) {
  OptionWords words{.short_names = option.get_snames(),
                    .long_names = option.get_lnames(),
                    .value = {},
                    .positional = option.get_positional() ? option.get_name(true, true) : "",
                    .help = option.get_description()};
  if (!option.get_positional() && option.get_type_size() > 0) words.value = option.get_type_name();
  return words;
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  check_verb(argc, argv);
  Arguments arguments;
  RawTexts raw;
  const auto app = make_app(arguments, raw);
  try {
    app->parse(argc, argv);
    arguments.verb = app->get_subcommands().front()->get_name();
    finish(arguments, raw);
  } catch (const CLI::Success& done) {
    std::ostringstream out;
    app->exit(done, out, out);
    arguments.help = out.str();
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, one_line(explain(*app, error)));
  }
  return arguments;
}

std::vector<VerbWords> describe_verbs() {
  Arguments arguments;
  RawTexts raw;
  const auto app = make_app(arguments, raw);
  std::vector<VerbWords> verbs;
  for (const CLI::App* verb : app->get_subcommands({})) {
    verbs.push_back({verb->get_name(), verb->get_description(), {}});
    for (const CLI::Option* option : verb->get_options())
      verbs.back().options.push_back(words(*option));
  }
  return verbs;
}

std::string option_names(const OptionWords& option, std::string_view between) {
  std::string names;
  for (const std::string& name : option.short_names)
    names += (names.empty() ? "" : std::string(between)) + "-" + name;
  for (const std::string& name : option.long_names)
    names += (names.empty() ? "" : std::string(between)) + "--" + name;
  return names;
}

std::string describe_program() { return kSummary; }
std::string describe_exit_codes() { return kExitCodes; }

}  // namespace commlens::cli
