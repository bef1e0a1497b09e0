// What exists, by name: for listings, suggestions and generated docs, so that the command line
// needs no stage's header.
#pragma once

#include <string_view>
#include <vector>

namespace commlens {

struct CatalogEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view detail;  // notes: the advice
  std::string_view kind;    // notes: the severity
};

std::vector<CatalogEntry> list_formats();           // of timelines: analyze
std::vector<CatalogEntry> list_measured_formats();  // of measured calls without one: analyze
std::vector<CatalogEntry> list_analyzed_formats();  // both
std::vector<CatalogEntry> list_witness_formats();   // of what diagnose reads
std::vector<CatalogEntry> list_analyses();
std::vector<CatalogEntry> list_writers();
std::vector<CatalogEntry> list_notes();
std::vector<std::string_view> list_slice_keys();

// `name` if one of the entries has it; throws Error(usage) with the nearest name otherwise.
void require_name(std::string_view what, std::string_view name,
                  const std::vector<std::string_view>& known);
std::vector<std::string_view> names_of(const std::vector<CatalogEntry>& entries);

}  // namespace commlens
