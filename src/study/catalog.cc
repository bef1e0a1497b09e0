#include "study/catalog.h"

#include <algorithm>
#include <string>

#include "analysis/analysis.h"
#include "base/error.h"
#include "base/suggest.h"
#include "ingest/format.h"
#include "ingest/measured_format.h"
#include "ingest/witness_format.h"
#include "model/notes.h"
#include "report/writer.h"

namespace commlens {

std::vector<CatalogEntry> list_formats() {
  std::vector<CatalogEntry> entries;
  for (const Format* format : formats()) entries.push_back({format->name, format->summary, {}, {}});
  return entries;
}

std::vector<CatalogEntry> list_measured_formats() {
  std::vector<CatalogEntry> entries;
  for (const MeasuredFormat* format : measured_formats())
    entries.push_back({format->name, format->summary, {}, {}});
  return entries;
}

std::vector<CatalogEntry> list_analyzed_formats() {
  std::vector<CatalogEntry> entries = list_formats();
  for (const CatalogEntry& entry : list_measured_formats()) entries.push_back(entry);
  return entries;
}

std::vector<CatalogEntry> list_witness_formats() {
  std::vector<CatalogEntry> entries;
  for (const WitnessFormat* format : witness_formats())
    entries.push_back({format->name, format->summary, {}, {}});
  return entries;
}

std::vector<CatalogEntry> list_analyses() {
  std::vector<CatalogEntry> entries;
  for (const Analysis* analysis : analyses())
    entries.push_back({analysis->name, analysis->summary, {}, {}});
  return entries;
}

std::vector<CatalogEntry> list_writers() {
  std::vector<CatalogEntry> entries;
  for (const Writer* writer : writers()) entries.push_back({writer->name, writer->summary, {}, {}});
  return entries;
}

std::vector<CatalogEntry> list_notes() {
  std::vector<CatalogEntry> entries;
  for (const NoteInfo& note : all_notes())
    entries.push_back({note.code, note.message, note.advice, severity_name(note.severity)});
  return entries;
}

std::vector<std::string_view> list_slice_keys() {
  return {slice_keys().begin(), slice_keys().end()};
}

std::vector<std::string_view> names_of(const std::vector<CatalogEntry>& entries) {
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : entries) names.push_back(entry.name);
  return names;
}

void require_name(std::string_view what, std::string_view name,
                  const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string message = std::string(what) + ": \"" + std::string(name) + "\" is not known";
  if (const std::string_view near = nearest_name(name, known); !near.empty()) {
    message += "; did you mean \"" + std::string(near) + "\"?";
  } else {
    message += "; it can be ";
    for (std::size_t i = 0; i < known.size(); ++i)
      message += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + std::string(known[i]);
  }
  throw Error(ErrorKind::usage, message);
}

}  // namespace commlens
