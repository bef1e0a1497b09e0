#include "study/inputs.h"

#include <algorithm>

#include "ingest/load_witness.h"
#include "match/joined.h"

namespace commlens {
namespace {

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

}  // namespace

std::vector<ReadInput> read_inputs(const StudyOptions& options, const Settings& settings) {
  const std::vector<FoundInput> found = split_into_recordings(find_inputs(options.paths));
  std::vector<ReadInput> inputs(found.size());
  const LoadOptions how{
      .input_format = options.input_format, .jobs = settings.threads, .progress = options.progress};
  const auto files = static_cast<unsigned>(std::max<std::size_t>(1, found.size()));
  const unsigned threads_each = std::max(1U, settings.threads / files);
  load(found, how, [&](std::size_t i, LoadedInput&& input) {
    inputs[i].rank.recording = std::move(input.recording);
    inputs[i].input = std::move(input);
    if (inputs[i].input.usable && !inputs[i].input.is_measured)
      prepare(inputs[i].rank, settings, threads_each);
  });
  return inputs;
}

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

Recording read_again(const std::string& path, const StudyOptions& options) {
  std::vector<LoadedInput> inputs =
      load({{path, true}}, {.input_format = options.input_format, .jobs = 1, .progress = {}});
  if (!inputs.front().usable)
    throw Error(ErrorKind::input, path + ": changed while it was analysed; run again");
  return std::move(inputs.front().recording);
}

UsableInputs report_inputs(std::vector<ReadInput>& inputs, Study& study) {
  UsableInputs usable;
  for (auto& [input, rank, witness] : inputs) {
    if (witness) {
      study.report.inputs.push_back(report_witness(*witness));
      continue;
    }
    study.any_for_diagnose = study.any_for_diagnose || input.for_diagnose;
    if (input.skipped) {
      const Note why = input.for_diagnose ? Note::left_to_diagnose : Note::skipped_file;
      if (!input.expected) study.report.notes.add(why, input.path);
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

void join_inputs(std::vector<ReadInput>& inputs, Job& job) {
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

Error nothing_usable(const Study& study, const StudyOptions& options) {
  std::string message;
  if (study.troubles.size() == 1) message = study.troubles.front();
  if (study.troubles.size() > 1) {
    message = "no input could be used";
    for (const std::string& trouble : study.troubles) message += "\n  " + trouble;
  }
  if (study.troubles.empty()) {
    for (const std::string& path : options.paths) message += (message.empty() ? "" : ", ") + path;
    message += study.any_for_diagnose
                   ? ": holds logs or dumps and nothing that tells how long communication took; "
                     "`commlens diagnose` reads them"
                   : ": holds nothing that can be read; `commlens formats` lists what can";
  }
  return {ErrorKind::input, message};
}

}  // namespace commlens
