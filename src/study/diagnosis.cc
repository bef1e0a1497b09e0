#include "study/diagnosis.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/perf.h"
#include "diagnose/order.h"
#include "diagnose/remarks.h"
#include "diagnose/verdict.h"
#include "ingest/load_witness.h"
#include "report/diagnosis.h"
#include "study/catalog.h"

namespace commlens {
namespace {

// Names every input; hands over those that could be used.
std::vector<Witness> take_usable(std::vector<LoadedWitness> loaded, Diagnosis& diagnosis) {
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

Error nothing_usable(const Diagnosis& diagnosis, const DiagnoseOptions& options) {
  std::string message;
  if (diagnosis.troubles.size() == 1) message = diagnosis.troubles.front();
  if (diagnosis.troubles.size() > 1) {
    message = "no input could be used";
    for (const std::string& trouble : diagnosis.troubles) message += "\n  " + trouble;
  }
  if (diagnosis.troubles.empty()) {
    for (const std::string& path : options.paths) message += (message.empty() ? "" : ", ") + path;
    message += ": holds nothing that diagnose can read; `commlens formats` lists what can";
  }
  return {ErrorKind::input, message};
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
  std::vector<Witness> witnesses = take_usable(
      load_witnesses(
          find_inputs(options.paths),
          {.input_format = options.input_format, .jobs = threads, .progress = options.progress}),
      diagnosis);
  if (witnesses.empty()) throw nothing_usable(diagnosis, options);

  // What they say together.
  std::vector<DiagnosisFinding> findings;
  for (const Verdict* verdict : verdicts()) {
    for (DiagnosisFinding& finding : verdict->find(witnesses))
      findings.push_back(std::move(finding));
  }
  diagnosis.findings = order_findings(std::move(findings));
  diagnosis.open_questions = find_remarks(witnesses, !diagnosis.findings.empty());
  return diagnosis;
}

void render_diagnosis(const Diagnosis& diagnosis, std::string_view format, Sink& sink) {
  const PerfScope perf(Stage::output);
  write_diagnosis(diagnosis, format, sink);
}

}  // namespace commlens
