#include "study/study.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "advice/advice.h"
#include "analysis/analysis.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/perf.h"
#include "ingest/load.h"
#include "ingest/load_witness.h"
#include "ingest/nccl_tests.h"
#include "match/classify.h"
#include "match/clocks.h"
#include "match/collectives.h"
#include "match/dependencies.h"
#include "match/exposure.h"
#include "match/group_roles.h"
#include "match/joined.h"
#include "match/ledger.h"
#include "match/measured_match.h"
#include "match/merge.h"
#include "match/own_time.h"
#include "match/runs.h"
#include "match/stragglers.h"
#include "match/trail.h"
#include "match/transfer_fits.h"
#include "match/waiting.h"
#include "match/windows.h"
#include "model/kernel_name.h"
#include "model/rank_list.h"
#include "replay/common_time.h"
#include "replay/critical_path.h"
#include "replay/graph.h"
#include "replay/what_if.h"
#include "report/chrome_timeline.h"
#include "report/prediction.h"
#include "report/writer.h"
#include "study/catalog.h"
#include "study/contexts.h"
#include "study/hosts.h"

namespace commlens {
namespace {

unsigned threads_for(const StudyOptions& options) {
  return options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
}

RankFrom rank_source(const StudyOptions& options) {
  if (options.rank_from == "file") return RankFrom::file;
  if (options.rank_from == "name") return RankFrom::name;
  return options.rank_from == "order" ? RankFrom::order : RankFrom::automatic;
}

std::vector<NameRule> read_rules(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error))
    throw Error(ErrorKind::usage, path + ": the rules file cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_name_rules(text, path);
}

RateOptions rate_options(const StudyOptions& options) {
  RateOptions rates;
  for (const std::string& text : options.peaks) {
    const std::vector<PeakRate> more = parse_peaks(text);
    rates.peaks.insert(rates.peaks.end(), more.begin(), more.end());
  }
  for (const std::string& word : options.calibrations) {
    const std::vector<CalibrationTable> more = read_nccl_tests(word);
    rates.tables.insert(rates.tables.end(), more.begin(), more.end());
  }
  return rates;
}

WindowOptions window_options(const StudyOptions& options) {
  return {.choice = options.window == "steps" ? WindowChoice::steps : WindowChoice::gpu,
          .steps = options.steps};
}

WiderSets wider_sets(const DeviceTimeline& device, const IntervalSet& host_idle) {
  std::vector<Interval> comm;
  comm.reserve(device.comm.size());
  for (const CommOp& op : device.comm) comm.push_back(op.time);
  return {.compute = device.compute,
          .memory_only = set_difference(set_difference(device.memory, IntervalSet(std::move(comm))),
                                        device.compute),
          .host_idle = host_idle};
}

// Figures of the chosen window and of every chosen step. `host_idle`: by device, when nothing was
// queued.
void compute_figures(RankTimeline& rank, const std::vector<IntervalSet>& host_idle,
                     const WindowOptions& options) {
  for (std::size_t d = 0; d < rank.devices.size(); ++d) {
    DeviceTimeline& device = rank.devices[d];
    const std::optional<Interval> window = chosen_window(device, options);
    WindowFigures figures =
        window_figures(device, window.value_or(Interval{device.extent.start, device.extent.start}));
    device.breakdown = figures.breakdown;
    device.breakdown.host_idle = host_idle[d].overlap(device.breakdown.window);
    device.exposures = std::move(figures.exposures);
    if (options.choice != WindowChoice::gpu || !options.steps.empty())
      device.wider = wider_sets(device, host_idle[d]);
    const ExposureFigures exposure(device);
    for (const auto& [number, range] : device.steps) {
      if (!step_is_chosen(number, options)) continue;
      device.step_figures.push_back(exposure.of(number, range));
      device.step_figures.back().breakdown.host_idle = host_idle[d].overlap(range);
    }
  }
  // A device without any of the chosen steps has no window to speak of.
  std::erase_if(rank.devices, [&options](const DeviceTimeline& device) {
    return !chosen_window(device, options);
  });
}

// Room for the work of all ranks together, in activities: 33 bytes each, and as much again for the
// graph. What does not fit is given up for all, so that the answer does not depend on the order in
// which files are read.
class WorkRoom {
 public:
  // Whether what was taken so far fits, with these.
  bool take(std::size_t activities) { return (taken_ += activities) <= kMost; }
  bool fits() const { return taken_ <= kMost; }

 private:
  static constexpr std::size_t kMost = 6'000'000;
  std::atomic<std::size_t> taken_{0};
};

// What is the same for every rank.
struct Settings {
  unsigned threads = 1;
  std::vector<NameRule> rules;
  WindowOptions windows;
  bool keep_activities = false;
  WorkRoom* room = nullptr;  // none: nobody asks for the critical path
};

template <class Work>
void measured(Stage stage, Work work) {
  const PerfScope perf(stage);
  work();
}

// One rank's recording to communications, windows and figures.
void prepare(RankTimeline& rank, const Settings& settings) {
  // Standard input cannot be read again, should its recording be a piece of another.
  const bool keep = settings.keep_activities || rank.recording.path == "-";
  measured(Stage::classify, [&] { classify(rank, settings.rules, keep); });
  measured(Stage::windows, [&] { find_step_windows(rank); });
  std::vector<IntervalSet> host_idle;
  measured(Stage::own_times, [&] { host_idle = find_own_times(rank); });
  measured(Stage::figures, [&] { compute_figures(rank, host_idle, settings.windows); });
  if (settings.room != nullptr && settings.room->take(rank.recording.gpu.size()))
    measured(Stage::dependencies, [&] { find_dependencies(rank); });
  rank.ready = true;
  if (!keep) let_go_of_columns(rank);
}

// One input and what became of it.
struct ReadInput {
  LoadedInput input;               // without its recording
  RankTimeline rank;               // of a usable one
  std::optional<Witness> witness;  // of what is no timeline, and tells of the same job
};

std::vector<ReadInput> read_inputs(const StudyOptions& options, const Settings& settings) {
  const std::vector<FoundInput> found = split_into_recordings(find_inputs(options.paths));
  std::vector<ReadInput> inputs(found.size());
  const LoadOptions how{
      .input_format = options.input_format, .jobs = settings.threads, .progress = options.progress};
  load(found, how, [&](std::size_t i, LoadedInput&& input) {
    inputs[i].rank.recording = std::move(input.recording);
    inputs[i].input = std::move(input);
    if (inputs[i].input.usable && !inputs[i].input.is_measured) prepare(inputs[i].rank, settings);
  });
  return inputs;
}

// Logs and dumps beside timelines. Alone they are no input of an analysis.
void read_witnesses(std::vector<ReadInput>& inputs, const StudyOptions& options, unsigned threads) {
  const bool timelines = std::any_of(inputs.begin(), inputs.end(), [](const ReadInput& read) {
    return read.input.usable && !read.input.is_measured;
  });
  if (!timelines || !options.input_format.empty()) return;
  std::vector<FoundInput> found;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const LoadedInput& input = inputs[i].input;
    // Standard input cannot be read a second time.
    if (input.usable || input.expected || !input.format.empty() || input.path == "-") continue;
    found.push_back({input.path, !input.skipped});
    rows.push_back(i);
  }
  std::vector<LoadedWitness> loaded =
      load_witnesses(found, {.input_format = {}, .jobs = threads, .progress = {}});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (loaded[i].usable) inputs[rows[i]].witness = std::move(loaded[i].witness);
  }
}

InputReport report_witness(const Witness& witness) {
  InputReport report{.path = witness.path,
                     .format = std::string(witness.format),
                     .rank = {},
                     .bytes = {},
                     .events = witness.records,
                     .notes = witness.notes};
  if (witness.rank >= 0) report.rank = witness.rank;
  if (witness.stored_bytes >= 0) report.bytes = witness.stored_bytes;
  return report;
}

Recording read_again(const std::string& path, const StudyOptions& options) {
  std::vector<LoadedInput> inputs =
      load({{path, true}}, {.input_format = options.input_format, .jobs = 1, .progress = {}});
  if (!inputs.front().usable)
    throw Error(ErrorKind::input, path + ": changed while it was analysed; run again");
  return std::move(inputs.front().recording);
}

// What the inputs hold.
struct UsableInputs {
  std::vector<RankTimeline> ranks;
  MeasuredJob measured;
  bool empty() const { return ranks.empty() && measured.empty(); }
};

// Names every input in the report; hands over what could be used.
UsableInputs report_inputs(std::vector<ReadInput>& inputs, Study& study) {
  UsableInputs usable;
  for (auto& [input, rank, witness] : inputs) {
    if (witness) {
      study.report.inputs.push_back(report_witness(*witness));
      continue;
    }
    if (input.skipped) {
      if (!input.expected) study.report.notes.add(Note::skipped_file, input.path);
      continue;
    }
    InputReport report{
        .path = input.path,
        .format = input.format,
        .rank = {},
        .bytes = input.stored_bytes >= 0 ? std::optional(input.stored_bytes) : std::nullopt,
        .events = rank.recording.events,
        .notes = {}};
    if (input.usable && input.is_measured) {
      report.events = input.measured.records;
      if (input.measured.rank >= 0) report.rank = input.measured.rank;
      usable.measured.files.push_back(std::move(input.measured));
    } else if (input.usable) {
      report.notes = rank.recording.notes;
      usable.ranks.push_back(std::move(rank));
    } else {
      report.notes.add(Note::unusable_input, input.trouble);
      study.troubles.push_back(input.trouble);
      study.any_input_unusable = true;
    }
    study.report.inputs.push_back(std::move(report));
  }
  return usable;
}

// What logs and dumps say of the operations, and why not where they do not.
void join(std::vector<ReadInput>& inputs, Job& job) {
  std::vector<Witness> witnesses;
  for (ReadInput& read : inputs) {
    if (read.witness) witnesses.push_back(std::move(*read.witness));
  }
  if (job.ranks.empty() || (witnesses.empty() && job.measured.empty())) return;
  job.joined = join_witnesses(job, witnesses, job.measured.files);
  for (const JoinedInput& input : job.joined.inputs) {
    if (!input.reason.empty()) job.notes.add(Note::not_joined, input.path + ": " + input.reason);
  }
  for (const JoinedRow& row : job.joined.rows) {
    if (row.confidence == Confidence::undecidable)
      job.notes.add(Note::not_joined, row.group + ": " + row.reason, row.count);
  }
}

// What to say when nothing at all could be used.
Error nothing_usable(const Study& study, const StudyOptions& options) {
  std::string message;
  if (study.troubles.size() == 1) message = study.troubles.front();
  if (study.troubles.size() > 1) {
    message = "no input could be used";
    for (const std::string& trouble : study.troubles) message += "\n  " + trouble;
  }
  if (study.troubles.empty()) {
    for (const std::string& path : options.paths) message += (message.empty() ? "" : ", ") + path;
    message += ": holds nothing that can be read; `commlens formats` lists what can";
  }
  return {ErrorKind::input, message};
}

void keep_chosen_ranks(Job& job, const std::vector<std::int64_t>& chosen) {
  if (chosen.empty()) return;
  for (const std::int64_t rank : chosen) {
    const auto found = std::find_if(job.ranks.begin(), job.ranks.end(),
                                    [rank](const RankTimeline& row) { return row.rank == rank; });
    if (found == job.ranks.end())
      throw Error(ErrorKind::usage,
                  "--ranks: there is no rank " + std::to_string(rank) + " in these inputs");
  }
  std::erase_if(job.ranks, [&chosen](const RankTimeline& row) {
    return !std::binary_search(chosen.begin(), chosen.end(), row.rank);
  });
}

// Every step asked for must be there: a figure over fewer would bear the wrong name.
void check_steps(const Job& job, const StudyOptions& options) {
  if (options.steps.empty() && options.window == "gpu") return;
  std::set<std::int64_t> held;
  std::set<std::int64_t> with_window;
  for (const RankTimeline& rank : job.ranks) {
    for (const StepRange& step : rank.recording.steps) held.insert(step.number);
    for (const DeviceTimeline& device : rank.devices) {
      for (const auto& [number, window] : device.steps) with_window.insert(number);
    }
  }
  if (held.empty()) {
    throw Error(ErrorKind::usage,
                "--steps, --window steps: these inputs hold no ProfilerStep ranges; call "
                "profiler.step() each iteration");
  }
  for (const std::int64_t step : options.steps) {
    if (held.contains(step)) continue;
    const std::vector<std::int64_t> numbers(held.begin(), held.end());
    throw Error(ErrorKind::usage, "--steps: there is no step " + std::to_string(step) +
                                      " in these inputs, which hold " + format_ranks(numbers));
  }
  const bool any = std::any_of(options.steps.begin(), options.steps.end(),
                               [&](std::int64_t step) { return with_window.contains(step); });
  if (!options.steps.empty() && !any)
    throw Error(ErrorKind::usage, "--steps: these steps launched no GPU work in these inputs");
}

// What the ranks did together: which operations are one, how their clocks relate, who waited for
// whom, who is behind it.
void relate_ranks(Job& job, unsigned threads) {
  if (!has_several_ranks(job)) {
    if (has_timelines(job)) job.notes.add(Note::one_rank);
    return;
  }
  job.matching = match_collectives(job);
  job.clocks = relate_clocks(job);
  if (!job.clocks.infeasible.empty()) job.notes.add(Note::clocks_contradict, job.clocks.infeasible);
  if (!job.clocks.known) job.notes.add(Note::clocks_unrelated);
  job.waits = find_waits(job, threads);
  job.transfer_fits = find_transfer_fits(job);
  job.stragglers = find_stragglers(job);
  if (job.waits.known && !job.stragglers.known)
    job.notes.add(Note::stragglers_undecidable,
                  job.stragglers.remarks.empty() ? "" : job.stragglers.remarks.front());
}

// What the job's time consists of: the graph of what waited for what, and the longest way through
// it, and what is to be said of that. The answer to the question, if any is asked.
std::optional<Prediction> follow_path(Job& job, const WorkRoom& room, unsigned threads,
                                      const StudyOptions& options) {
  if (job.ranks.empty()) {
    job.path.missing = "no input is a timeline";
    return std::nullopt;
  }
  if (!room.fits()) {
    for (RankTimeline& rank : job.ranks) rank.work = {};
    job.path.missing =
        "there are too many GPU activities for one graph; give the files of fewer ranks";
    return std::nullopt;
  }
  if (has_several_ranks(job) && !job.clocks.known) {
    job.path.missing = "nothing relates the clocks of these ranks";
    return std::nullopt;
  }
  // Another run of the same rank was at another time.
  for (RankTimeline& rank : job.ranks) {
    if (rank.run > 0) rank.work = {};
  }
  place_on_common_time(job);
  const Graph graph(job);
  job.path = find_critical_path(graph);
  if (options.context != "never" && !options.question && job.path.known)
    measured(Stage::contexts,
             [&] { find_path_contexts(job, options.context == "always", threads); });
  if (!job.path.known) return std::nullopt;
  if (!options.question) {
    measured(Stage::advice, [&] { job.findings = find_advice(graph, threads); });
    return std::nullopt;
  }
  Prediction prediction = predict(graph, *options.question);
  // What makes the path doubtful makes every replay of it so.
  if (!job.path.sure) {
    prediction.confidence = Confidence::undecidable;
    prediction.remarks.push_back(job.path.doubt);
  }
  return prediction;
}

// By row: what brings a rank's time of day to the reference's clock, as far as that is known. Of a
// clock that drifts, what does so at its first instant.
std::vector<Ns> clock_offsets(const Job& job) {
  if (!job.clocks.known) return {};
  const auto gap = [&job](std::size_t row) {
    const auto& devices = job.ranks[row].devices;
    const Ns own = devices.empty() ? 0 : devices.front().extent.start;
    return job.clocks.common(row, own) - own - job.ranks[row].recording.clock_base;
  };
  std::vector<Ns> offsets;
  for (std::size_t row = 0; row < job.ranks.size(); ++row)
    offsets.push_back(gap(row) - gap(job.clocks.reference));
  return offsets;
}

// The trails of the rank that --explain names.
void explain_chosen_rank(Job& job, std::optional<std::int64_t> chosen) {
  if (!chosen) return;
  const auto row = std::find_if(job.ranks.begin(), job.ranks.end(), [&](const RankTimeline& rank) {
    return rank.rank == *chosen && rank.run == 0;
  });
  if (row == job.ranks.end())
    throw Error(ErrorKind::usage,
                "--explain: there is no rank " + std::to_string(*chosen) + " in these inputs");
  constexpr std::size_t kMostTrails = 5;
  job.trails = trails_of(job, static_cast<std::size_t>(row - job.ranks.begin()), kMostTrails);
}

JobReport report_job(const Job& job) {
  JobReport report{.ranks = {},
                   .missing_ranks = job.missing_ranks,
                   .world_size = job.world_size,
                   .backend = {},
                   .nccl_version = {},
                   .hosts = {},
                   .hosts_from = job.hosts_from,
                   .steps = {}};
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> steps;
  std::set<std::string> hosts;
  for (const RankTimeline& rank : job.ranks) {
    ranks.insert(rank.rank);
    if (!rank.host.empty()) hosts.insert(rank.host);
    if (report.backend.empty()) report.backend = rank.recording.backend;
    if (report.nccl_version.empty()) report.nccl_version = rank.recording.nccl_version;
    for (const DeviceTimeline& device : rank.devices) {
      for (const StepFigures& step : device.step_figures) steps.insert(step.number);
    }
  }
  if (only_measured(job)) {
    const MeasuredWaits& waits = job.measured.waits;
    ranks.insert(waits.global.begin(), waits.global.end());
    for (const Measured& file : job.measured.files) {
      if (!file.host.empty()) hosts.insert(file.host);
      report.world_size = std::max(report.world_size, file.world_size);
    }
    report.world_size = std::max(report.world_size, waits.world_size);
    if (!hosts.empty()) report.hosts_from = "trace";
  }
  report.ranks.assign(ranks.begin(), ranks.end());
  report.steps.assign(steps.begin(), steps.end());
  report.hosts.assign(hosts.begin(), hosts.end());
  report.all_hosts_known = !job.ranks.empty() &&
                           std::all_of(job.ranks.begin(), job.ranks.end(),
                                       [](const RankTimeline& rank) { return !rank.host.empty(); });
  return report;
}

// What matching found belongs to the input that it was found in.
void report_rank_notes(Study& study) {
  std::map<std::string_view, InputReport*> by_path;
  for (InputReport& input : study.report.inputs) by_path[input.path] = &input;
  for (const auto& [path, rank] : study.job.rank_of_path) by_path.at(path)->rank = rank;
  for (const auto& [path, notes] : study.job.notes_of_pieces) by_path.at(path)->notes = notes;
  for (const RankTimeline& rank : study.job.ranks) {
    InputReport& input = *by_path.at(rank.recording.path);
    input.notes = rank.recording.notes;
    input.notes.merge(rank.notes);
  }
  for (const Measured& file : study.job.measured.files) by_path.at(file.path)->notes = file.notes;
}

// Each list of keys becomes a table with a column for each, and names must differ.
void check_slices(const std::vector<std::vector<std::string>>& slices) {
  std::set<std::vector<std::string>> lists;
  for (const auto& slice : slices) {
    std::set<std::string> keys;
    for (const std::string& key : slice) {
      require_name("--by", key, list_slice_keys());
      if (!keys.insert(key).second)
        throw Error(ErrorKind::usage, "--by: \"" + key + "\" stands twice");
    }
    if (!lists.insert(slice).second)
      throw Error(ErrorKind::usage, "--by: the same keys are given twice");
  }
}

}  // namespace

void check_options(const StudyOptions& options) {
  if (!options.input_format.empty())
    require_name("--input-format", options.input_format, names_of(list_analyzed_formats()));
  if (!options.rank_from.empty())
    require_name("--rank-from", options.rank_from, {"file", "name", "order"});
  require_name("--window", options.window, {"gpu", "steps"});
  require_name("--context", options.context, {"auto", "always", "never"});
  if (!options.steps.empty() && options.steps.back() - options.steps.front() + 1 !=
                                    static_cast<std::int64_t>(options.steps.size())) {
    throw Error(ErrorKind::usage,
                "--steps: one window is one stretch of steps, without gaps; ask for each stretch "
                "by itself");
  }
  check_slices(options.by);
  if (!options.hosts.empty()) parse_hosts(options.hosts);
  read_rules(options.rules_file);
  rate_options(options);
}

Study run_study(const StudyOptions& options) {
  const PerfScope perf(Stage::total);
  Study study;
  WorkRoom room;
  const Settings settings{.threads = threads_for(options),
                          .rules = read_rules(options.rules_file),
                          .windows = window_options(options),
                          .keep_activities = options.keep_activities,
                          .room = options.follow_path ? &room : nullptr};
  const RateOptions rates = rate_options(options);
  study.whole_window =
      settings.windows.choice == WindowChoice::gpu && settings.windows.steps.empty();

  // Bytes to recordings to figures, every file by itself.
  std::vector<ReadInput> read = read_inputs(options, settings);
  read_witnesses(read, options, settings.threads);
  UsableInputs inputs = report_inputs(read, study);
  if (inputs.empty()) throw nothing_usable(study, options);

  // Which is which rank, and which are pieces of one; from here on the set of ranks is fixed.
  measured(Stage::arrange, [&] {
    study.job = arrange_runs(
        std::move(inputs.ranks),
        {.rank_from = rank_source(options),
         .host_of = options.hosts.empty() ? nullptr : parse_hosts(options.hosts),
         .read_again = [&options](const std::string& path) { return read_again(path, options); }});
  });
  const bool hosts_from_option = study.job.hosts_from.find("--hosts") != std::string::npos;
  if (!options.hosts.empty() && !hosts_from_option)
    throw Error(ErrorKind::usage,
                "--hosts: \"" + options.hosts + "\" gives none of these ranks a host");
  keep_chosen_ranks(study.job, options.ranks);

  // The figures of those that were put together only now.
  for_each_parallel(study.job.ranks.size(), settings.threads, [&](std::size_t i) {
    if (!study.job.ranks[i].ready) prepare(study.job.ranks[i], settings);
  });
  check_steps(study.job, options);

  study.job.measured = std::move(inputs.measured);
  assign_group_roles(study.job);
  measured(Stage::relate, [&] {
    match_measured(study.job.measured);
    relate_ranks(study.job, settings.threads);
    study.job.ledger = find_ledger(study.job, rates);
    join(read, study.job);
  });
  if (options.follow_path)
    measured(Stage::path,
             [&] { study.prediction = follow_path(study.job, room, settings.threads, options); });
  if (study.job.ranks.empty()) study.job.notes.add(Note::no_timeline);
  if (options.follow_path && !study.job.path.known)
    study.job.notes.add(Note::no_critical_path, study.job.path.missing);
  explain_chosen_rank(study.job, options.explain);

  // Figures to results. Nothing of the job changes from here on.
  measured(Stage::analyses, [&] {
    for (const Analysis* analysis : analyses())
      study.report.results.push_back(
          analysis->run(study.job, {.by = options.by, .explain = options.explain}));
  });
  study.report.job = report_job(study.job);
  study.report.notes.merge(study.job.notes);
  report_rank_notes(study);
  return study;
}

void render_prediction(const Study& study, std::string_view format, Sink& sink) {
  if (!study.prediction)
    throw Error(ErrorKind::input, "these inputs cannot be replayed: " + study.job.path.missing);
  const PerfScope perf(Stage::output);
  write_prediction(*study.prediction, format, sink);
}

void render_timeline(const Study& study, Sink& sink) {
  if (study.job.ranks.empty())
    throw Error(ErrorKind::input,
                "none of these inputs is a timeline: `commlens analyze` says what they tell");
  const PerfScope perf(Stage::output);
  write_chrome_timeline(
      study.job, {.clip_to_window = !study.whole_window, .clock_offsets = clock_offsets(study.job)},
      sink);
}

void render(const Study& study, std::string_view writer, bool color, Sink& sink) {
  const PerfScope perf(Stage::output);
  find_writer(writer)->write(study.report, {.color = color}, sink);
}

}  // namespace commlens
