// Why one rank waited: the trail behind each of its longest waits (--explain RANK). A rank that
// others wait for has little to tell by its own waits: then it is said whose explanation leads to
// it.
#include <algorithm>
#include <cstdio>
#include <optional>

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

std::optional<std::uint32_t> row_of_rank(const Job& job, std::int64_t rank) {
  for (std::uint32_t row = 0; row < job.ranks.size(); ++row) {
    if (job.ranks[row].rank == rank && job.ranks[row].run == 0) return row;
  }
  return std::nullopt;
}

// The rank that waited longest for this one; nothing where nobody did.
std::optional<std::int64_t> longest_waiter(const Job& job, std::uint32_t culprit) {
  std::optional<std::int64_t> longest;
  Ns most = 0;
  for (const auto& [who, time] : job.waits.blame) {
    if (who.second != culprit || time <= most) continue;
    longest = job.ranks[who.first].rank;
    most = time;
  }
  return longest;
}

std::string of_another(std::int64_t rank) {
  return "--explain " + std::to_string(rank) + " follows a rank that waits for it.";
}

// Before the trails.
std::string opening(const Job& job, std::int64_t rank) {
  const std::string number = std::to_string(rank);
  if (!job.waits.known) return "Rank " + number + ": waiting is not known (see the notes).";
  if (!job.trails.empty())
    return "Why rank " + number + " waited, its longest exposed waits first:";
  const auto row = row_of_rank(job, rank);
  std::string line = "Rank " + number + " waited for nobody";
  if (row && job.waits.by_rank[*row].waited > 0) line += " outside its own compute";
  const auto waiter = row ? longest_waiter(job, *row) : std::nullopt;
  return line + (waiter ? "; " + of_another(*waiter) : ".");
}

// Behind them: where more came from this rank than it waited. Empty where not.
std::string closing(const Job& job, std::int64_t rank) {
  const auto row = row_of_rank(job, rank);
  if (!row || job.trails.empty()) return {};
  const RankWaits& own = job.waits.by_rank[*row];
  const auto waiter = longest_waiter(job, *row);
  if (!waiter || own.originated <= own.waited) return {};
  return "More waiting came from rank " + std::to_string(rank) + " than it waited itself; " +
         of_another(*waiter);
}

Result run_explain(const Job& job, const AnalysisOptions& options) {
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
  result.lines.push_back(opening(job, *options.explain));
  for (std::size_t trail = 0; trail < job.trails.size(); ++trail) {
    for (std::size_t depth = 0; depth < job.trails[trail].size(); ++depth) {
      const TrailHop& hop = job.trails[trail][depth];
      result.lines.push_back(std::string(2 + 2 * depth, ' ') + sentence(hop));
      table.rows.push_back(row_of(trail, depth, hop));
    }
  }
  if (std::string line = closing(job, *options.explain); !line.empty())
    result.lines.push_back(std::move(line));
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

extern const Analysis kExplain;
constinit const Analysis kExplain{
    .name = "explain",
    .summary = "With --explain RANK: the trail behind each of that rank's longest waits",
    .run = run_explain,
};

}  // namespace commlens
