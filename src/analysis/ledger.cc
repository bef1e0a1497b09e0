// What a step is made of (docs/ledger.md): a waterfall for people, rows for programs.
#include "model/ledger.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "analysis/analysis.h"
#include "model/bandwidth.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

struct RowName {
  std::string_view json;
  std::string_view text;
};
// By LedgerRow.
constexpr RowName kNames[kLedgerRowCount] = {
    {"compute_ns", "compute"},
    {"transfer_ns", "transfer"},
    {"link_deficit_ns", "link deficit"},
    {"wait_compute_ns", "wait, for compute"},
    {"wait_host_ns", "wait, for a host"},
    {"wait_link_ns", "wait, for links"},
    {"wait_imbalance_ns", "wait, for more bytes"},
    {"wait_undecided_ns", "wait, undecided"},
    {"memory_ns", "memory"},
    {"host_ns", "host"},
    {"unexplained_ns", "unexplained"},
};

constexpr std::string_view kSourceWords[] = {"none", "--peak", "--calibrate", "the trace's own fit",
                                             "a model of the hardware"};

std::vector<RateSource> sources_of(const Ledger& ledger) {
  std::vector<RateSource> sources;
  for (const AchievableRate& rate : ledger.rates) sources.push_back(rate.from);
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

template <class Name>
std::string joined(const std::vector<RateSource>& sources, std::string_view between, Name name) {
  std::string text;
  for (const RateSource source : sources)
    text += (text.empty() ? "" : std::string(between)) + std::string(name(source));
  return text;
}

std::string plural(std::int64_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

std::string title_of(const Ledger& ledger) {
  std::string title = ledger.steps > 0
                          ? "What a step is made of: mean of " + plural(ledger.steps, "step") +
                                " on " + plural(ledger.gpus, "GPU")
                          : "What the window is made of, on " + plural(ledger.gpus, "GPU") +
                                " (no steps are known)";
  const std::string sources = joined(sources_of(ledger), ", then ", [](RateSource source) {
    return kSourceWords[static_cast<std::size_t>(source)];
  });
  if (!sources.empty()) title += "; links by " + sources;
  return title;
}

// Each bar begins where the one above it ends.
std::string bar(Ns before, Ns part, Ns whole) {
  constexpr double kWidth = 50;
  const auto place = [whole](Ns at) {
    return static_cast<std::size_t>(static_cast<double>(at) / static_cast<double>(whole) * kWidth +
                                    0.5);
  };
  const std::size_t from = place(before);
  const std::size_t length = std::max<std::size_t>(1, place(before + part) - from);
  return std::string(from, ' ') + std::string(length, '#');
}

// Rows of less than a thousandth are one row in text.
constexpr Ns kSmallOf = 1'000;

Table waterfall(const Ledger& ledger) {
  Table table{.name = "waterfall",
              .section = "ledger",
              .title = title_of(ledger),
              .columns = {{"row", Unit::none, "part"},
                          {"ns", Unit::nanoseconds, "a step"},
                          {"share", Unit::ratio, "share"},
                          {"bar", Unit::none, " "}},
              .rows = {},
              .text_only = true};
  if (ledger.step <= 0) return table;
  Ns before = 0;
  const auto add = [&](std::string name, Ns part) {
    if (part == 0) return;
    table.rows.push_back({std::move(name), part,
                          static_cast<double>(part) / static_cast<double>(ledger.step),
                          bar(before, part, ledger.step)});
    before += part;
  };
  Ns small = 0;
  std::int64_t smalls = 0;
  for (std::size_t row = 0; row < kLedgerRowCount; ++row) {
    const Ns part = ledger.rows[row];
    if (part * kSmallOf < ledger.step && part > 0) {
      small += part;
      ++smalls;
    } else {
      add(std::string(kNames[row].text), part);
    }
  }
  add(plural(smalls, "smaller row"), small);
  return table;
}

Table sums_table(const Ledger& ledger) {
  Table table{.name = {}, .section = "ledger", .title = {}, .columns = {}, .rows = {{}}};
  const auto add = [&table](std::string_view name, Unit unit, Cell cell) {
    table.columns.push_back({name, unit, ""});
    table.rows.front().push_back(std::move(cell));
  };
  add("step_ns", Unit::nanoseconds, ledger.step);
  for (std::size_t row = 0; row < kLedgerRowCount; ++row)
    add(kNames[row].json, Unit::nanoseconds, ledger.rows[row]);
  add("wait_or_transfer_ns", Unit::nanoseconds, ledger.wait_or_transfer);
  add("window_ns", Unit::nanoseconds, ledger.window);
  add("steps", Unit::count, ledger.steps > 0 ? Cell(ledger.steps) : Cell());
  add("gpus", Unit::count, ledger.gpus);
  add("gpus_placed", Unit::count, ledger.gpus_placed);
  const std::string from = joined(sources_of(ledger), ",", rate_source_name);
  add("achievable_from", Unit::none, from.empty() ? Cell() : Cell(from));
  return table;
}

Cell positive(double value) { return value > 0 ? Cell(value) : Cell(); }

std::vector<Cell> rate_cells(const AchievableRate& rate) {
  const auto factor = bus_factor(rate.kind.op, static_cast<int>(rate.kind.ranks));
  const bool fitted = rate.from == RateSource::fit;
  const auto half = rate.fit.half_bandwidth_bytes();
  return {std::string(op_name(rate.kind.op)),
          rate.kind.ranks > 0 ? Cell(rate.kind.ranks) : Cell(),
          rate.kind.hosts > 0 ? Cell(rate.kind.hosts) : Cell(),
          std::string(rate_source_name(rate.from)),
          rate.detail.empty() ? Cell() : Cell(rate.detail),
          rate.operations,
          fitted && rate.fit.sizes > 1 ? Cell(rate.fit.alpha_ns) : Cell(),
          fitted && rate.fit.sizes > 1 ? Cell(rate.fit.alpha_error_ns) : Cell(),
          positive(rate.algbw_gbs),
          factor ? positive(rate.algbw_gbs * *factor) : Cell(),
          fitted ? Cell(rate.fit.spread) : Cell(),
          fitted ? Cell(rate.fit.samples) : Cell(),
          fitted ? Cell(rate.fit.sizes) : Cell(),
          fitted && half ? Cell(*half) : Cell()};
}

Table rates_table(const Ledger& ledger) {
  Table table{.name = "rates",
              .section = "ledger",
              .title = {},
              .columns = {{"op", Unit::none, ""},
                          {"group_size", Unit::count, ""},
                          {"hosts", Unit::count, ""},
                          {"from", Unit::none, ""},
                          {"detail", Unit::none, ""},
                          {"count", Unit::count, ""},
                          {"alpha_ns", Unit::nanoseconds, ""},
                          {"alpha_error_ns", Unit::nanoseconds, ""},
                          {"algbw_gbs", Unit::gigabytes_per_second, ""},
                          {"busbw_gbs", Unit::gigabytes_per_second, ""},
                          {"spread", Unit::ratio, ""},
                          {"samples", Unit::count, ""},
                          {"sizes", Unit::count, ""},
                          {"half_bandwidth_bytes", Unit::bytes, ""}},
              .rows = {}};
  for (const AchievableRate& rate : ledger.rates) table.rows.push_back(rate_cells(rate));
  return table;
}

// What the rows do not say of themselves.
std::vector<std::string> ledger_sentences(const Job& job) {
  const Ledger& ledger = job.ledger;
  std::vector<std::string> lines;
  if (ledger.gpus > 1 && ledger.gpus_placed < ledger.gpus)
    lines.push_back("The clocks of " + std::to_string(ledger.gpus - ledger.gpus_placed) + " of " +
                    plural(ledger.gpus, "GPU") +
                    " are not related to the others': their windows are taken to begin together.");
  std::vector<std::int64_t> unknown;
  for (const RankTimeline& rank : job.ranks) {
    const bool any = std::any_of(
        rank.devices.begin(), rank.devices.end(),
        [](const DeviceTimeline& device) { return device.device && !device.launches_known; });
    if (any && rank.run == 0) unknown.push_back(rank.rank);
  }
  if (!unknown.empty())
    lines.push_back("More than a tenth of the launches of " +
                    std::string(unknown.size() == 1 ? "rank " : "ranks ") + format_ranks(unknown) +
                    " is not recorded: there, time without GPU work is unexplained, not host.");
  return lines;
}

Result run_ledger(const Job& job, const AnalysisOptions&) {
  Result result{.lines = {}, .tables = {}, .first = true};
  if (!job.ledger.known) {
    result.tables.push_back(
        {.name = "ledger", .section = {}, .title = {}, .columns = {}, .rows = {}, .known = false});
    return result;
  }
  result.lines = ledger_sentences(job);
  result.tables.push_back(waterfall(job.ledger));
  result.tables.push_back(sums_table(job.ledger));
  result.tables.push_back(rates_table(job.ledger));
  return result;
}

}  // namespace

extern const Analysis kLedger;
constinit const Analysis kLedger{
    .name = "ledger",
    .summary = "What the time of a step is made of, without remainder",
    .run = run_ledger,
};

}  // namespace commlens
