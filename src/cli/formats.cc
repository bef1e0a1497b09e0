#include "cli/command.h"
#include "cli/lists.h"

namespace commlens::cli {
namespace {

int run_formats(const Arguments& arguments) {
  std::vector<CatalogEntry> entries = list_analyzed_formats();
  for (const CatalogEntry& entry : list_witness_formats()) entries.push_back(entry);
  return print_list(arguments, entries);
}

}  // namespace

extern const Command kFormats;
constinit const Command kFormats{.name = "formats",
                                 .summary = "List what can be read",
                                 .example = "commlens formats",
                                 .run = run_formats};

}  // namespace commlens::cli
