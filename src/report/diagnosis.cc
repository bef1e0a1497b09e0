#include "report/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json_out.h"
#include "base/utf8.h"
#include "model/rank_list.h"
#include "report/writer_table_json.h"
#include "report/writer_table_text.h"

namespace commlens {
namespace {

// ---- JSON

void write_ranks(JsonOut& json, std::string_view key, const std::vector<std::int64_t>& ranks) {
  json.key(key);
  json.compact_next();
  json.begin_array();
  for (const std::int64_t rank : ranks) json.value(rank);
  json.end_array();
}

void write_lines(JsonOut& json, std::string_view key, const std::vector<std::string>& lines) {
  json.key(key);
  json.begin_array();
  for (const std::string& line : lines) json.value(line);
  json.end_array();
}

// Null where the finding is not about one.
void write_text_or_null(JsonOut& json, std::string_view key, const std::string& text) {
  json.key(key);
  if (text.empty()) {
    json.null();
  } else {
    json.value(text);
  }
}

void write_differing(JsonOut& json, const std::vector<DifferingRank>& differing) {
  json.key("differing");
  json.begin_array();
  for (const DifferingRank& row : differing) {
    json.compact_next();
    json.begin_object();
    json.key("rank");
    json.value(row.rank);
    json.key("field");
    json.value(row.field);
    json.key("value");
    json.value(row.value);
    json.key("expected");
    json.value(row.expected);
    json.end_object();
  }
  json.end_array();
}

void write_finding(JsonOut& json, const DiagnosisFinding& finding) {
  json.begin_object();
  json.key("kind");
  json.value(diagnosis_name(finding.kind));
  write_text_or_null(json, "group", finding.group);
  write_text_or_null(json, "group_description", finding.group_description);
  json.key("group_ranks");
  json.compact_next();
  json.begin_array();
  for (const int rank : finding.group_ranks) json.value(rank);
  json.end_array();
  json.key("seq");
  if (finding.seq) {
    json.value(*finding.seq);
  } else {
    json.null();
  }
  write_text_or_null(json, "op", finding.op);
  write_ranks(json, "missing_ranks", finding.missing_ranks);
  write_differing(json, finding.differing);
  write_ranks(json, "consequences", finding.consequences);
  json.key("message");
  json.value(finding.message);
  write_lines(json, "evidence", finding.evidence);
  json.key("confidence");
  json.value(confidence_name(finding.confidence));
  json.key("advice");
  json.value(finding.advice);
  json.end_object();
}

void write_notes_json(JsonOut& json, const Notes& notes) {
  json.key("warnings");
  json.begin_array();
  for (const NoteInfo& info : all_notes()) {
    const Note note = static_cast<Note>(&info - all_notes().data());
    if (notes.count(note) == 0) continue;
    json.compact_next();
    json.begin_object();
    json.key("code");
    json.value(info.code);
    json.key("count");
    json.value(notes.count(note));
    json.key("message");
    json.value(info.message);
    json.key("example");
    json.value(notes.example(note));
    json.end_object();
  }
  json.end_array();
}

void write_input(JsonOut& json, const InputReport& input) {
  json.compact_next();
  json.begin_object();
  json.key("path");
  json.value(input.path);
  write_text_or_null(json, "format", input.format);
  json.key("rank");
  if (input.rank) {
    json.value(*input.rank);
  } else {
    json.null();
  }
  json.key("bytes");
  if (input.bytes) {
    json.value(*input.bytes);
  } else {
    json.null();
  }
  json.key("events");
  json.value(input.events);
  write_notes_json(json, input.notes);
  json.end_object();
}

// Null where no input is a log.
void write_logs(JsonOut& json, const std::vector<Table>& logs) {
  json.key("logs");
  if (logs.empty()) return json.null();
  json.begin_object();
  for (const Table& table : logs) {
    json.key(table.name);
    write_json_table(json, table);
  }
  json.end_object();
}

void write_json(const Diagnosis& diagnosis, Sink& sink) {
  JsonOut json(sink);
  json.begin_object();
  json.key("schema");
  json.value("commlens.diagnosis/1");
  json.key("verdict");
  json.value(verdict_of(diagnosis));
  json.key("findings");
  json.begin_array();
  for (const DiagnosisFinding& finding : diagnosis.findings) write_finding(json, finding);
  json.end_array();
  json.key("open_questions");
  json.begin_array();
  for (const std::string& text : diagnosis.open_questions) {
    json.compact_next();
    json.begin_object();
    json.key("text");
    json.value(text);
    json.end_object();
  }
  json.end_array();
  write_logs(json, diagnosis.logs);
  json.key("inputs");
  json.begin_array();
  for (const InputReport& input : diagnosis.inputs) write_input(json, input);
  json.end_array();
  write_notes_json(json, diagnosis.notes);
  json.end_object();
  sink.append("\n");
}

// ---- text

void write_finding_text(std::size_t number, const DiagnosisFinding& finding, Sink& sink) {
  sink.append(fmt::format("{}. {} ({}): {}\n", number, diagnosis_name(finding.kind),
                          confidence_name(finding.confidence), printable(finding.message)));
  for (const DifferingRank& row : finding.differing)
    sink.append(fmt::format("   rank {}{}: {} is {}, others have {}\n", row.rank,
                            finding.ranks_of_group ? " of the communicator" : "", row.field,
                            printable(row.value), printable(row.expected)));
  if (!finding.consequences.empty())
    sink.append(fmt::format("   held by it: rank{} {}\n",
                            finding.consequences.size() == 1 ? "" : "s",
                            format_ranks(finding.consequences)));
  if (!finding.advice.empty()) sink.append("   try: " + printable(finding.advice) + "\n");
  for (const std::string& line : finding.evidence) sink.append("   | " + printable(line) + "\n");
}

// What was odd in the inputs, but for what could not be used at all.
void write_notes_text(const Diagnosis& diagnosis, Sink& sink) {
  Report report;
  report.inputs = diagnosis.inputs;
  report.notes = diagnosis.notes;
  for (const NoteLine& line : collect_notes(report)) {
    const NoteInfo& info = note_info(line.note);
    // Of a log, what was not understood may be the very thing.
    const bool shown = info.severity != Severity::info || line.note == Note::unknown_log_line;
    if (!shown || line.note == Note::unusable_input) continue;
    sink.append(
        fmt::format("{}: {} ({}x{}); {}\n", severity_name(info.severity), info.message, line.count,
                    line.example.empty() ? "" : ", e.g. " + printable(line.example), info.advice));
  }
}

void write_text(const Diagnosis& diagnosis, Sink& sink) {
  const auto used = std::count_if(
      diagnosis.inputs.begin(), diagnosis.inputs.end(),
      [](const InputReport& input) { return input.notes.count(Note::unusable_input) == 0; });
  if (diagnosis.findings.empty())
    sink.append(fmt::format("Nothing wrong was found in {} of {} input{}.\n", used,
                            diagnosis.inputs.size(), diagnosis.inputs.size() == 1 ? "" : "s"));
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    if (i > 0) sink.append("\n");
    write_finding_text(i + 1, diagnosis.findings[i], sink);
  }
  for (const std::string& text : diagnosis.open_questions)
    sink.append("open: " + printable(text) + "\n");
  for (const Table& table : diagnosis.logs) write_text_table(table, kPlain, sink);
  if (!diagnosis.logs.empty()) sink.append("\n");
  write_notes_text(diagnosis, sink);
  for (const std::string& line : diagnosis.troubles)
    sink.append("not used: " + printable(line) + "\n");
}

}  // namespace

void write_diagnosis(const Diagnosis& diagnosis, std::string_view format, Sink& sink) {
  if (format == "json") return write_json(diagnosis, sink);
  write_text(diagnosis, sink);
}

}  // namespace commlens
