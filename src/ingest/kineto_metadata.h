// The members of a Kineto file around its events: rank, groups, clock base, versions.
#pragma once

#include <string_view>

#include "ingest/json_scan.h"
#include "model/trace.h"

namespace commlens {

// Takes over what one top-level member says. What is said twice counts as it was said last; an
// empty value says nothing.
void read_kineto_metadata(std::string_view key, const Token& value, Recording& about, Notes& notes);

}  // namespace commlens
