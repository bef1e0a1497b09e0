// What could be changed, and what a step would gain by it (docs/advice.md).
#include <algorithm>
#include <cctype>
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

// Whole clauses of the advice, the first few; all of it is in the JSON.
std::string in_short(const std::string& advice) {
  constexpr std::size_t kMost = 180;
  if (advice.size() <= kMost) return advice;
  std::size_t end = 0;
  int depth = 0;
  for (std::size_t at = 0; at < kMost; ++at) {
    if (advice[at] == '(') ++depth;
    if (advice[at] == ')') --depth;
    const bool clause = advice[at] == ';' || advice[at] == '.';
    if (clause && depth == 0 && advice[at + 1] == ' ') end = at;
  }
  return end == 0 ? advice : advice.substr(0, end) + ".";
}

// The evidence without what the sentences on stragglers say above; the doubt that ends it is the
// whole run's, and said once.
std::string new_evidence(const Job& job, const Finding& finding, bool with_doubt) {
  const std::size_t end = std::min(finding.evidence.find(kDoubtWords), finding.evidence.size());
  std::string words = finding.evidence.substr(0, end);
  std::string doubt = with_doubt ? finding.evidence.substr(end) : "";
  const auto& rows = job.stragglers.rows;
  if (std::any_of(rows.begin(), rows.end(),
                  [&words](const Straggler& row) { return row.evidence == words; })) {
    words.clear();
    if (!doubt.empty()) doubt.erase(0, 2);  // "; "
  }
  return words + doubt;
}

void say(std::size_t number, const Job& job, const Finding& finding,
         std::vector<std::string>& lines) {
  lines.push_back(std::to_string(number) + ". " + finding.title + ": up to " +
                  milliseconds_of(finding.recoverable) + " a step (" +
                  percent_of_step(finding.recoverable, job.findings.step) + "), " +
                  std::string(confidence_name(finding.confidence)) + ".");
  const std::string indent(3, ' ');
  std::string evidence = new_evidence(job, finding, number == 1);
  if (!evidence.empty()) {
    evidence.front() =
        static_cast<char>(std::toupper(static_cast<unsigned char>(evidence.front())));
    lines.push_back(indent + evidence + ".");
  }
  lines.push_back(indent + in_short(finding.advice));
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
  Result result{.lines = {}, .tables = {}, .first = true};
  const Findings& findings = job.findings;
  result.tables.push_back(findings_table(findings));
  if (!findings.known) return result;
  for (std::size_t i = 0; i < findings.rows.size() && i < kShown; ++i)
    say(i + 1, job, findings.rows[i], result.lines);
  if (findings.rows.size() > kShown)
    result.lines.push_back("... and " + std::to_string(findings.rows.size() - kShown) +
                           " more findings in --format json.");
  if (findings.rows.empty())
    result.lines.push_back("No advice: nothing that was looked for would gain 0.5 % of a step" +
                           (job.path.sure ? "" : ", which is doubtful: " + job.path.doubt) + ".");
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
