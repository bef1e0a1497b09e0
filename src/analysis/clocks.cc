// How far the ranks' clocks are known (docs/clocks.md).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "analysis/analysis.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

std::string duration(Ns time) {
  char text[64];
  const auto value = static_cast<double>(time);
  if (time < 1'000'000) {
    std::snprintf(text, sizeof text, "%.1f us", value / 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.1f ms", value / 1e6);
  }
  return text;
}

std::string ranks_in_words(const std::vector<std::int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks);
}

Cell cell(std::optional<Ns> time) { return time ? Cell(*time) : Cell(); }

std::vector<Cell> row_of(std::int64_t rank, const ClockLine& line) {
  std::vector<Cell> cells{rank, cell(line.offset), cell(line.lower), cell(line.upper)};
  if (line.offset) {
    cells.emplace_back(line.spread);
    cells.emplace_back(std::round(line.drift_ppm * 1e3) / 1e3);
  } else {
    cells.resize(6);
  }
  cells.emplace_back(std::string(clock_method_name(line.method)));
  return cells;
}

// What the sentence is made of; values of the rank for which they are largest.
struct Summary {
  std::set<std::uint32_t> clocks;
  std::vector<std::int64_t> estimated;
  std::vector<std::int64_t> without;  // neither on the reference's host nor estimated
  Ns scatter = 0;
  std::int64_t scatters_most = 0;
  Ns open = 0;  // between the bounds
  std::int64_t most_open = 0;
  std::vector<std::int64_t> unbounded;
};

Summary summarise(const Job& job) {
  Summary summary;
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    if (job.ranks[row].run > 0) continue;
    const std::int64_t rank = job.ranks[row].rank;
    const ClockLine& line = job.clocks.lines[row];
    summary.clocks.insert(job.clocks.domain[row]);
    if (!line.offset) summary.without.push_back(rank);
    if (line.method == ClockMethod::end_differences) {
      summary.estimated.push_back(rank);
      if (line.spread > summary.scatter) {
        summary.scatter = line.spread;
        summary.scatters_most = rank;
      }
    }
    if (!line.lower || !line.upper) {
      summary.unbounded.push_back(rank);
    } else if (*line.upper - *line.lower > summary.open) {
      summary.open = *line.upper - *line.lower;
      summary.most_open = rank;
    }
  }
  return summary;
}

std::string of_rank(std::int64_t rank) { return " (rank " + std::to_string(rank) + ")"; }

// Parts in the order of how much they matter to the reader; each is there where it applies.
std::string sentence(const Summary& summary) {
  if (summary.clocks.size() == 1) return "Clocks: all ranks share one.";
  std::string line = "Clocks: " + std::to_string(summary.clocks.size());
  if (!summary.estimated.empty())
    line += ", their differences known from ends of operations to " + duration(summary.scatter) +
            of_rank(summary.scatters_most);
  if (!summary.without.empty()) line += ", no estimate for " + ranks_in_words(summary.without);
  if (summary.open > 0)
    line +=
        "; causality leaves up to " + duration(summary.open) + " open" + of_rank(summary.most_open);
  if (!summary.unbounded.empty()) line += "; nothing bounds " + ranks_in_words(summary.unbounded);
  return line + ".";
}

Result run_clocks(const Job& job, const AnalysisOptions&) {
  Table table{.name = "clocks",
              .section = {},
              .title = {},
              .columns = {{"rank", Unit::none, ""},
                          {"offset_ns", Unit::nanoseconds, ""},
                          {"lower_ns", Unit::nanoseconds, ""},
                          {"upper_ns", Unit::nanoseconds, ""},
                          {"spread_ns", Unit::nanoseconds, ""},
                          {"drift_ppm", Unit::none, ""},
                          {"method", Unit::none, ""}},
              .rows = {}};
  table.known = job.clocks.known;
  Result result;
  if (table.known) {
    for (std::size_t row = 0; row < job.ranks.size(); ++row) {
      if (job.ranks[row].run == 0)
        table.rows.push_back(row_of(job.ranks[row].rank, job.clocks.lines[row]));
    }
    result.lines.push_back(sentence(summarise(job)));
  }
  if (!job.clocks.infeasible.empty())
    result.lines.push_back("Clocks: " + job.clocks.infeasible + ".");
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

extern const Analysis kClocks;
constinit const Analysis kClocks{
    .name = "clocks",
    .summary = "How the ranks' clocks relate, and how far that can be trusted",
    .run = run_clocks,
};

}  // namespace commlens
