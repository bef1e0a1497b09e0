// How the listing verbs print.
#pragma once

#include <vector>

#include "cli/args.h"
#include "study/catalog.h"

namespace commlens::cli {

// Names and summaries, as text or JSON; returns the exit code.
int print_list(const Arguments& arguments, const std::vector<CatalogEntry>& entries);

}  // namespace commlens::cli
