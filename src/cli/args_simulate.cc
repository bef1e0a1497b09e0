// What `commlens simulate` can be asked for.
#include "cli/args_simulate.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <sstream>

#include "simulate/fault_words.h"

namespace commlens::cli {
namespace {

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

void add_job_options(CLI::App& verb, simulate::JobSpec& job) {
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

}  // namespace

void take_size(CLI::Option& option) { option.transform(sizes())->type_name("SIZE"); }

void add_simulate_options(CLI::App& verb, Arguments& arguments) {
  verb.add_option("-o,--output", arguments.output.path,
                  "Folder to write rank-*.json and truth.json into")
      ->required()
      ->type_name("DIR");
  verb.add_flag("--quiet", arguments.output.quiet, "Say nothing");
  add_job_options(verb, arguments.scenario.spec);
  add_machine_faults(verb, arguments.scenario.faults);
  add_recording_faults(verb, arguments.scenario);
}

}  // namespace commlens::cli
