// The answer in front of all tables: who makes the others wait, why, how much, how surely
// (docs/waiting.md).
#include <algorithm>

#include "analysis/analysis.h"

namespace commlens {
namespace {

// As many as one reads; all of them are in the JSON.
constexpr std::size_t kMostSentences = 3;

std::vector<Cell> row_of(const Straggler& straggler) {
  std::vector<Cell> cells;
  cells.push_back(straggler.rank ? Cell(*straggler.rank) : Cell());
  cells.push_back(straggler.link.empty() ? Cell() : Cell(straggler.link));
  cells.push_back(straggler.host.empty() ? Cell() : Cell(straggler.host));
  cells.emplace_back(std::string(cause_name(straggler.cause)));
  cells.emplace_back(straggler.originated);
  cells.emplace_back(straggler.share);
  cells.emplace_back(straggler.recurrence);
  cells.emplace_back(straggler.burst);
  cells.emplace_back(straggler.steps);
  cells.emplace_back(std::string(confidence_name(straggler.confidence)));
  cells.emplace_back(straggler.evidence);
  return cells;
}

Table stragglers_table(const Stragglers& stragglers) {
  Table table{.name = "stragglers",
              .section = {},
              .title = {},
              .columns = {{"rank", Unit::none, ""},
                          {"link", Unit::none, ""},
                          {"host", Unit::none, ""},
                          {"cause", Unit::none, ""},
                          {"originated_ns", Unit::nanoseconds, ""},
                          {"share", Unit::ratio, ""},
                          {"recurrence", Unit::ratio, ""},
                          {"burst", Unit::none, ""},
                          {"steps", Unit::none, ""},
                          {"confidence", Unit::none, ""},
                          {"evidence", Unit::none, ""}},
              .rows = {},
              .known = stragglers.known};
  for (const Straggler& straggler : stragglers.rows) table.rows.push_back(row_of(straggler));
  return table;
}

// What was seen and cannot be pinned on anyone.
Table open_table(const Stragglers& stragglers) {
  Table table{.name = "open_questions",
              .section = {},
              .title = {},
              .columns = {{"text", Unit::none, ""}},
              .rows = {}};
  for (const std::string& remark : stragglers.remarks) table.rows.push_back({remark});
  return table;
}

std::string nobody(const Stragglers& stragglers) {
  std::string line =
      stragglers.hidden.empty()
          ? "No straggler: no rank, link or host makes the others wait for 1 % of the "
            "GPU time"
          : "No rank, link or host makes the others wait for 1 % of the GPU time";
  if (!stragglers.steps.empty()) line += " in half of the steps";
  if (!stragglers.hidden.empty()) line += ", but " + stragglers.hidden.front().evidence;
  return line + ".";
}

Result run_stragglers(const Job& job, const AnalysisOptions&) {
  Result result{.lines = {}, .tables = {}, .first = true};
  const Stragglers& stragglers = job.stragglers;
  for (const Straggler& straggler : stragglers.rows) {
    if (result.lines.size() == kMostSentences) {
      result.lines.push_back("... and " + std::to_string(stragglers.rows.size() - kMostSentences) +
                             " more in --format json.");
      break;
    }
    result.lines.push_back(straggler.evidence + ".");
  }
  if (stragglers.known && stragglers.rows.empty() && stragglers.remarks.empty())
    result.lines.push_back(nobody(stragglers));
  if (!job.waits.known && has_several_ranks(job))
    result.lines.push_back(
        "Who made whom wait is not known: the operations of these ranks could not be matched, or "
        "their "
        "clocks not related.");
  for (const std::string& remark : stragglers.remarks) result.lines.push_back(remark + ".");
  result.tables.push_back(stragglers_table(stragglers));
  result.tables.push_back(open_table(stragglers));
  result.tables.back().known = !only_measured(job);
  return result;
}

}  // namespace

extern const Analysis kStragglers;
constinit const Analysis kStragglers{
    .name = "stragglers",
    .summary = "Which rank, link or host makes the others wait, why, and how surely",
    .run = run_stragglers,
};

}  // namespace commlens
