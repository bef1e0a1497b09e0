// Tables as JSON: arrays of objects; what is not known is null.
#pragma once

#include "base/json_out.h"
#include "model/result.h"

namespace commlens {

void write_json_cell(JsonOut& json, const Cell& cell);
// One row a line, unless rows hold tables themselves; null where the table is not known.
void write_json_table(JsonOut& json, const Table& table);

}  // namespace commlens
