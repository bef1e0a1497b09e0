// Method: a track's rows are put in order of start by their indices (4 bytes a row) and written one
// by one; lanes open as slices need them. Cost: O(n) for rows that are in order, else O(n log n);
// names are escaped once each, and nothing is allocated per event.
#include "report/chrome_tracks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <tuple>

#include "model/bandwidth.h"
#include "report/chrome_lanes.h"
#include "report/chrome_style.h"

namespace commlens {
namespace {

// Whether a slice is of a window. One that starts at the very end of everything belongs to the last
// window, as it does in the figures.
bool meets(Interval slice, Interval window, Interval extent) {
  if (slice.start < window.end && slice.end > window.start) return true;
  if (slice.start < window.start) return false;
  return slice.start < window.end || (slice.start == window.end && window.end == extent.end);
}

class DeviceWriter {
 public:
  DeviceWriter(const TimelineProcess& process, RankNames& names, TraceEvents& events)
      : rank_(process.rank),
        device_(process.device),
        place_(process.place),
        clip_(process.clip_to_window),
        names_(names),
        events_(events),
        process_(process.id) {}

  void write() {
    write_steps();
    if (device_.device) {
      write_streams();
    } else {
      write_host_compute();
    }
    write_communication();
    write_exposed();
  }

 private:
  using Rows = std::vector<std::uint32_t>;

  bool wanted(Interval slice) const {
    return !clip_ || meets(slice, device_.breakdown.window, device_.extent);
  }

  void write_steps() {
    Rows rows;
    for (std::size_t i = 0; i < device_.steps.size(); ++i) {
      if (wanted(device_.steps[i].second)) rows.push_back(static_cast<std::uint32_t>(i));
    }
    const auto time = [this](std::uint32_t row) { return device_.steps[row].second; };
    write_track("steps", rows, time, [this](std::uint32_t row, SliceEvent& event) {
      text_ = "\"step ";
      append_integer(text_, device_.steps[row].first);
      text_ += '"';
      event.name = text_;
      event.category = "\"step\"";
    });
  }

  // Compute and memory, a track for each stream.
  void write_streams() {
    const GpuActivities& gpu = rank_.recording.gpu;
    assert(rank_.classes.size() == gpu.size());
    std::vector<Rows> by_stream(rank_.recording.streams.size());
    for (std::size_t i = 0; i < gpu.size(); ++i) {
      if (rank_.classes[i] == ActivityClass::communication) continue;
      if (stream(gpu.stream[i]).device != *device_.device || !wanted(gpu.interval(i))) continue;
      by_stream[gpu.stream[i].index()].push_back(static_cast<std::uint32_t>(i));
    }
    for (const StreamId id : streams_in_order()) {
      Rows& rows = by_stream[id.index()];
      const auto is_memory = [this](std::uint32_t row) {
        return rank_.classes[row] == ActivityClass::memory;
      };
      const bool memory = std::any_of(rows.begin(), rows.end(), is_memory);
      const bool compute = !std::all_of(rows.begin(), rows.end(), is_memory);
      const auto time = [&gpu](std::uint32_t row) { return gpu.interval(row); };
      write_track(stream_name(id) + (compute ? ": compute" : ": ") +
                      (memory ? (compute ? ", memory" : "memory") : ""),
                  rows, time, [&](std::uint32_t row, SliceEvent& event) {
                    event.name = names_.name(gpu.name[row]);
                    event.category = is_memory(row) ? "\"memory\"" : "\"compute\"";
                  });
    }
  }

  void write_host_compute() {
    const auto parts = rank_.recording.host_compute.parts();
    Rows rows;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (wanted(parts[i])) rows.push_back(static_cast<std::uint32_t>(i));
    }
    const auto time = [parts](std::uint32_t row) { return parts[row]; };
    write_track("host compute", rows, time, [](std::uint32_t, SliceEvent& event) {
      event.name = "\"compute\"";
      event.category = "\"compute\"";
    });
  }

  void write_communication() {
    std::vector<Rows> by_stream(rank_.recording.streams.size());
    Rows on_host;
    for (std::size_t i = 0; i < device_.comm.size(); ++i) {
      const CommOp& op = device_.comm[i];
      if (!wanted(op.time)) continue;
      Rows& rows = op.stream.valid() ? by_stream[op.stream.index()] : on_host;
      rows.push_back(static_cast<std::uint32_t>(i));
    }
    for (const StreamId id : streams_in_order())
      write_communication(stream_name(id) + ": communication", by_stream[id.index()]);
    write_communication("host communication", on_host);
  }

  void write_communication(const std::string& track, Rows& rows) {
    const auto time = [this](std::uint32_t row) { return device_.comm[row].time; };
    write_track(track, rows, time, [this](std::uint32_t row, SliceEvent& event) {
      const CommOp& op = device_.comm[row];
      const Exposure figures = row < device_.exposures.size() ? device_.exposures[row] : Exposure{};
      const CommState state = comm_state(figures);
      text_.clear();
      append_comm_name(text_, op.op, state, figures);
      fill_arguments(op, figures);
      event.name = text_;
      event.category = comm_category(state);
      event.colour = comm_colour(state);
      event.arguments = arguments_;
    });
  }

  // What is not known is left out.
  void fill_arguments(const CommOp& op, const Exposure& figures) {
    arguments_ = "\"op\":\"";
    arguments_ += op_name(op.op);
    arguments_ += "\",\"kernel\":";
    arguments_ += names_.name(op.name);
    if (op.bytes) add_argument("bytes", *op.bytes);
    if (op.group >= 0) {
      arguments_ += names_.group(op.group);
    } else if (op.group_size > 0) {
      add_argument("group_size", op.group_size);
    }
    if (op.dtype.valid()) {
      arguments_ += ",\"dtype\":";
      arguments_ += names_.name(op.dtype);
    }
    if (op.reduction.valid()) {
      arguments_ += ",\"reduction\":";
      arguments_ += names_.name(op.reduction);
    }
    arguments_ += ",\"evidence\":\"";
    arguments_ += evidence_name(op.evidence);
    arguments_ += op.name_may_lie ? "\",\"name_may_lie\":true" : "\"";
    if (figures.in_window) {
      add_argument("busy_ns", figures.busy);
      add_argument("hidden_ns", figures.hidden);
      add_argument("exposed_ns", figures.exposed);
      add_argument("exclusive_exposed_ns", figures.exclusive);
    }
    if (!op.bytes) return;
    const auto bandwidth = gigabytes_per_second(*op.bytes, op.time.length());
    if (!bandwidth) return;
    arguments_ += ",\"algbw_gbs\":";
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.begin(), digits.end(), *bandwidth, std::chars_format::general, 6);
    arguments_.append(digits.data(), end.ptr);
  }

  void add_argument(std::string_view key, std::int64_t value) {
    arguments_ += ",\"";
    arguments_ += key;
    arguments_ += "\":";
    append_integer(arguments_, value);
  }

  // The time in U(communication) and not in U(compute).
  void write_exposed() {
    std::vector<Interval> times;
    times.reserve(device_.comm.size());
    for (const CommOp& op : device_.comm) times.push_back(op.time);
    IntervalSet exposed = set_difference(IntervalSet(std::move(times)), device_.compute);
    if (clip_) exposed = set_intersection(exposed, IntervalSet({device_.breakdown.window}));
    const auto parts = exposed.parts();
    Rows rows(parts.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(i);
    const auto time = [parts](std::uint32_t row) { return parts[row]; };
    write_track("exposed communication", rows, time, [](std::uint32_t, SliceEvent& event) {
      event.name = "\"exposed\"";
      event.category = "\"exposed\"";
      event.colour = "\"terrible\"";
    });
  }

  // Rows in any order; `time(row)` is its interval, `describe(row, event)` fills the rest.
  template <class Time, class Describe>
  void write_track(const std::string& track, Rows& rows, Time time, Describe describe) {
    const auto before = [&time](std::uint32_t a, std::uint32_t b) {
      const Interval left = time(a);
      const Interval right = time(b);
      if (left.start != right.start) return left.start < right.start;
      return left.end != right.end ? left.end < right.end : a < b;
    };
    if (!std::is_sorted(rows.begin(), rows.end(), before))
      std::sort(rows.begin(), rows.end(), before);
    Lanes lanes;
    std::vector<std::int64_t> threads;
    for (const std::uint32_t row : rows) {
      const Interval slice = time(row);
      const std::uint32_t lane = lanes.place(slice);
      if (lane == threads.size()) threads.push_back(open_lane(track, lane));
      SliceEvent event{.process = process_,
                       .thread = threads[lane],
                       .start = place_.at(slice.start),
                       .length = bounded_difference(slice.end, slice.start),
                       .name = {},
                       .category = {},
                       .colour = {},
                       .arguments = {}};
      describe(row, event);
      events_.slice(event);
    }
  }

  std::int64_t open_lane(const std::string& track, std::uint32_t lane) {
    if (lane == 0) return events_.open_thread(process_, track);
    return events_.open_thread(process_, track + " (" + std::to_string(lane + 1) + ")");
  }

  const Stream& stream(StreamId id) const { return rank_.recording.streams[id.index()]; }

  std::vector<StreamId> streams_in_order() const {
    std::vector<StreamId> ids;
    for (std::size_t i = 0; i < rank_.recording.streams.size(); ++i) {
      if (stream(StreamId::from(i)).device == device_.device) ids.push_back(StreamId::from(i));
    }
    std::sort(ids.begin(), ids.end(), [this](StreamId a, StreamId b) {
      return std::tuple(stream(a).stream, stream(a).context, a) <
             std::tuple(stream(b).stream, stream(b).context, b);
    });
    return ids;
  }

  // The same number in another context is another stream.
  std::string stream_name(StreamId id) const {
    const Stream& mine = stream(id);
    const auto& all = rank_.recording.streams;
    const bool ambiguous = std::any_of(all.begin(), all.end(), [&mine](const Stream& other) {
      return other.device == mine.device && other.stream == mine.stream &&
             other.context != mine.context;
    });
    std::string text = "stream " + std::to_string(mine.stream);
    if (ambiguous && mine.context != kUnknown)
      text += " (context " + std::to_string(mine.context) + ")";
    return text;
  }

  const RankTimeline& rank_;
  const DeviceTimeline& device_;
  const Placement& place_;
  bool clip_;
  RankNames& names_;
  TraceEvents& events_;
  std::int64_t process_;
  std::string text_;       // name of the slice being written
  std::string arguments_;  // of the slice being written
};

}  // namespace

void write_device_tracks(const TimelineProcess& process, RankNames& names, TraceEvents& events) {
  DeviceWriter(process, names, events).write();
}

}  // namespace commlens
