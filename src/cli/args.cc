// The one includer of CLI11 (six seconds to compile).
#include "cli/args.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/question_words.h"
#include "model/rank_list.h"
#include "simulate/fault_words.h"
#include "study/catalog.h"

#ifndef COMMLENS_VERSION
#define COMMLENS_VERSION "unknown"
#endif

namespace commlens::cli {
namespace {

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

void add_output_options(CLI::App& verb, OutputOptions& output, bool with_format) {
  if (with_format)
    verb.add_option("--format", output.format, "How to print: text or json")
        ->type_name("NAME")
        ->capture_default_str();
  verb.add_option("-o,--output", output.path, "Write here instead of to standard output")
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
      ->type_name("N")
      ->capture_default_str();
}

void add_study_options(CLI::App& verb, StudyOptions& study, RawTexts& raw) {
  add_paths(verb, study);
  verb.add_option("--steps", raw.steps, "Only these steps, by ProfilerStep number: 5 or 5..8")
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

// Turns a number with a unit ("25MB", "1.2ms") into a whole number of the smallest unit, as text.
CLI::Validator with_units(std::map<std::string, std::int64_t> units, const std::string& example) {
  const auto convert = [units = std::move(units), example](std::string& text) -> std::string {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto unit = units.find(text.substr(digits));
    double value = 0;
    std::istringstream number(text.substr(0, digits));
    if (unit == units.end() || !(number >> value) ||
        value * static_cast<double>(unit->second) > 9e18) {
      return "\"" + text + "\" is no number with a unit, such as " + example;
    }
    text = std::to_string(std::llround(value * static_cast<double>(unit->second)));
    return {};
  };
  return {convert, "", ""};
}
CLI::Validator sizes() {
  return with_units(
      {{"", 1}, {"B", 1}, {"kB", 1000}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}}, "25MB");
}
CLI::Validator times() {
  return with_units({{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}},
                    "1.2ms");
}

void add_simulate_options(CLI::App& verb, Arguments& arguments) {
  simulate::JobSpec& job = arguments.scenario.spec;
  verb.add_option("-o,--output", arguments.output.path,
                  "Folder to write rank-*.json and truth.json into")
      ->required()
      ->type_name("DIR");
  verb.add_flag("--quiet", arguments.output.quiet, "Say nothing");
  verb.add_option("--dp", job.dp, "Data-parallel ranks")->capture_default_str();
  verb.add_option("--tp", job.tp, "Tensor-parallel ranks")->capture_default_str();
  verb.add_option("--pp", job.pp, "Pipeline stages (1F1B)")->capture_default_str();
  verb.add_option("--layers", job.layers, "Layers of the whole model")->capture_default_str();
  verb.add_option("--steps", job.steps, "Training steps")->capture_default_str();
  verb.add_option("--microbatches", job.microbatches, "Forward and backward passes a step")
      ->capture_default_str();
  verb.add_flag(
      "--fsdp", job.fsdp,
      "Shard parameters over dp (ZeRO-3): all-gather and reduce-scatter instead of all-reduce");
  verb.add_flag("--moe", job.moe, "Mixture of experts: all-to-all there and back in each layer");
  verb.add_option("--expert-ranks", job.expert_ranks, "Ranks that share the experts; 0: all of dp")
      ->capture_default_str();
  verb.add_option("--ranks-per-host", job.ranks_per_host, "Ranks on one host")
      ->capture_default_str();
  verb.add_option("--layer-bytes", job.layer_bytes, "Parameters of a layer")
      ->transform(sizes())
      ->type_name("SIZE")
      ->capture_default_str();
  verb.add_option("--activation-bytes", job.activation_bytes, "Activations between two layers")
      ->transform(sizes())
      ->type_name("SIZE")
      ->capture_default_str();
  verb.add_option("--bucket", job.bucket_bytes, "Gradients that DDP sends at once, such as 25MB")
      ->transform(sizes())
      ->type_name("SIZE")
      ->capture_default_str();
  verb.add_option("--layer-time", job.layer_forward_ns,
                  "Forward time of a layer, such as 1.2ms; backward is twice that")
      ->transform(times())
      ->type_name("TIME")
      ->capture_default_str();
  verb.add_option("--intra-gbs", job.intra.gbs, "Bandwidth inside a host, GB/s")
      ->capture_default_str();
  verb.add_option("--intra-alpha", job.intra.alpha_ns, "Latency of an operation inside a host")
      ->transform(times())
      ->type_name("TIME")
      ->capture_default_str();
  verb.add_option("--inter-gbs", job.inter.gbs, "Bandwidth between hosts, GB/s")
      ->capture_default_str();
  verb.add_option("--inter-alpha", job.inter.alpha_ns, "Latency of an operation between hosts")
      ->transform(times())
      ->type_name("TIME")
      ->capture_default_str();
  verb.add_option("--noise", job.noise, "Relative standard deviation of every duration")
      ->capture_default_str();
  verb.add_option("--jitter", job.noise, "The same as --noise")->capture_default_str();
  verb.add_option("--seed", job.seed, "Same seed, same bytes")->capture_default_str();
  verb.add_option("--first-step", job.first_step, "Number of the first ProfilerStep")
      ->capture_default_str();
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
      ->check(CLI::NonNegativeNumber)
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  verb.add_option("--bucket", question.bucket,
                  "Data-parallel all-reduces merged until they hold so much, such as 25MB")
      ->type_name("SIZE")
      ->transform(sizes());
  verb.add_flag("--perfect-overlap", question.perfect_overlap,
                "Nothing waits for communication, its bytes are still moved: a bound");
  verb.add_flag("--no-host-delay", question.no_host_delay, "Every launch comes in time");
}

// Adds a repeatable option whose words are read by `parse`.
void add_fault(CLI::App& verb, simulate::Faults& faults, const std::string& name,
               simulate::Fault (*parse)(std::string_view), const std::string& words,
               const std::string& help) {
  verb.add_option_function<std::vector<std::string>>(
          name,
          [&faults, parse](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) faults.list.push_back(parse(text));
          },
          help + "; repeatable")
      ->type_name(words)
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

void add_machine_faults(CLI::App& verb, simulate::Faults& faults) {
  add_fault(verb, faults, "--slow", simulate::parse_slow, "RANK:FACTOR[@STEPS]",
            "Fault: a rank's compute kernels take FACTOR times as long, such as 3:1.3@12..14");
  add_fault(verb, faults, "--late", simulate::parse_late, "RANK:US[@STEPS]",
            "Fault: a rank's host thread loses so many microseconds in each step");
  add_fault(verb, faults, "--slow-link", simulate::parse_slow_link, "A-B:FACTOR[@STEPS]",
            "Fault: what passes between two ranks takes FACTOR times as long");
  add_fault(verb, faults, "--unequal", simulate::parse_unequal, "RANK:FACTOR[@STEPS]",
            "Fault: a rank's experts are FACTOR times as popular (with --moe)");
  verb.add_option_function<std::string>(
          "--end-jitter",
          [&faults](const std::string& text) {
            faults.end_jitter_ns = simulate::parse_microseconds("--end-jitter", text);
          },
          "Members leave a communication up to so many microseconds after the first")
      ->type_name("US");
}

void add_recording_faults(CLI::App& verb, simulate::Scenario& scenario) {
  simulate::Faults& faults = scenario.faults;
  simulate::RecordOptions& record = scenario.record;
  add_fault(verb, faults, "--clock", simulate::parse_clock, "HOST:US[,PPM]",
            "Fault: the clock of the n-th host (from 0) is ahead, and runs fast");
  add_fault(verb, faults, "--lose", simulate::parse_lose, "RANK:N[@WHERE]",
            "Fault: N GPU events are not in the trace; @start, @end: all up to the N-th "
            "communication, or from the N-th last; @random");
  add_fault(verb, faults, "--window-shift", simulate::parse_window_shift, "RANK:US",
            "Fault: a rank's trace holds only what begins so many microseconds in");
  add_fault(verb, faults, "--missing", simulate::parse_missing, "RANK",
            "Fault: a rank has no trace");
  verb.add_flag_callback(
      "--hosts-unknown", [&record] { record.hosts = false; },
      "Fault: nothing says which ranks share a host");
  verb.add_option_function<std::string>(
          "--seq", [&record](const std::string& text) { record.seq = simulate::parse_seq(text); },
          "Numbers of operations: group; wrong (one counter for all groups) or none")
      ->type_name("NAME");
  verb.add_option_function<std::string>(
          "--metadata",
          [&record](const std::string& text) { record.metadata = simulate::parse_metadata(text); },
          "What traces say of collectives: full; none (as old PyTorch)")
      ->type_name("NAME");
  verb.add_option_function<std::string>(
          "--sync-records",
          [&record](const std::string& text) {
            record.sync_records = simulate::parse_sync_records(text);
          },
          "What traces say of streams and hosts that wait: full; none (as most real traces)")
      ->type_name("NAME");
}

std::unique_ptr<CLI::App> make_app(Arguments& arguments, RawTexts& raw) {
  auto app = std::make_unique<CLI::App>(
      "Where communication time goes in multi-GPU training and serving", "commlens");
  app->require_subcommand(1);
  app->get_formatter()->label("SUBCOMMAND", "VERB");
  app->get_formatter()->label("Subcommands", "Verbs");
  app->set_version_flag("--version", std::string("commlens ") + COMMLENS_VERSION);
  app->footer(
      "Exit codes: 0 done, 1 a gate or diagnose found what it was asked to find, 2 wrong usage, 3 "
      "an input could not be used, 4 internal error.");
  for (const Command* command : commands()) {
    CLI::App* verb = app->add_subcommand(std::string(command->name), std::string(command->summary));
    verb->footer("Example:\n  " + std::string(command->example));
    if (command->name == "analyze" || command->name == "timeline" || command->name == "whatif") {
      add_study_options(*verb, arguments.study, raw);
      add_output_options(*verb, arguments.output, command->name != "timeline");
      if (command->name == "whatif") add_question_options(*verb, raw.question);
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
            ->check(CLI::NonNegativeNumber);
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
      add_machine_faults(*verb, arguments.scenario.faults);
      add_recording_faults(*verb, arguments.scenario);
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

std::string option_names(const CLI::Option& option, std::string_view between) {
  std::string names;
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "" : std::string(between)) + "-" + name;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : std::string(between)) + "--" + name;
  return names;
}

std::string bash_script(const CLI::App& app) {
  std::string cases;
  std::string verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs += (verbs.empty() ? "" : " ") + verb->get_name();
    std::string words;
    for (const CLI::Option* option : verb->get_options()) words += option_names(*option, " ") + " ";
    cases += "    " + verb->get_name() + ") words=\"" + words + "\" ;;\n";
  }
  return "# bash completion for commlens\n_commlens() {\n  local "
         "word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         verbs +
         " --help --version\" -- \"$word\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "  esac\n  if [[ \"$word\" == -* ]]; then\n    COMPREPLY=($(compgen -W \"$words\" -- "
         "\"$word\"))\n  else\n    COMPREPLY=($(compgen -f -- \"$word\"))\n  fi\n}\ncomplete -o "
         "filenames -F _commlens commlens\n";
}

std::string zsh_script(const CLI::App& app) {
  return "#compdef commlens\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string script = "# fish completion for commlens\n";
  for (const CLI::App* verb : app.get_subcommands({})) {
    script += "complete -c commlens -n __fish_use_subcommand -f -a " + verb->get_name() + " -d " +
              fish_quoted(verb->get_description()) + "\n";
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_positional()) continue;
      script += "complete -c commlens -n '__fish_seen_subcommand_from " + verb->get_name() + "'";
      for (const std::string& name : option->get_snames()) script += " -s " + name;
      for (const std::string& name : option->get_lnames()) script += " -l " + name;
      script += " -d " + fish_quoted(option->get_description()) + "\n";
    }
  }
  return script;
}

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
  return out;
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

std::string completion_script(const std::string& shell) {
  require_name("shell", shell, {"bash", "zsh", "fish"});
  Arguments arguments;
  RawTexts raw;
  const auto app = make_app(arguments, raw);
  return shell == "bash"  ? bash_script(*app)
         : shell == "zsh" ? zsh_script(*app)
                          : fish_script(*app);
}

std::string man_page() {
  Arguments arguments;
  RawTexts raw;
  const auto app = make_app(arguments, raw);
  std::string page = ".TH COMMLENS 1 \"\" \"commlens " COMMLENS_VERSION
                     "\" \"User Commands\"\n.SH NAME\ncommlens \\- " +
                     roff(app->get_description()) +
                     "\n.SH SYNOPSIS\n.B commlens\n.I VERB\n[options] PATH...\n.SH VERBS\n";
  for (const CLI::App* verb : app->get_subcommands({})) {
    page += ".SS " + verb->get_name() + "\n" + roff(verb->get_description()) + "\n";
    for (const CLI::Option* option : verb->get_options()) {
      const std::string names =
          option->get_positional() ? option->get_name(true, true) : option_names(*option, ", ");
      page += ".TP\n.B " + roff(names) +
              (option->get_positional() || option->get_type_size() == 0
                   ? ""
                   : " " + roff(option->get_type_name())) +
              "\n" + roff(option->get_description()) + "\n";
    }
    page += ".PP\nExample:\n.PP\n.nf\n.RS\n" + roff(find_command(verb->get_name())->example) +
            "\n.RE\n.fi\n";
  }
  return page + ".SH EXIT STATUS\n" + roff(app->get_footer()) + "\n";
}

}  // namespace commlens::cli
