// Where a rank's time goes: compute, communication that compute hides, communication that it waits
// for, copies, nothing.
//
// The five parts of a window (docs/numbers.md) are computed with the windows (match/exposure); here
// they become rows and sentences.
#include <algorithm>
#include <cstdio>

#include "analysis/analysis.h"

namespace commlens {
namespace {

// Time over all devices of one kind.
struct Sums {
  bool any = false;
  Ns window = 0;
  Ns hidden = 0;
  Ns exposed = 0;
};

std::string percent(Ns part, Ns whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

void append_bucket_columns(std::vector<Column>& columns) {
  const Column buckets[] = {
      {"window_ns", Unit::nanoseconds, "window"},
      {"compute_only_ns", Unit::nanoseconds, "compute"},
      {"hidden_comm_ns", Unit::nanoseconds, "hidden"},
      {"exposed_comm_ns", Unit::nanoseconds, "exposed"},
      {"memory_only_ns", Unit::nanoseconds, "memory"},
      {"idle_ns", Unit::nanoseconds, "idle"},
      {"overlap_ratio", Unit::ratio, "overlap"},
      {"whole_event_overlap_ns", Unit::nanoseconds, ""},
      {"gpu_events", Unit::count, ""},
      {"comm_events", Unit::count, "comm ops"},
      {"comm_busy_ns", Unit::nanoseconds, ""},
  };
  columns.insert(columns.end(), std::begin(buckets), std::end(buckets));
}

void append_bucket_cells(const Breakdown& figures, bool on_gpu, std::vector<Cell>& cells) {
  for (const Ns bucket : {figures.window.length(), figures.compute_only, figures.hidden_comm,
                          figures.exposed_comm, figures.memory_only, figures.idle}) {
    cells.emplace_back(bucket);
  }
  const Ns comm = figures.hidden_comm + figures.exposed_comm;
  cells.push_back(comm > 0
                      ? Cell(static_cast<double>(figures.hidden_comm) / static_cast<double>(comm))
                      : Cell());
  cells.emplace_back(figures.whole_event_overlap);
  cells.emplace_back(on_gpu ? figures.gpu_events : 0);
  cells.emplace_back(figures.comm_events);
  cells.emplace_back(figures.comm_busy);
}

std::vector<Cell> rank_cells(const RankTimeline& rank, const DeviceTimeline* device) {
  std::vector<Cell> cells;
  cells.emplace_back(rank.rank);
  cells.push_back(rank.host.empty() ? Cell() : Cell(rank.host));
  cells.push_back(device != nullptr && device->device ? Cell(*device->device) : Cell());
  cells.emplace_back(static_cast<std::int64_t>(rank.run));
  return cells;
}

// Columns that tell rows apart are shown where there is something to tell.
struct Shown {
  bool host = false;
  bool device = false;
  bool run = false;
};

Shown needed_columns(const Job& job) {
  Shown shown;
  for (const RankTimeline& rank : job.ranks) {
    shown.host = shown.host || rank.host != job.ranks.front().host;
    shown.device = shown.device || rank.devices.size() > 1;
    shown.run = shown.run || rank.run > 0;
  }
  return shown;
}

Table ranks_table(const Job& job) {
  const Shown shown = needed_columns(job);
  Table table{
      .name = "ranks", .section = {}, .title = "Ranks", .columns = {}, .rows = {}, .text_rows = 16};
  table.columns = {{"rank", Unit::none, "rank"},
                   {"host", Unit::none, shown.host ? "host" : ""},
                   {"device", Unit::none, shown.device ? "GPU" : ""},
                   {"run", Unit::none, shown.run ? "run" : ""}};
  append_bucket_columns(table.columns);
  table.columns.push_back({"basis", Unit::none, ""});
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      std::vector<Cell> cells = rank_cells(rank, &device);
      append_bucket_cells(device.breakdown, device.device.has_value(), cells);
      cells.emplace_back(std::string(device.device ? "gpu" : "host"));
      table.rows.push_back(std::move(cells));
    }
    if (!rank.devices.empty()) continue;
    // Nothing ran on a GPU: no window, and so no figures; not a window of 0 ns.
    std::vector<Cell> cells = rank_cells(rank, nullptr);
    cells.resize(table.columns.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (table.columns[i].unit == Unit::count) cells[i] = std::int64_t{0};
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table steps_table(const Job& job) {
  Table table{.name = "steps", .section = {}, .title = {}, .columns = {}, .rows = {}};
  table.columns = {{"step", Unit::none, "step"},
                   {"rank", Unit::none, "rank"},
                   {"device", Unit::none, ""},
                   {"run", Unit::none, ""}};
  append_bucket_columns(table.columns);
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (const StepFigures& step : device.step_figures) {
        std::vector<Cell> cells{step.number, rank.rank,
                                device.device ? Cell(*device.device) : Cell(),
                                static_cast<std::int64_t>(rank.run)};
        append_bucket_cells(step.breakdown, device.device.has_value(), cells);
        table.rows.push_back(std::move(cells));
      }
    }
  }
  return table;
}

Sums sum_up(const Job& job, bool on_gpu) {
  Sums sums;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      if (device.device.has_value() != on_gpu) continue;
      sums.any = true;
      sums.window += device.breakdown.window.length();
      sums.hidden += device.breakdown.hidden_comm;
      sums.exposed += device.breakdown.exposed_comm;
    }
  }
  return sums;
}

std::string sentence(const Sums& sums, const std::string& of_what) {
  const Ns comm = sums.hidden + sums.exposed;
  if (comm == 0) return "No communication in " + of_what + " of this window.";
  return "Communication takes " + percent(comm, sums.window) + " of " + of_what + ": " +
         percent(sums.hidden, comm) + " of it is hidden behind compute, and " +
         percent(sums.exposed, sums.window) + " of the time is exposed communication.";
}

Result run_breakdown(const Job& job, const AnalysisOptions&) {
  Result result;
  // GPU time and host time are never added up: a range on a host holds waiting of other kinds too.
  const Sums gpu = sum_up(job, true);
  const Sums host = sum_up(job, false);
  if (gpu.any) result.lines.push_back(sentence(gpu, "the GPU time"));
  if (host.any)
    result.lines.push_back(
        sentence(host, "the host time (ranks without GPU events: host ranges are used)"));
  // A sentence over fewer ranks than were found must say so.
  const auto without = std::count_if(job.ranks.begin(), job.ranks.end(),
                                     [](const RankTimeline& rank) { return rank.devices.empty(); });
  if (without > 0 && (gpu.any || host.any)) {
    result.lines.push_back("Without figures: " + std::to_string(without) + " of " +
                           std::to_string(job.ranks.size()) +
                           " recordings (see the notes); they are in no sum.");
  }
  if (!gpu.any && !host.any && !only_measured(job)) {
    result.lines.push_back("No GPU events: nothing can be said about communication on the GPU.");
  }
  result.tables.push_back(ranks_table(job));
  result.tables.back().known = !only_measured(job);
  result.tables.push_back(steps_table(job));
  result.tables.back().known = has_timelines(job);
  return result;
}

}  // namespace

extern const Analysis kBreakdown;
constinit const Analysis kBreakdown{
    .name = "breakdown",
    .summary =
        "Where each rank's time goes: compute, hidden and exposed communication, copies, idle; by "
        "step too",
    .run = run_breakdown,
};

}  // namespace commlens
