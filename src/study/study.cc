#include "study/study.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/analysis.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/perf.h"
#include "match/group_roles.h"
#include "match/ledger.h"
#include "match/measured_match.h"
#include "match/runs.h"
#include "report/prediction.h"
#include "report/timeline.h"
#include "report/writer.h"
#include "study/catalog.h"
#include "study/hosts.h"
#include "study/inputs.h"
#include "study/options.h"
#include "study/prepare.h"
#include "study/relate.h"

namespace commlens {
namespace {

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

}  // namespace

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
  timed(Stage::arrange, [&] {
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
    if (!study.job.ranks[i].ready) prepare(study.job.ranks[i], settings, 1);
  });
  check_steps(study.job, options);

  study.job.measured = std::move(inputs.measured);
  assign_group_roles(study.job);
  timed(Stage::relate, [&] {
    match_measured(study.job.measured);
    relate_ranks(study.job, settings.threads);
    study.job.ledger = find_ledger(study.job, rates);
    join_inputs(read, study.job);
  });
  if (options.follow_path)
    timed(Stage::path,
          [&] { study.prediction = follow_path(study.job, room, settings.threads, options); });
  if (study.job.ranks.empty()) study.job.notes.add(Note::no_timeline);
  if (options.follow_path && !study.job.path.known)
    study.job.notes.add(Note::no_critical_path, study.job.path.missing);
  explain_chosen_rank(study.job, options.explain);

  // Figures to results. Nothing of the job changes from here on.
  timed(Stage::analyses, [&] {
    study.report.results.resize(analyses().size());
    for_each_parallel(analyses().size(), settings.threads, [&](std::size_t i) {
      study.report.results[i] =
          analyses()[i]->run(study.job, {.by = options.by, .explain = options.explain});
    });
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

void render_timeline(const Study& study, std::string_view format, Sink& sink) {
  if (study.job.ranks.empty())
    throw Error(ErrorKind::input,
                "none of these inputs is a timeline: `commlens analyze` says what they tell");
  const PerfScope perf(Stage::output);
  write_timeline(
      study.job,
      {.format = format == "pftrace" ? TimelineFormat::perfetto : TimelineFormat::chrome_json,
       .clip_to_window = !study.whole_window,
       .clock_offsets = clock_offsets(study.job)},
      sink);
}

void render(const Study& study, std::string_view writer, bool color, Sink& sink) {
  const PerfScope perf(Stage::output);
  find_writer(writer)->write(study.report, {.color = color}, sink);
}

}  // namespace commlens
