// How operations of different ranks were matched, and what could not be (docs/matching.md).
#include <array>
#include <optional>

#include "analysis/analysis.h"

namespace commlens {
namespace {

struct MethodCount {
  std::int64_t operations = 0;
  std::int64_t whole = 0;
  std::int64_t not_sure = 0;
};

std::array<MethodCount, kMatchedByCount> count_methods(const Matching& matching) {
  std::array<MethodCount, kMatchedByCount> counts{};
  for (const MatchedOp& op : matching.ops) {
    MethodCount& count = counts[static_cast<std::size_t>(op.by)];
    ++count.operations;
    count.whole += op.whole && op.agreed ? 1 : 0;
    count.not_sure += op.sure ? 0 : 1;
  }
  return counts;
}

// The one that all were matched by, "mixed" where there are several; null where nothing was.
Cell method_of(const std::array<MethodCount, kMatchedByCount>& counts) {
  Cell method;
  for (std::size_t by = 0; by < counts.size(); ++by) {
    if (counts[by].operations == 0) continue;
    if (!std::holds_alternative<std::monostate>(method)) return std::string("mixed");
    method = std::string(matched_by_name(static_cast<MatchedBy>(by)));
  }
  return method;
}

Table sums_table(const Matching& matching, const std::array<MethodCount, kMatchedByCount>& counts) {
  return {.name = {},
          .section = "collectives",
          .title = {},
          .columns = {{"matched", Unit::count, ""},
                      {"partial", Unit::count, ""},
                      {"mismatched", Unit::count, ""},
                      {"unmatched", Unit::count, ""},
                      {"method", Unit::none, ""}},
          .rows = {{matching.matched, matching.partial, matching.mismatched, matching.unmatched,
                    method_of(counts)}}};
}

Table method_table(const std::array<MethodCount, kMatchedByCount>& counts) {
  Table table{.name = "by_method",
              .section = "collectives",
              .title = "Operations matched across ranks",
              .columns = {{"method", Unit::none, "by"},
                          {"operations", Unit::count, "operations"},
                          {"whole", Unit::count, "on all ranks"},
                          {"not_sure", Unit::count, "not sure"}},
              .rows = {}};
  for (std::size_t by = 0; by < counts.size(); ++by) {
    if (counts[by].operations == 0) continue;
    table.rows.push_back({std::string(matched_by_name(static_cast<MatchedBy>(by))),
                          counts[by].operations, counts[by].whole, counts[by].not_sure});
  }
  return table;
}

Table mismatch_table(const Matching& matching) {
  Table table{.name = "mismatches",
              .section = "collectives",
              .title = "Not matched, or not on all ranks",
              .columns = {{"kind", Unit::none, ""},
                          {"group", Unit::none, "group"},
                          {"seq", Unit::count, ""},
                          {"ranks", Unit::none, "ranks"},
                          {"count", Unit::count, "events"},
                          {"reason", Unit::none, "why"}},
              .rows = {},
              .text_rows = 5};
  for (const Mismatch& row : matching.mismatches) {
    table.rows.push_back({std::string(row.kind), row.group.empty() ? Cell() : Cell(row.group),
                          row.seq < 0 ? Cell() : Cell(row.seq),
                          row.ranks.empty() ? Cell() : Cell(row.ranks), row.count, row.reason});
  }
  return table;
}

// Of inputs that are no timelines, where they number their calls and come of several ranks.
Result measured_collectives(const Job& job) {
  Result result;
  MethodCount whole;
  std::int64_t partial = 0;
  Table mismatches = mismatch_table({});
  bool several = false;
  std::int64_t unmatched = 0;
  for (const MeasuredSequence& row : job.measured.sequences) {
    several = several || row.reporting > 1;
    whole.whole += row.matched;
    whole.operations += row.matched + row.partial + row.mismatched;
    partial += row.partial;
    unmatched += row.alone;
    const auto add = [&](std::string_view kind, std::int64_t count, std::string reason) {
      if (count == 0) return;
      mismatches.rows.push_back({std::string(kind), row.group, Cell(), Cell(), count,
                                 std::string(op_name(row.op)) + ": " + std::move(reason)});
    };
    if (row.size > 0) {
      add("missing_member", row.partial,
          "not recorded by all " + std::to_string(row.size) +
              " ranks: dropped, or a file is not here");
      add("unmatched", row.alone, "recorded by one rank only: dropped, or a file is not here");
    } else {
      add("unknown_group_size", row.partial + row.alone,
          "how many ranks the group has is not known");
    }
    add("bytes", row.mismatched, "ranks recorded other sizes");
  }
  if (!several) {
    result.tables.push_back({.name = "collectives",
                             .section = {},
                             .title = {},
                             .columns = {},
                             .rows = {},
                             .known = false});
    return result;
  }
  // Without a number that ranks agree on.
  for (const Measured& file : job.measured.files) {
    for (const MeasuredCall& call : file.calls) unmatched += call.number < 0 ? 1 : 0;
  }
  std::array<MethodCount, kMatchedByCount> counts{};
  counts[static_cast<std::size_t>(MatchedBy::sequence)] = whole;
  Matching sums;
  sums.matched = whole.whole;
  sums.partial = partial;
  sums.mismatched = whole.operations - whole.whole - partial;
  sums.unmatched = unmatched;
  result.tables.push_back(sums_table(sums, counts));
  result.tables.push_back(method_table(counts));
  result.tables.push_back(std::move(mismatches));
  return result;
}

Result run_collectives(const Job& job, const AnalysisOptions&) {
  if (only_measured(job)) return measured_collectives(job);
  Result result;
  if (!has_several_ranks(job)) {
    result.tables.push_back({.name = "collectives",
                             .section = {},
                             .title = {},
                             .columns = {},
                             .rows = {},
                             .known = false});
    return result;
  }
  const auto counts = count_methods(job.matching);
  result.tables.push_back(sums_table(job.matching, counts));
  result.tables.push_back(method_table(counts));
  result.tables.push_back(mismatch_table(job.matching));
  return result;
}

}  // namespace

extern const Analysis kCollectives;
constinit const Analysis kCollectives{
    .name = "collectives",
    .summary = "Which operations of different ranks are one, how that is known, and what is not",
    .run = run_collectives,
};

}  // namespace commlens
