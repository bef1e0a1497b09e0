// The report as JSON, as docs/json.md describes it: tables become arrays of objects, what is not
// known becomes null.
#include <string>

#include "base/json_out.h"
#include "report/writer.h"
#include "report/writer_table_json.h"

namespace commlens {
namespace {

template <class Value>
void write_known(JsonOut& json, std::string_view key, const Value& value, bool known) {
  json.key(key);
  if (known) {
    json.value(value);
  } else {
    json.null();
  }
}

void write_list(JsonOut& json, std::string_view key, const std::vector<std::int64_t>& values) {
  json.key(key);
  json.compact_next();
  json.begin_array();
  for (const std::int64_t value : values) json.value(value);
  json.end_array();
}

void write_warning(JsonOut& json, std::string_view code, Severity severity, std::int64_t count,
                   std::string_view message, std::string_view advice, std::string_view example) {
  json.compact_next();
  json.begin_object();
  json.key("code");
  json.value(code);
  json.key("severity");
  json.value(severity_name(severity));
  json.key("count");
  json.value(count);
  json.key("message");
  json.value(advice.empty() ? std::string(message)
                            : std::string(message) + "; " + std::string(advice));
  write_known(json, "example", example, !example.empty());
  json.end_object();
}

void write_notes(JsonOut& json, const Notes& notes) {
  for (std::size_t i = 0; i < Notes::kCount; ++i) {
    const auto note = static_cast<Note>(i);
    if (notes.count(note) == 0) continue;
    const NoteInfo& info = note_info(note);
    write_warning(json, info.code, info.severity, notes.count(note), info.message, info.advice,
                  notes.example(note));
  }
}

void write_inputs(JsonOut& json, const std::vector<InputReport>& inputs) {
  json.key("inputs");
  json.begin_array();
  for (const InputReport& input : inputs) {
    json.begin_object();
    json.key("path");
    json.value(input.path);
    write_known(json, "format", input.format, !input.format.empty());
    write_known(json, "rank", input.rank.value_or(0), input.rank.has_value());
    write_known(json, "bytes", input.bytes.value_or(0), input.bytes.has_value());
    json.key("events");
    json.value(input.events);
    json.key("warnings");
    json.begin_array();
    write_notes(json, input.notes);
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_job(JsonOut& json, const JobReport& job) {
  json.key("job");
  json.begin_object();
  write_list(json, "ranks", job.ranks);
  write_list(json, "missing_ranks", job.missing_ranks);
  write_known(json, "world_size", job.world_size, job.world_size > 0);
  write_known(json, "backend", job.backend, !job.backend.empty());
  write_known(json, "nccl_version", job.nccl_version, !job.nccl_version.empty());
  json.key("hosts");
  if (job.hosts.empty()) {
    json.null();
  } else {
    json.compact_next();
    json.begin_array();
    for (const std::string& host : job.hosts) json.value(host);
    json.end_array();
  }
  write_known(json, "hosts_from", job.hosts_from, !job.hosts_from.empty());
  write_list(json, "steps", job.steps);
  json.end_object();
}

// A section's own fields: the only row of a table without a name.
void write_fields(JsonOut& json, const Table& table) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    json.key(table.columns[i].name);
    write_json_cell(json, table.rows.front()[i]);
  }
}

// Tables of one section stand together in an object.
void write_tables(JsonOut& json, const std::vector<Result>& results) {
  std::string_view open;
  const auto enter = [&](std::string_view section) {
    if (section == open) return;
    if (!open.empty()) json.end_object();
    if (!section.empty()) {
      json.key(section);
      json.begin_object();
    }
    open = section;
  };
  for (const Result& result : results) {
    for (const Table& table : result.tables) {
      if (table.text_only) continue;
      enter(table.section);
      if (table.name.empty()) {
        write_fields(json, table);
        continue;
      }
      json.key(table.name);
      write_json_table(json, table);
    }
  }
  enter({});
}

void write_json(const Report& report, const WriteOptions&, Sink& sink) {
  JsonOut json(sink);
  json.begin_object();
  json.key("schema");
  json.value("commlens.analysis/1");
  json.key("version");
  json.value(program_version());
  write_inputs(json, report.inputs);
  write_job(json, report.job);
  write_tables(json, report.results);
  json.key("warnings");
  json.begin_array();
  write_notes(json, report.notes);
  json.end_array();
  json.end_object();
}

}  // namespace

extern const Writer kJson;
constinit const Writer kJson{
    .name = "json", .summary = "everything, for programs (docs/json.md)", .write = write_json};

}  // namespace commlens
