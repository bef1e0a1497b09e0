// Communication summed by any key or pair of keys: dtype, stream, step, rank, and what the user
// asks for with --by.
#include <algorithm>
#include <bit>
#include <map>

#include "analysis/analysis.h"
#include "model/comm_stats.h"

namespace commlens {
namespace {

// Where a communication stands: everything that it can be summed by.
struct Place {
  const RankTimeline& rank;
  const DeviceTimeline& device;
  const CommOp& op;
  const std::int64_t* step;  // null: outside every step, or steps don't matter
};

constexpr std::string_view kKeys[] = {"op",   "group", "size",   "dtype", "stream",
                                      "step", "rank",  "device", "host",  "evidence"};

std::string stream_text(const Place& place) {
  if (!place.op.stream.valid()) return {};
  const Stream& stream = place.rank.recording.streams[place.op.stream.index()];
  // The context matters only where one device has several.
  const auto& streams = place.rank.recording.streams;
  const bool several = std::any_of(streams.begin(), streams.end(), [&](const Stream& other) {
    return other.device == stream.device && other.context != stream.context;
  });
  return std::to_string(stream.stream) +
         (several ? " of context " + std::to_string(stream.context) : "");
}

std::string group_text(const Place& place) {
  if (place.op.group < 0) return {};
  return group_label(place.rank.groups[static_cast<std::size_t>(place.op.group)], place.rank.rank);
}

// The value of a key; unlike a table's cell, it has an order.
using Value = std::variant<std::monostate, std::int64_t, std::string>;

Value text_value(std::string text) { return text.empty() ? Value() : Value(std::move(text)); }

Cell cell_of(const Value& value) {
  return std::visit([](const auto& held) { return Cell(held); }, value);
}

// The value of one key; null where it is not known.
Value value_of(std::string_view key, const Place& place) {
  if (key == "op") return std::string(op_name(place.op.op));
  if (key == "group") return text_value(group_text(place));
  if (key == "dtype")
    return text_value(std::string(place.rank.recording.strings.get(place.op.dtype)));
  if (key == "stream") return text_value(stream_text(place));
  if (key == "rank") return place.rank.rank;
  if (key == "device") return place.device.device ? Value(*place.device.device) : Value();
  if (key == "host") return text_value(place.rank.host);
  if (key == "evidence") return std::string(evidence_name(place.op.evidence));
  if (key == "step") return place.step != nullptr ? Value(*place.step) : Value();
  // size: the lower end of its power of two
  if (!place.op.bytes) return {};
  return *place.op.bytes <= 0 ? std::int64_t{0}
                              : static_cast<std::int64_t>(
                                    std::bit_floor(static_cast<std::uint64_t>(*place.op.bytes)));
}

class Slice {
 public:
  explicit Slice(const std::vector<std::string>& keys) : keys_(keys) {}

  void add(const Place& place, const Exposure& figures, std::optional<Ns> transfer) {
    std::vector<Value> values;
    for (const std::string& key : keys_) values.push_back(value_of(key, place));
    sums_[std::move(values)].add(place.op, figures, transfer);
  }

  Table table() {
    std::string name;
    for (const std::string& key : keys_) name += (name.empty() ? "" : ",") + key;
    Table table{.name = name, .section = "by", .title = {}, .columns = {}, .rows = {}};
    for (const std::string& key : keys_)
      table.columns.push_back(
          {column_name(key), key == "size" ? Unit::bytes : Unit::none,
           key == "size" ? std::string("size from") : std::string(column_name(key))});
    CommStats::append_columns(table.columns);
    for (auto& [values, stats] : sums_) {
      std::vector<Cell> cells;
      for (const Value& value : values) cells.push_back(cell_of(value));
      stats.append_cells(cells);
      table.rows.push_back(std::move(cells));
    }
    return table;
  }

 private:
  // Columns hold views; the keys' own names live for ever.
  static std::string_view column_name(std::string_view key) {
    return *std::find(std::begin(kKeys), std::end(kKeys), key);
  }

  const std::vector<std::string>& keys_;
  std::map<std::vector<Value>, CommStats> sums_;
};

bool names_step(const std::vector<std::string>& keys) {
  return std::find(keys.begin(), keys.end(), "step") != keys.end();
}

Table sum_by(const Job& job, const std::vector<std::string>& keys) {
  Slice slice(keys);
  const bool by_step = names_step(keys);
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      const auto add = [&](const std::int64_t* step, std::size_t first,
                           const std::vector<Exposure>& exposures) {
        for (std::size_t i = 0; i < exposures.size(); ++i) {
          if (!exposures[i].in_window) continue;
          slice.add({.rank = rank, .device = device, .op = device.comm[first + i], .step = step},
                    exposures[i], transfer_of(job, rank, device, first + i));
        }
      };
      if (!by_step) add(nullptr, 0, device.exposures);
      if (!by_step) continue;
      for (const StepFigures& step : device.step_figures)
        add(&step.number, step.first_op, step.exposures);
    }
  }
  Table table = slice.table();
  table.known = has_timelines(job);
  table.footnote = kCommFootnote;
  return table;
}

Result run_slices(const Job& job, const AnalysisOptions& options) {
  static const std::vector<std::vector<std::string>> kAlways = {
      {"dtype"}, {"stream"}, {"step"}, {"rank"}};
  Result result;
  for (const auto& keys : kAlways) {
    if (std::find(options.by.begin(), options.by.end(), keys) == options.by.end())
      result.tables.push_back(sum_by(job, keys));
  }
  for (const auto& keys : options.by) {
    result.tables.push_back(sum_by(job, keys));
    Table& table = result.tables.back();
    std::string title;
    for (const std::string& key : keys) title += (title.empty() ? "By " : " and ") + key;
    table.title = title;
  }
  return result;
}

}  // namespace

std::span<const std::string_view> slice_keys() { return kKeys; }

extern const Analysis kSlices;
constinit const Analysis kSlices{
    .name = "slices",
    .summary = "Communication summed by dtype, stream, step, rank, and by any keys given with --by",
    .run = run_slices,
};

}  // namespace commlens
