#include "cli/lists.h"

#include <algorithm>

#include "base/json_out.h"
#include "cli/command.h"

namespace commlens::cli {
namespace {

void print_json(const std::vector<CatalogEntry>& entries, Sink& sink) {
  JsonOut json(sink);
  json.begin_array();
  for (const CatalogEntry& entry : entries) {
    json.compact_next();
    json.begin_object();
    json.key("name");
    json.value(entry.name);
    json.key("summary");
    json.value(entry.summary);
    if (!entry.kind.empty()) {
      json.key("severity");
      json.value(entry.kind);
      json.key("advice");
      json.value(entry.detail);
    }
    json.end_object();
  }
  json.end_array();
}

void print_text(const std::vector<CatalogEntry>& entries, Sink& sink) {
  std::size_t width = 0;
  for (const CatalogEntry& entry : entries) width = std::max(width, entry.name.size());
  for (const CatalogEntry& entry : entries) {
    const std::string indent(width + 2, ' ');
    sink.append(std::string(entry.name) + std::string(width - entry.name.size() + 2, ' '));
    if (!entry.kind.empty()) sink.append(std::string(entry.kind) + ": ");
    sink.append(std::string(entry.summary) + "\n");
    if (!entry.detail.empty()) sink.append(indent + "-> " + std::string(entry.detail) + "\n");
  }
}

}  // namespace

int print_list(const Arguments& arguments, const std::vector<CatalogEntry>& entries) {
  Sink sink(arguments.output.path);
  if (arguments.output.format == "json") {
    print_json(entries, sink);
  } else {
    print_text(entries, sink);
  }
  sink.close();
  return kDone;
}

}  // namespace commlens::cli
