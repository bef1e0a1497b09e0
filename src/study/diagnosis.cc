#include "study/diagnosis.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/perf.h"
#include "diagnose/joint_calls.h"
#include "diagnose/log_duplicates.h"
#include "diagnose/log_summary.h"
#include "diagnose/order.h"
#include "diagnose/ras_open.h"
#include "diagnose/remarks.h"
#include "diagnose/verdict.h"
#include "ingest/load_witness.h"
#include "match/classify.h"
#include "match/trace_witness.h"
#include "model/witness_log.h"
#include "model/witness_trace.h"
#include "report/diagnosis.h"
#include "study/catalog.h"

namespace commlens {
namespace {

// A log in which some line is NCCL's and none tells of a communicator, a call or a fault: tables of
// benchmarks are printed between such lines.
bool tells_of_no_call(const Witness& witness) {
  if (witness.log == nullptr) return false;
  const LogFacts& log = *witness.log;
  const auto is_row = [](const LogEvent& event) { return event.kind == LogEventKind::result_row; };
  return log.comms.empty() && log.calls.empty() && log.channels.empty() && log.interfaces.empty() &&
         std::all_of(log.events.begin(), log.events.end(), is_row) && log.settings.empty() &&
         log.watchdog.empty() && log.desync.empty() && log.timings.empty() &&
         witness.contradictions.empty();
}

// Timelines among the inputs: what they tell of how far each rank got.
void read_timelines(const std::vector<FoundInput>& found, const DiagnoseOptions& options,
                    unsigned threads, std::vector<LoadedWitness>& loaded) {
  if (!options.input_format.empty()) return;
  std::vector<FoundInput> rest;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < found.size(); ++i) {
    // Standard input cannot be read a second time.
    const bool is_read =
        loaded[i].usable ? !tells_of_no_call(loaded[i].witness) : !loaded[i].witness.format.empty();
    if (is_read || found[i].path == "-") continue;
    rest.push_back(found[i]);
    rows.push_back(i);
  }
  const LoadOptions how{.input_format = {}, .jobs = threads, .progress = {}};
  load(rest, how, [&](std::size_t i, LoadedInput&& input) {
    const bool is_log = loaded[rows[i]].usable;
    if (is_log && (!input.usable || !input.is_measured)) return;
    if (!input.usable) {
      // A format that is known and whose file could not be used at all says more than that it is of
      // none.
      if (!input.format.empty()) loaded[rows[i]].trouble = input.trouble;
      return;
    }
    if (input.is_measured) {
      if (is_log) {
        LoadedWitness unused;
        unused.skipped = !rest[i].named;
        unused.witness.path = input.path;
        loaded[rows[i]] = std::move(unused);
      }
      loaded[rows[i]].measured = input.format;
      loaded[rows[i]].trouble =
          input.path + ": is of format " + input.format +
          ", which tells only of calls that ended; `commlens analyze` reads it";
      return;
    }
    RankTimeline rank;
    rank.recording = std::move(input.recording);
    classify(rank, {});
    LoadedWitness& result = loaded[rows[i]];
    result.witness = witness_of_timeline(rank);
    for (const Format* format : formats()) {
      if (format->name == input.format) result.witness.format = format->name;
    }
    result.usable = true;
    result.skipped = false;
  });
}

constexpr std::string_view kEntriesLost =
    ": none of its entries could be used, so that it does not tell what the rank called; see what "
    "wrote the file";

// A dump without its calls: groups and counters of one rank tell nothing by themselves.
bool tells_nothing(const Witness& witness) {
  return witness.rank >= 0 && witness.calls.empty() &&
         (!witness.lists_pending || witness.entries_lost) && witness.log == nullptr &&
         witness.trace == nullptr;
}

// Where nothing else is there, such dumps are of no use.
void refuse_empty(std::vector<LoadedWitness>& loaded) {
  const bool any = std::any_of(loaded.begin(), loaded.end(), [](const LoadedWitness& input) {
    return input.usable && !tells_nothing(input.witness);
  });
  if (any) return;
  for (LoadedWitness& input : loaded) {
    if (!input.usable) continue;
    input.usable = false;
    input.trouble =
        input.witness.path +
        (input.witness.entries_lost
             ? std::string(kEntriesLost)
             : ": holds no entries, and nothing else tells of calls; dump it again with them");
  }
}

// Names every input; hands over those that could be used.
std::vector<Witness> take_usable(std::vector<LoadedWitness> loaded, Diagnosis& diagnosis) {
  refuse_empty(loaded);
  std::vector<Witness> witnesses;
  for (LoadedWitness& input : loaded) {
    Witness& witness = input.witness;
    if (input.skipped) {
      diagnosis.notes.add(Note::skipped_file, witness.path);
      continue;
    }
    InputReport report{.path = witness.path,
                       .format = std::string(witness.format),
                       .rank = {},
                       .bytes = {},
                       .events = witness.records,
                       .notes = witness.notes};
    if (witness.rank >= 0) report.rank = witness.rank;
    if (witness.trace != nullptr && witness.trace->rank >= 0) report.rank = witness.trace->rank;
    if (witness.stored_bytes >= 0) report.bytes = witness.stored_bytes;
    if (input.usable) {
      witnesses.push_back(std::move(witness));
    } else {
      report.notes.add(Note::unusable_input, input.trouble);
      diagnosis.troubles.push_back(input.trouble);
      diagnosis.any_input_unusable = true;
    }
    diagnosis.inputs.push_back(std::move(report));
  }
  return witnesses;
}

// That nothing is wrong is not known of a rank whose calls could not be read. Where others show
// what is wrong, its groups and counters count.
void disown_lost(const std::vector<Witness>& witnesses, Diagnosis& diagnosis) {
  for (const Witness& witness : witnesses) {
    if (!witness.entries_lost) continue;
    const std::string trouble = witness.path + std::string(kEntriesLost);
    for (InputReport& report : diagnosis.inputs) {
      if (report.path == witness.path) report.notes.add(Note::unusable_input, trouble);
    }
    diagnosis.troubles.push_back(trouble);
    diagnosis.any_input_unusable = true;
  }
}

// "2 files that tell only of calls that ended (bench/a.txt is of format nccl_tests)"; empty: none.
std::string measured_words(const std::vector<LoadedWitness>& loaded) {
  const auto is_measured = [](const LoadedWitness& input) { return !input.measured.empty(); };
  const auto first = std::find_if(loaded.begin(), loaded.end(), is_measured);
  if (first == loaded.end()) return {};
  const auto count = std::count_if(loaded.begin(), loaded.end(), is_measured);
  return std::to_string(count) + (count == 1 ? " file that tells" : " files that tell") +
         " only of calls that ended (" + first->witness.path + " is of format " + first->measured +
         ")";
}

Error nothing_usable(const Diagnosis& diagnosis, const DiagnoseOptions& options,
                     const std::string& measured) {
  std::string message;
  if (diagnosis.troubles.size() == 1) message = diagnosis.troubles.front();
  if (diagnosis.troubles.size() > 1) {
    message = "no input could be used";
    for (const std::string& trouble : diagnosis.troubles) message += "\n  " + trouble;
  }
  if (diagnosis.troubles.empty()) {
    for (const std::string& path : options.paths) message += (message.empty() ? "" : ", ") + path;
    message += measured.empty()
                   ? ": holds nothing that diagnose can read; `commlens formats` lists what can"
                   : ": holds nothing that diagnose can read, and " + measured +
                         ", which `commlens analyze` reads";
  }
  return {ErrorKind::input, message};
}

// A verdict on a rank of which there are several dumps is not certain: the one that was not looked
// at may say otherwise.
void doubt_repeated(const std::vector<Witness>& witnesses, DiagnosisFinding& finding) {
  const std::set<std::int64_t> repeated = repeated_ranks(witnesses);
  if (repeated.empty() || finding.confidence != Confidence::certain) return;
  std::vector<std::int64_t> ranks = finding.missing_ranks;
  ranks.insert(ranks.end(), finding.held.begin(), finding.held.end());
  for (const DifferingRank& row : finding.differing) ranks.push_back(row.rank);
  const bool doubtful = std::any_of(ranks.begin(), ranks.end(),
                                    [&](std::int64_t rank) { return repeated.contains(rank); });
  if (doubtful) finding.confidence = Confidence::likely;
}

}  // namespace

Diagnosis diagnose(const DiagnoseOptions& options) {
  const PerfScope perf(Stage::total);
  if (!options.input_format.empty())
    require_name("--input-format", options.input_format, names_of(list_witness_formats()));
  const unsigned threads =
      options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  Diagnosis diagnosis;

  // Bytes to witnesses, every file by itself.
  const std::vector<FoundInput> found = find_inputs(options.paths);
  std::vector<LoadedWitness> loaded = load_witnesses(
      found, {.input_format = options.input_format, .jobs = threads, .progress = options.progress});
  read_timelines(found, options, threads, loaded);
  const std::string measured = measured_words(loaded);
  std::vector<Witness> witnesses = take_usable(std::move(loaded), diagnosis);
  if (witnesses.empty()) throw nothing_usable(diagnosis, options, measured);

  // What they say together.
  std::vector<DiagnosisFinding> findings;
  for (const Verdict* verdict : verdicts()) {
    for (DiagnosisFinding& finding : verdict->find(witnesses)) {
      doubt_repeated(witnesses, finding);
      findings.push_back(std::move(finding));
    }
  }
  diagnosis.findings = order_findings(std::move(findings));
  diagnosis.logs = summarize_logs(witnesses);
  diagnosis.open_questions = find_remarks(witnesses, !diagnosis.findings.empty());
  for (std::string& text : unproven_hangs(witnesses, diagnosis.findings))
    diagnosis.open_questions.push_back(std::move(text));
  for (std::string& text : open_of_ras(witnesses, !diagnosis.findings.empty()))
    diagnosis.open_questions.push_back(std::move(text));
  if (diagnosis.findings.empty()) {
    disown_lost(witnesses, diagnosis);
    for (std::string& text : unfinished_setups(witnesses))
      diagnosis.open_questions.push_back(std::move(text));
    for (std::string& text : open_warnings(witnesses))
      diagnosis.open_questions.push_back(std::move(text));
    for (std::string& text : shared_host_names(witnesses))
      diagnosis.open_questions.push_back(std::move(text));
  }
  return diagnosis;
}

void render_diagnosis(const Diagnosis& diagnosis, std::string_view format, Sink& sink) {
  const PerfScope perf(Stage::output);
  write_diagnosis(diagnosis, format, sink);
}

}  // namespace commlens
