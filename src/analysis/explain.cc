// Why one rank waited: the trail behind each of its longest waits (--explain RANK).
#include <cstdio>

#include "analysis/analysis.h"
#include "model/trail.h"

namespace commlens {
namespace {

std::string milliseconds(Ns time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(time) / 1e6);
  return text;
}

std::string because(const TrailHop& hop) {
  const std::string culprit = "rank " + std::to_string(hop.culprit);
  const std::string more = milliseconds(hop.more);
  if (hop.because == "compute") return culprit + " computed " + more + " longer";
  if (hop.because == "imbalance")
    return culprit + " had more to exchange and computed " + more + " longer on it";
  if (hop.because == "host")
    return culprit + " was idle with nothing queued for " + more + " longer";
  if (hop.because == "transfer") return culprit + "'s transfers took " + more + " longer";
  if (hop.because == "waiting") return culprit + " had itself waited " + more + " longer";
  return "why " + culprit + " was late is not known";
}

std::string sentence(const TrailHop& hop) {
  std::string line = "rank " + std::to_string(hop.waiter) + " waited " + milliseconds(hop.waited) +
                     " (" + milliseconds(hop.exposed) + " exposed) for rank " +
                     std::to_string(hop.culprit) + " in " + std::string(op_name(hop.op));
  if (!hop.group.empty()) line += " of " + hop.group;
  if (hop.step >= 0) line += " (step " + std::to_string(hop.step) + ")";
  return line + ": " + because(hop) + "; " + std::string(hop.confidence) + ".";
}

std::vector<Cell> row_of(std::size_t trail, std::size_t depth, const TrailHop& hop) {
  return {static_cast<std::int64_t>(trail),
          static_cast<std::int64_t>(depth),
          hop.waiter,
          hop.culprit,
          std::string(op_name(hop.op)),
          hop.group.empty() ? Cell() : Cell(hop.group),
          hop.step >= 0 ? Cell(hop.step) : Cell(),
          hop.waited,
          hop.exposed,
          std::string(hop.because),
          hop.more,
          std::string(hop.confidence)};
}

Result run(const Job& job, const AnalysisOptions& options) {
  Result result;
  if (!options.explain) return result;
  Table table{.name = "explain",
              .section = {},
              .title = {},
              .columns = {{"trail", Unit::none, ""},
                          {"depth", Unit::none, ""},
                          {"waiter", Unit::none, ""},
                          {"culprit", Unit::none, ""},
                          {"op", Unit::none, ""},
                          {"group", Unit::none, ""},
                          {"step", Unit::none, ""},
                          {"waited_ns", Unit::nanoseconds, ""},
                          {"exposed_waited_ns", Unit::nanoseconds, ""},
                          {"because", Unit::none, ""},
                          {"more_ns", Unit::nanoseconds, ""},
                          {"confidence", Unit::none, ""}},
              .rows = {},
              .known = job.waits.known};
  result.lines.push_back(job.trails.empty()
                             ? "Rank " + std::to_string(*options.explain) +
                                   (job.waits.known ? " waited for nobody."
                                                    : ": waiting is not known (see the notes).")
                             : "Why rank " + std::to_string(*options.explain) +
                                   " waited, its longest exposed waits first:");
  for (std::size_t trail = 0; trail < job.trails.size(); ++trail) {
    for (std::size_t depth = 0; depth < job.trails[trail].size(); ++depth) {
      const TrailHop& hop = job.trails[trail][depth];
      result.lines.push_back(std::string(2 + 2 * depth, ' ') + sentence(hop));
      table.rows.push_back(row_of(trail, depth, hop));
    }
  }
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

extern const Analysis kExplain;
constinit const Analysis kExplain{
    .name = "explain",
    .summary = "With --explain RANK: the trail behind each of that rank's longest waits",
    .run = run,
};

}  // namespace commlens
