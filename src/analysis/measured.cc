// What inputs tell that are no timelines: calls with what is known of how they were done, who
// waited in them, hosts' own timers. Stands by itself where there are timelines, too: no figure of
// those holds any of it.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "analysis/analysis.h"
#include "model/comm_stats.h"
#include "model/measured_stats.h"

namespace commlens {
namespace {

Cell text_or_null(std::string_view text) { return text.empty() ? Cell() : Cell(std::string(text)); }
Cell known_from_zero(std::int64_t value) { return value < 0 ? Cell() : Cell(value); }
Cell known_above_zero(std::int64_t value) { return value <= 0 ? Cell() : Cell(value); }

Table measured_table(std::string name, std::string title, std::vector<Column> columns) {
  return {.name = std::move(name),
          .section = "measured",
          .title = std::move(title),
          .columns = std::move(columns),
          .rows = {}};
}

Table source_table(const MeasuredJob& job) {
  Table table = measured_table("sources", "",
                               {{"path", Unit::none, ""},
                                {"format", Unit::none, ""},
                                {"host", Unit::none, ""},
                                {"process", Unit::none, ""},
                                {"rank", Unit::none, ""},
                                {"world_size", Unit::none, ""},
                                {"calls", Unit::count, ""},
                                {"timers", Unit::count, ""},
                                {"resolution_ns", Unit::nanoseconds, ""},
                                {"drops_records", Unit::none, ""}});
  for (const Measured& file : job.files) {
    table.rows.push_back(
        {file.path, std::string(file.format), text_or_null(file.host),
         known_from_zero(file.process), known_from_zero(file.rank),
         known_above_zero(file.world_size), static_cast<std::int64_t>(file.calls.size()),
         static_cast<std::int64_t>(file.timers.size()), file.resolution, file.drops_records});
  }
  return table;
}

// Calls that differ in nothing but rank, number and time.
struct CallKind {
  std::string_view format;
  std::string group;
  std::string group_name;
  std::int64_t group_size = 0;
  Op op = Op::unknown;
  std::string op_text;
  std::string caller;
  std::string dtype;
  std::string algorithm;
  std::string protocol;
  std::int32_t channels = -1;
  bool in_place = false;
  std::int64_t message = -1;
  std::int64_t message_hi = -1;
  TimedBy timed_by = TimedBy::nothing;
  std::string node;
  std::string gpu;
  // Of unknown operations those of two files, or of two benchmarks of one, may be different ones.
  std::string_view file;
  std::int32_t run = 0;
  friend auto operator<=>(const CallKind&, const CallKind&) = default;
};

struct KindSums {
  MeasuredStats stats;
  std::int64_t rows = 0;
  std::int64_t bytes = -1;  // of one call
  Ns straggle = -1;
  double printed_busbw = -1;
  std::set<std::int32_t> ranks;
};

CallKind kind_of(const Measured& file, const MeasuredCall& call) {
  const MeasuredGroup& group = file.groups[call.group];
  return {.format = file.format,
          .group = group.id,
          .group_name = group.name,
          .group_size = group.size,
          .op = call.op,
          .op_text = std::string(file.text(call.op_text)),
          .caller = std::string(file.text(call.caller)),
          .dtype = std::string(file.text(call.dtype)),
          .algorithm = std::string(file.text(call.algorithm)),
          .protocol = std::string(file.text(call.protocol)),
          .channels = call.channels,
          .in_place = call.in_place,
          .message = call.message,
          .message_hi = call.message_hi,
          .timed_by = call.timed_by,
          .node = std::string(file.text(call.node)),
          .gpu = std::string(file.text(call.gpu)),
          .file = call.op == Op::unknown ? std::string_view(file.path) : std::string_view(),
          .run = call.op == Op::unknown ? call.run : 0};
}

void add_call(KindSums& sums, const MeasuredCall& call, std::int64_t group_size) {
  if (call.repeated) return;
  sums.stats.add(call, group_size);
  ++sums.rows;
  sums.bytes = call.bytes;
  if (call.rank >= 0) sums.ranks.insert(call.rank);
  Ns straggle = 0;
  if (call.straggle >= 0 &&
      !__builtin_add_overflow(std::max<Ns>(sums.straggle, 0), call.straggle, &straggle))
    sums.straggle = straggle;
  // Of several means no mean can be made.
  sums.printed_busbw = sums.rows == 1 ? call.printed_busbw : -1;
}

using Kinds = std::map<CallKind, KindSums>;

// A file has many calls and few kinds: these are told apart by numbers first.
Kinds kinds_of(const MeasuredJob& job) {
  using Numbers =
      std::tuple<std::uint32_t, Op, StringId, StringId, StringId, StringId, StringId, std::int32_t,
                 bool, std::int64_t, std::int64_t, TimedBy, StringId, StringId, std::int32_t>;
  Kinds kinds;
  for (const Measured& file : job.files) {
    std::map<Numbers, KindSums*> of_file;
    for (const MeasuredCall& call : file.calls) {
      KindSums*& sums =
          of_file[{call.group, call.op, call.op_text, call.caller, call.dtype, call.algorithm,
                   call.protocol, call.channels, call.in_place, call.message, call.message_hi,
                   call.timed_by, call.node, call.gpu, call.run}];
      if (sums == nullptr) sums = &kinds[kind_of(file, call)];
      add_call(*sums, call, file.groups[call.group].size);
    }
  }
  return kinds;
}

// Those that are not of CommStats.
std::vector<Column> call_columns() {
  return {{"format", Unit::none, ""},
          {"group", Unit::none, ""},
          {"group_name", Unit::none, ""},
          {"op", Unit::none, "operation"},
          {"name", Unit::none, ""},
          {"caller", Unit::none, ""},
          {"group_size", Unit::none, "ranks"},
          {"dtype", Unit::none, ""},
          {"message_bytes", Unit::bytes, ""},
          {"message_hi", Unit::bytes, ""},
          {"size_bytes", Unit::bytes, "size"},
          {"algorithm", Unit::none, "algorithm"},
          {"protocol", Unit::none, "protocol"},
          {"channels", Unit::none, "channels"},
          {"in_place", Unit::none, ""},
          {"timed_by", Unit::none, ""},
          {"node", Unit::none, ""},
          {"gpu", Unit::none, ""},
          {"run", Unit::none, ""},
          {"recording_ranks", Unit::count, ""},
          {"straggle_ns", Unit::nanoseconds, ""},
          {"printed_busbw_gbs", Unit::gigabytes_per_second, ""}};
}

Table call_table(const MeasuredJob& job) {
  Table table = measured_table("calls", "Measured calls", call_columns());
  const std::size_t own = table.columns.size();
  CommStats::append_columns(table.columns);
  // What needs a timeline is null in each row: it has no column here.
  const std::set<std::string_view> without = {"name_only", "hidden_ns", "exposed_ns",
                                              "exclusive_exposed_ns"};
  const std::set<std::string_view> not_in_text = {"bytes", "busy_ns", "p50_ns", "max_ns",
                                                  "bandwidth_kind"};
  std::vector<std::size_t> dropped;
  for (std::size_t i = table.columns.size(); i-- > own;) {
    Column& column = table.columns[i];
    if (not_in_text.contains(column.name)) column.heading.clear();
    if (column.name == "mean_ns") column.heading = "mean";
    if (column.name == "algbw_gbs") column.heading = "algbw";
    if (column.name == "busbw_gbs") column.heading = "busbw";
    if (without.contains(column.name)) dropped.push_back(i);
  }
  Kinds kinds = kinds_of(job);
  std::vector<std::pair<const CallKind*, KindSums*>> sorted;
  for (auto& [kind, sums] : kinds) sorted.emplace_back(&kind, &sums);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->stats.time() > b.second->stats.time();
  });
  // Shown where any row tells it.
  const auto show_if_any = [&](std::string_view name, std::string_view heading, auto tells) {
    if (std::none_of(sorted.begin(), sorted.end(),
                     [&](const auto& row) { return tells(*row.first, *row.second); }))
      return;
    std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& column) {
      return column.name == name;
    })->heading = heading;
  };
  show_if_any("in_place", "in place",
              [](const CallKind& kind, const KindSums&) { return kind.in_place; });
  show_if_any("node", "node",
              [](const CallKind& kind, const KindSums&) { return !kind.node.empty(); });
  show_if_any("gpu", "GPU",
              [](const CallKind& kind, const KindSums&) { return !kind.gpu.empty(); });
  show_if_any("run", "run", [](const CallKind& kind, const KindSums&) { return kind.run > 1; });
  // Of one rank, where that is not the size that all columns of bandwidth take.
  show_if_any("message_bytes", "message", [](const CallKind& kind, const KindSums& sums) {
    return kind.message >= 0 && kind.message != sums.bytes;
  });
  show_if_any("message_hi", "below",
              [](const CallKind& kind, const KindSums&) { return kind.message_hi >= 0; });
  show_if_any("straggle_ns", "beyond fastest",
              [](const CallKind&, const KindSums& sums) { return sums.straggle >= 0; });
  show_if_any("printed_busbw_gbs", "busbw printed",
              [](const CallKind&, const KindSums& sums) { return sums.printed_busbw >= 0; });
  for (const auto& [kind, sums] : sorted) {
    std::vector<Cell> cells{std::string(kind->format),
                            text_or_null(kind->group),
                            text_or_null(kind->group_name),
                            std::string(op_name(kind->op)),
                            text_or_null(kind->op_text),
                            text_or_null(kind->caller),
                            known_above_zero(kind->group_size),
                            text_or_null(kind->dtype),
                            known_from_zero(kind->message),
                            known_from_zero(kind->message_hi),
                            known_from_zero(sums->bytes),
                            text_or_null(kind->algorithm),
                            text_or_null(kind->protocol),
                            known_from_zero(kind->channels),
                            kind->in_place,
                            text_or_null(timed_by_name(kind->timed_by)),
                            text_or_null(kind->node),
                            text_or_null(kind->gpu),
                            known_above_zero(kind->run),
                            known_above_zero(static_cast<std::int64_t>(sums->ranks.size())),
                            known_from_zero(sums->straggle),
                            sums->printed_busbw < 0 ? Cell() : Cell(sums->printed_busbw)};
    sums->stats.append_cells(cells);
    for (const std::size_t i : dropped) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(i));
    table.rows.push_back(std::move(cells));
  }
  for (const std::size_t i : dropped)
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(i));
  return table;
}

Table sequence_table(const MeasuredJob& job) {
  Table table = measured_table("sequences", "",
                               {{"group", Unit::none, ""},
                                {"group_name", Unit::none, ""},
                                {"op", Unit::none, ""},
                                {"group_size", Unit::none, ""},
                                {"recording_ranks", Unit::count, ""},
                                {"matched", Unit::count, ""},
                                {"partial", Unit::count, ""},
                                {"alone", Unit::count, ""},
                                {"mismatched", Unit::count, ""},
                                {"gaps", Unit::count, ""},
                                {"repeated", Unit::count, ""}});
  for (const MeasuredSequence& row : job.sequences) {
    table.rows.push_back({row.group, text_or_null(row.name), std::string(op_name(row.op)),
                          known_above_zero(row.size), row.reporting, row.matched, row.partial,
                          row.alone, row.mismatched, row.gaps, row.repeated});
  }
  return table;
}

Table wait_table(const MeasuredJob& job) {
  Table table = measured_table("waits", "Waiting in calls that all ranks recorded",
                               {{"group", Unit::none, "communicator"},
                                {"rank", Unit::none, "rank in it"},
                                {"host", Unit::none, "host"},
                                {"process", Unit::none, ""},
                                {"calls", Unit::count, "calls"},
                                {"waited_ns", Unit::nanoseconds, "waited"},
                                {"last", Unit::count, "came last"},
                                {"caused_ns", Unit::nanoseconds, "others waited for it"}});
  table.known = job.waits.known;
  for (const MeasuredRankWaits& row : job.waits.by_rank) {
    table.rows.push_back({row.group, row.rank, text_or_null(row.host), known_from_zero(row.process),
                          row.calls, row.waited, row.last, row.caused});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a.back()) > std::get<std::int64_t>(b.back());
  });
  return table;
}

// The mean of what some lines tell.
struct MeanOf {
  double sum = 0;
  std::int64_t lines = 0;
  void add(Ns value) {
    if (value < 0) return;
    sum += static_cast<double>(value);
    ++lines;
  }
  // Null where not all of `of` lines tell it.
  Cell cell(std::int64_t of) const {
    if (lines == 0 || lines != of) return {};
    return static_cast<Ns>(sum / static_cast<double>(lines) + 0.5);
  }
};

// Over the lines that name a timer.
struct TimerSums {
  std::int64_t lines = 0;
  MeanOf least;
  MeanOf most;
  MeanOf one;
  Ns largest = 0;
  std::map<std::int64_t, std::int64_t> slowest;  // lines by rank
};

// The rank that was slowest in most of all lines.
Cell slowest_rank(const TimerSums& row) {
  for (const auto& [rank, lines] : row.slowest) {
    if (2 * lines > row.lines) return rank;
  }
  return {};
}

// Columns that no row fills are not shown.
void hide_empty_columns(Table& table) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool any = std::any_of(table.rows.begin(), table.rows.end(), [i](const auto& row) {
      return !std::holds_alternative<std::monostate>(row[i]);
    });
    if (!any) table.columns[i].heading.clear();
  }
}

Table timer_table(const MeasuredJob& job) {
  Table table = measured_table("timers", "Timers of the training loop, per iteration",
                               {{"path", Unit::none, ""},
                                {"name", Unit::none, "timer"},
                                {"lines", Unit::count, "lines"},
                                {"least_ns", Unit::nanoseconds, "fastest rank"},
                                {"most_ns", Unit::nanoseconds, "slowest rank"},
                                {"spread_ns", Unit::nanoseconds, "between them"},
                                {"slowest_rank", Unit::none, "slowest is rank"},
                                {"one_rank_ns", Unit::nanoseconds, "one rank"},
                                {"largest_ns", Unit::nanoseconds, "largest"}});
  std::vector<std::pair<Ns, std::vector<Cell>>> rows;
  for (const Measured& file : job.files) {
    std::map<std::string, TimerSums> sums;
    for (const MeasuredTimer& timer : file.timers) {
      TimerSums& row = sums[timer.name];
      ++row.lines;
      row.least.add(timer.least);
      row.most.add(timer.most);
      row.one.add(timer.one);
      row.largest = std::max({row.largest, timer.most, timer.one});
      if (timer.slowest >= 0) ++row.slowest[timer.slowest];
    }
    for (const auto& [name, row] : sums) {
      const Cell least = row.least.cell(row.lines);
      const Cell most = row.most.cell(row.lines);
      const bool both = std::holds_alternative<Ns>(least) && std::holds_alternative<Ns>(most);
      // Where some lines tell all ranks and others one, no mean is of either.
      const Cell one = row.one.cell(row.lines);
      const Cell& shown = std::holds_alternative<Ns>(most) ? most : one;
      rows.emplace_back(
          std::holds_alternative<Ns>(shown) ? std::get<Ns>(shown) : row.largest,
          std::vector<Cell>{file.path, name, row.lines, least, most,
                            both ? Cell(std::get<Ns>(most) - std::get<Ns>(least)) : Cell(),
                            slowest_rank(row), one, row.largest});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [time, cells] : rows) table.rows.push_back(std::move(cells));
  hide_empty_columns(table);
  return table;
}

// Nearest rank.
Ns nearest_rank(const std::vector<Ns>& sorted, std::size_t percent) {
  return sorted[std::max<std::size_t>((sorted.size() * percent + 99) / 100, 1) - 1];
}

Table training_table(const MeasuredJob& job) {
  Table table =
      measured_table("training", "Training iterations, as the log says",
                     {{"path", Unit::none, ""},
                      {"lines", Unit::count, "lines"},
                      {"first_iteration", Unit::none, "first"},
                      {"last_iteration", Unit::none, "last"},
                      {"mean_ns", Unit::nanoseconds, "mean"},
                      {"p50_ns", Unit::nanoseconds, "median"},
                      {"p95_ns", Unit::nanoseconds, ""},
                      {"max_ns", Unit::nanoseconds, "longest"},
                      {"mean_tflops_per_gpu", Unit::gigabytes_per_second, "TFLOP/s per GPU"}});
  for (const Measured& file : job.files) {
    if (file.iterations.empty()) continue;
    std::vector<Ns> times;
    double sum = 0;
    double tflops = 0;
    std::int64_t with_tflops = 0;
    for (const MeasuredIteration& row : file.iterations) {
      tflops += std::max(row.tflops_per_gpu, 0.0);
      with_tflops += row.tflops_per_gpu >= 0 ? 1 : 0;
      if (row.time < 0) continue;
      times.push_back(row.time);
      sum += static_cast<double>(row.time);
    }
    std::sort(times.begin(), times.end());
    std::vector<Cell> cells{file.path, static_cast<std::int64_t>(file.iterations.size()),
                            known_from_zero(file.iterations.front().iteration),
                            known_from_zero(file.iterations.back().iteration)};
    if (times.empty()) {
      cells.resize(8);
    } else {
      cells.emplace_back(static_cast<Ns>(sum / static_cast<double>(times.size()) + 0.5));
      cells.emplace_back(nearest_rank(times, 50));
      cells.emplace_back(nearest_rank(times, 95));
      cells.emplace_back(times.back());
    }
    cells.push_back(with_tflops > 0 ? Cell(tflops / static_cast<double>(with_tflops)) : Cell());
    table.rows.push_back(std::move(cells));
  }
  hide_empty_columns(table);
  return table;
}

std::string shown_seconds(Ns time) {
  char text[32];
  const auto value = static_cast<double>(time);
  if (time < 1'000'000) {
    std::snprintf(text, sizeof text, "%.0f us", value / 1e3);
  } else if (time < 10'000'000'000) {
    std::snprintf(text, sizeof text, "%.1f ms", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.1f s", value / 1e9);
  }
  return text;
}

std::string shown_rank(const MeasuredJob& job, std::size_t row) {
  const MeasuredRankWaits& waits = job.waits.by_rank[row];
  if (job.waits.ranks_known) return "rank " + std::to_string(job.waits.global[row]);
  return "rank " + std::to_string(waits.rank) + " of communicator " + waits.group;
}

// The rank that others waited for most.
// By row of `by_rank`; where ranks of the job are known, a rank's first row has those of all its
// communicators: in one alone another may seem the worst.
std::vector<MeasuredRankWaits> waits_by_rank(const MeasuredWaits& waits) {
  std::vector<MeasuredRankWaits> rows = waits.by_rank;
  if (!waits.ranks_known) return rows;
  std::map<std::int64_t, std::size_t> first;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto [place, is_new] = first.try_emplace(waits.global[row], row);
    if (is_new) continue;
    MeasuredRankWaits& all = rows[place->second];
    all.caused += rows[row].caused;
    all.last += rows[row].last;
    all.calls += rows[row].calls;
    rows[row] = {};
  }
  return rows;
}

std::string wait_sentence(const MeasuredJob& job) {
  const MeasuredWaits& waits = job.waits;
  const std::vector<MeasuredRankWaits> rows = waits_by_rank(waits);
  const auto most = std::max_element(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.caused < b.caused; });
  const std::string waited =
      "In calls that all ranks recorded they waited " + shown_seconds(waits.total) + " in all";
  if (most->caused == 0)
    return waited +
           "; for whom cannot be told: in each, several may have come last, or not all "
           "were timed by the GPU.";
  const auto row = static_cast<std::size_t>(most - rows.begin());
  const double decided = 1.0 - static_cast<double>(waits.undecidable) /
                                   static_cast<double>(std::max<Ns>(waits.total, 1));
  char share[32];
  std::snprintf(share, sizeof share, "%.0f %%", 100 * decided);
  return waited + ", most for " + shown_rank(job, row) + ": " + shown_seconds(most->caused) +
         ", last in " + std::to_string(most->last) + " of " + std::to_string(most->calls) +
         " calls. This takes it that all leave such a call together; who was last is sure to the "
         "microsecond for " +
         share + " of that time.";
}

std::vector<std::string> sentences(const Job& job) {
  std::vector<std::string> lines;
  const MeasuredJob& measured = job.measured;
  const std::string files =
      std::to_string(measured.files.size()) + (measured.files.size() == 1 ? " input" : " inputs");
  if (!only_measured(job)) {
    lines.push_back(files +
                    " measured without a timeline: in tables of their own, and in no other "
                    "figure.");
  } else {
    lines.push_back("No timeline in " + files +
                    ": times are those of calls by themselves; what compute hid, and what came "
                    "after what, is not known.");
  }
  if (measured.waits.total > 0) lines.push_back(wait_sentence(measured));
  const bool timers = std::any_of(measured.files.begin(), measured.files.end(),
                                  [](const Measured& file) { return !file.timers.empty(); });
  const bool calls_only =
      std::any_of(measured.files.begin(), measured.files.end(), [](const Measured& file) {
        return std::any_of(file.calls.begin(), file.calls.end(), [](const MeasuredCall& call) {
          return call.timed_by == TimedBy::enqueue_loop;
        });
      });
  if (calls_only)
    lines.push_back(
        "Times of nccl-tests with -C are those of the host's calls alone: no bandwidth follows.");
  if (timers)
    lines.push_back(
        "Timers are the hosts' stopwatches: they overlap, some contain others, and none is one "
        "operation.");
  return lines;
}

Result run_measured(const Job& job, const AnalysisOptions&) {
  Result result;
  if (job.measured.empty()) {
    result.tables.push_back({.name = "measured",
                             .section = {},
                             .title = {},
                             .columns = {},
                             .rows = {},
                             .known = false});
    return result;
  }
  result.lines = sentences(job);
  result.tables.push_back(source_table(job.measured));
  result.tables.push_back(call_table(job.measured));
  result.tables.push_back(sequence_table(job.measured));
  result.tables.push_back(wait_table(job.measured));
  result.tables.push_back(timer_table(job.measured));
  result.tables.push_back(training_table(job.measured));
  return result;
}

}  // namespace

extern const Analysis kMeasured;
constinit const Analysis kMeasured{
    .name = "measured",
    .summary = "What inputs tell that are no timelines: Inspector records, benchmarks, logs",
    .run = run_measured,
};

}  // namespace commlens
