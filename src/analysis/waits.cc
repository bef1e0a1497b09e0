// How long ranks waited, for whom, and where that came from (docs/waiting.md).
#include <algorithm>
#include <cstdio>

#include "analysis/analysis.h"

namespace commlens {
namespace {

// What fits on a line: more ranks than this are folded to their hosts.
constexpr std::size_t kWidestMatrix = 8;

std::int64_t rank_of(const Job& job, std::uint32_t row) { return job.ranks[row].rank; }

Table sums_table(const Waits& waits) {
  return {.name = {},
          .section = "waits",
          .title = {},
          .columns = {{"total_ns", Unit::nanoseconds, ""},
                      {"undecidable_ns", Unit::nanoseconds, ""},
                      {"unattributed_ns", Unit::nanoseconds, ""}},
          .rows = {{waits.total, waits.undecidable, waits.unattributed}}};
}

std::string percent_of_waiting(Ns part, Ns whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

// What the tables below do not say of themselves.
std::string sums_sentence(const Waits& waits) {
  return "Of all waiting, " + percent_of_waiting(waits.undecidable, waits.total) +
         " could have another order of ranks within the clocks' bounds, and " +
         percent_of_waiting(waits.unattributed, waits.total) + " cannot be followed to an origin.";
}

Table rank_table(const Job& job) {
  Table table{.name = "by_rank",
              .section = "waits",
              .title = "Waiting",
              .columns = {{"rank", Unit::none, "rank"},
                          {"waited_ns", Unit::nanoseconds, "waited"},
                          {"exposed_waited_ns", Unit::nanoseconds, "of it exposed"},
                          {"caused_ns", Unit::nanoseconds, "was last"},
                          {"originated_ns", Unit::nanoseconds, "came from it"}},
              .rows = {}};
  for (std::uint32_t row = 0; row < job.ranks.size(); ++row) {
    if (job.ranks[row].run > 0) continue;
    const RankWaits& waits = job.waits.by_rank[row];
    table.rows.push_back(
        {rank_of(job, row), waits.waited, waits.exposed_waited, waits.caused, waits.originated});
  }
  // Text shows the first rows: those that matter.
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[4]) > std::get<std::int64_t>(b[4]);
  });
  return table;
}

Table blame_table(const Job& job) {
  Table table{.name = "blame",
              .section = "waits",
              .title = {},
              .columns = {{"waiter", Unit::none, ""},
                          {"culprit", Unit::none, ""},
                          {"ns", Unit::nanoseconds, ""}},
              .rows = {}};
  for (const auto& [who, time] : job.waits.blame)
    table.rows.push_back({rank_of(job, who.first), rank_of(job, who.second), time});
  return table;
}

Table origin_table(const Job& job) {
  // By rank and cause, over steps and groups.
  std::map<std::pair<std::uint32_t, Cause>, WaitSums> sums;
  for (const auto& [origin, part] : job.waits.origins) sums[{origin.rank, origin.cause}] += part;
  Table table{.name = "origins",
              .section = "waits",
              .title = {},
              .columns = {{"rank", Unit::none, ""},
                          {"cause", Unit::none, ""},
                          {"ns", Unit::nanoseconds, ""},
                          {"exposed_ns", Unit::nanoseconds, ""},
                          {"certain_exposed_ns", Unit::nanoseconds, ""}},
              .rows = {}};
  for (const auto& [key, part] : sums) {
    table.rows.push_back({rank_of(job, key.first), std::string(cause_name(key.second)), part.total,
                          part.exposed, part.certain});
  }
  return table;
}

// What a row of the matrix stands for: each rank while there are few, else each host.
struct Fold {
  std::vector<std::string> names;  // in order
  std::vector<std::size_t> of;     // by row of job.ranks
  std::string_view what = "rank";
};

Fold fold_of(const Job& job) {
  Fold fold;
  std::map<std::string, std::size_t> hosts;
  for (const RankTimeline& rank : job.ranks) {
    hosts.try_emplace(rank.host, hosts.size());
    fold.of.push_back(fold.names.size());
    if (rank.run == 0) fold.names.push_back(std::to_string(rank.rank));
  }
  if (fold.names.size() <= kWidestMatrix) return fold;
  fold = {.names = std::vector<std::string>(hosts.size()), .of = {}, .what = "host"};
  for (const auto& [name, row] : hosts) fold.names[row] = name.empty() ? "?" : name;
  for (const RankTimeline& rank : job.ranks) fold.of.push_back(hosts.at(rank.host));
  return fold;
}

// Who waited (down) for whom (across), where it fits a screen.
Table matrix_table(const Job& job) {
  const Fold fold = fold_of(job);
  Table table{.name = "matrix",
              .section = "waits",
              .title = {},
              .columns = {},
              .rows = {},
              .text_only = true,
              .one_scale = true};
  if (fold.names.size() > kWidestMatrix || fold.names.size() < 2 || job.waits.total == 0)
    return table;
  std::vector<std::vector<Ns>> sums(fold.names.size(), std::vector<Ns>(fold.names.size(), 0));
  for (const auto& [who, time] : job.waits.blame)
    sums[fold.of[who.first]][fold.of[who.second]] += time;
  std::size_t width = 0;
  for (const std::string& name : fold.names) width += name.size() + 9;
  constexpr std::size_t kScreen = 100;
  if (width > kScreen) return table;
  table.title = "Who waited (down) for whom (across)";
  table.text_rows = kWidestMatrix;
  table.columns.push_back({"waiter", Unit::none, std::string(fold.what)});
  for (const std::string& name : fold.names)
    table.columns.push_back({"ns", Unit::nanoseconds, "for " + name});
  for (std::size_t waiter = 0; waiter < sums.size(); ++waiter) {
    std::vector<Cell> cells{fold.names[waiter]};
    for (const Ns time : sums[waiter]) cells.push_back(time > 0 ? Cell(time) : Cell());
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Of inputs that are no timelines. What lay under compute, and where waiting came from, is not
// known.
Result measured_waits(const Job& job) {
  const MeasuredWaits& measured = job.measured.waits;
  Waits sums;
  sums.total = measured.total;
  sums.undecidable = measured.undecidable;
  sums.unattributed = measured.total;
  std::map<std::int64_t, std::pair<Ns, Ns>> by_rank;  // waited, caused
  for (std::size_t row = 0; row < measured.global.size(); ++row) {
    by_rank[measured.global[row]].first += measured.by_rank[row].waited;
    by_rank[measured.global[row]].second += measured.by_rank[row].caused;
  }
  std::map<std::pair<std::int64_t, std::int64_t>, Ns> blame;
  for (const auto& [who, time] : measured.blame) {
    if (measured.ranks_known)
      blame[{measured.global[who.first], measured.global[who.second]}] += time;
  }
  Table ranks = rank_table({});
  for (const auto& [rank, row] : by_rank)
    ranks.rows.push_back({rank, row.first, Cell(), row.second, Cell()});
  std::stable_sort(ranks.rows.begin(), ranks.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[3]) > std::get<std::int64_t>(b[3]);
  });
  Table pairs = blame_table({});
  for (const auto& [who, time] : blame) pairs.rows.push_back({who.first, who.second, time});
  Table origins = origin_table({});
  ranks.known = measured.ranks_known;
  ranks.title.clear();  // the table of measured waits says more
  pairs.known = measured.ranks_known;
  origins.known = false;
  Result result;
  result.tables.push_back(sums_table(sums));
  for (Table* table : {&ranks, &pairs, &origins}) result.tables.push_back(std::move(*table));
  return result;
}

Result run_waits(const Job& job, const AnalysisOptions&) {
  if (job.measured.waits.known && only_measured(job)) return measured_waits(job);
  Result result;
  if (!job.waits.known) {
    result.tables.push_back(
        {.name = "waits", .section = {}, .title = {}, .columns = {}, .rows = {}, .known = false});
    return result;
  }
  if (job.waits.total > 0) result.lines.push_back(sums_sentence(job.waits));
  result.tables.push_back(sums_table(job.waits));
  result.tables.push_back(rank_table(job));
  result.tables.push_back(blame_table(job));
  result.tables.push_back(matrix_table(job));
  result.tables.push_back(origin_table(job));
  return result;
}

}  // namespace

extern const Analysis kWaits;
constinit const Analysis kWaits{
    .name = "waits",
    .summary = "How long each rank waited, for whom, and which rank that came from",
    .run = run_waits,
};

}  // namespace commlens
