// What could be changed, and what a step would gain by it (docs/advice.md).
#include <cstdio>

#include "analysis/analysis.h"

namespace commlens {
namespace {

// As many as fit on a screen beside the ledger; all of them are in the JSON.
constexpr std::size_t kShown = 3;

std::string milliseconds_of(Ns time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", static_cast<double>(time) / 1e6);
  return text;
}

std::string percent_of_step(Ns part, Ns whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

std::string sentence(std::size_t number, const Finding& finding, Ns step) {
  return std::to_string(number) + ". " + finding.title + ". Up to " +
         milliseconds_of(finding.recoverable) + " a step (" +
         percent_of_step(finding.recoverable, step) + "), " +
         std::string(confidence_name(finding.confidence)) + ". " + finding.advice;
}

Table findings_table(const Findings& findings) {
  Table table{.name = "findings",
              .section = {},
              .title = {},
              .columns = {{"id", Unit::none, ""},
                          {"severity", Unit::none, ""},
                          {"confidence", Unit::none, ""},
                          {"title", Unit::none, ""},
                          {"evidence", Unit::none, ""},
                          {"recoverable_ns", Unit::nanoseconds, ""},
                          {"alone_ns", Unit::nanoseconds, ""},
                          {"advice", Unit::none, ""}},
              .rows = {},
              .known = findings.known};
  for (const Finding& finding : findings.rows)
    table.rows.push_back({finding.id, std::string(severity_name(finding.severity)),
                          std::string(confidence_name(finding.confidence)), finding.title,
                          finding.evidence, finding.recoverable, finding.alone, finding.advice});
  return table;
}

Result run(const Job& job, const AnalysisOptions&) {
  Result result;
  const Findings& findings = job.findings;
  result.tables.push_back(findings_table(findings));
  if (!findings.known) return result;
  for (std::size_t i = 0; i < findings.rows.size() && i < kShown; ++i)
    result.lines.push_back(sentence(i + 1, findings.rows[i], findings.step));
  if (findings.rows.size() > kShown)
    result.lines.push_back("... and " + std::to_string(findings.rows.size() - kShown) +
                           " more findings in --format json.");
  if (findings.rows.empty())
    result.lines.emplace_back("No advice: nothing that was looked for would gain 0.5 % of a step.");
  return result;
}

}  // namespace

extern const Analysis kFindings;
constinit const Analysis kFindings{
    .name = "findings",
    .summary = "What could be changed, and what a step would gain by it",
    .run = run,
};

}  // namespace commlens
