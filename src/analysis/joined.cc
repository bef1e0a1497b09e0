// What logs and dumps say of the timelines' operations (docs/joined.md).
#include <algorithm>

#include "analysis/analysis.h"

namespace commlens {
namespace {

Cell text_or_null(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

std::vector<Cell> cells_of(const JoinedRow& row) {
  return {std::string(op_name(row.op)),
          text_or_null(row.group),
          row.bytes ? Cell(*row.bytes) : Cell(),
          row.count,
          row.witnessed,
          text_or_null(row.kernel),
          text_or_null(row.host_call),
          text_or_null(row.algorithm),
          text_or_null(row.protocol),
          row.channels ? Cell(*row.channels) : Cell(),
          text_or_null(row.transport),
          text_or_null(row.nic),
          row.witnesses,
          row.by ? Cell(std::string(joined_by_name(*row.by))) : Cell(),
          row.confidence ? Cell(std::string(confidence_name(*row.confidence))) : Cell(),
          text_or_null(row.reason)};
}

Table rows_table(const Joined& joined) {
  Table table{.name = "joined",
              .section = {},
              .title = "What logs and dumps say of the operations",
              .columns = {{"op", Unit::none, "op"},
                          {"group", Unit::none, "group"},
                          {"bytes", Unit::bytes, "size"},
                          {"count", Unit::count, "count"},
                          {"witnessed", Unit::count, ""},
                          {"kernel", Unit::none, ""},
                          {"host_call", Unit::none, ""},
                          {"algorithm", Unit::none, "algorithm"},
                          {"protocol", Unit::none, "protocol"},
                          {"channels", Unit::count, "channels"},
                          {"transport", Unit::none, "transport"},
                          {"nic", Unit::none, "nic"},
                          {"witnesses", Unit::none, ""},
                          {"method", Unit::none, ""},
                          {"confidence", Unit::none, "joined"},
                          {"reason", Unit::none, ""}},
              .rows = {},
              .text_rows = 8};
  for (const JoinedRow& row : joined.rows) table.rows.push_back(cells_of(row));
  return table;
}

Table sums_of(const Joined& joined) {
  return {.name = {},
          .section = "joining",
          .title = {},
          .columns = {{"operations", Unit::count, ""},
                      {"operations_without_witness", Unit::count, ""},
                      {"calls", Unit::count, ""},
                      {"calls_without_operation", Unit::count, ""}},
          .rows = {{joined.operations, joined.without_witness, joined.calls,
                    joined.calls_without_operation}}};
}

Table inputs_table(const Joined& joined) {
  Table table{.name = "inputs",
              .section = "joining",
              .title = {},
              .columns = {{"path", Unit::none, ""},
                          {"format", Unit::none, ""},
                          {"calls", Unit::count, ""},
                          {"joined", Unit::count, ""},
                          {"reason", Unit::none, ""}},
              .rows = {}};
  for (const JoinedInput& input : joined.inputs)
    table.rows.push_back(
        {input.path, input.format, input.calls, input.joined, text_or_null(input.reason)});
  return table;
}

Result run_joined(const Job& job, const AnalysisOptions&) {
  Result result;
  if (!job.joined.asked) return result;
  const Joined& joined = job.joined;
  result.lines.push_back(
      "Logs and dumps tell of " + std::to_string(joined.operations - joined.without_witness) +
      " of " + std::to_string(joined.operations) + " communications; " +
      std::to_string(joined.calls_without_operation) + " of their " + std::to_string(joined.calls) +
      " calls are of no operation on the timelines.");
  result.tables.push_back(rows_table(joined));
  result.tables.push_back(sums_of(joined));
  result.tables.push_back(inputs_table(joined));
  return result;
}

}  // namespace

extern const Analysis kJoined;
constinit const Analysis kJoined{
    .name = "joined",
    .summary = "What logs and dumps of the same job say of the operations: algorithm, way, caller",
    .run = run_joined,
};

}  // namespace commlens
