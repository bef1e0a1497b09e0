// Method: a track's rows are put in order of start by their indices (4 bytes a row) and written one
// by one; lanes open as slices need them. Cost: O(n) for rows that are in order, else O(n log n);
// names are looked up once each, and nothing is allocated per event.
#include "report/timeline_tracks.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "model/bandwidth.h"
#include "report/timeline_lanes.h"
#include "report/timeline_style.h"

namespace commlens {
namespace {

// Whether a slice is of a window. One that starts at the very end of everything belongs to the last
// window, as it does in the figures.
bool meets(Interval slice, Interval window, Interval extent) {
  if (slice.start < window.end && slice.end > window.start) return true;
  if (slice.start < window.start) return false;
  return slice.start < window.end || (slice.start == window.end && window.end == extent.end);
}

struct CommKeys {
  explicit CommKeys(TimelineTexts& texts)
      : op(texts.id("op")),
        kernel(texts.id("kernel")),
        bytes(texts.id("bytes")),
        group_size(texts.id("group_size")),
        dtype(texts.id("dtype")),
        reduction(texts.id("reduction")),
        evidence(texts.id("evidence")),
        name_may_lie(texts.id("name_may_lie")),
        busy_ns(texts.id("busy_ns")),
        hidden_ns(texts.id("hidden_ns")),
        exposed_ns(texts.id("exposed_ns")),
        exclusive_exposed_ns(texts.id("exclusive_exposed_ns")),
        algbw_gbs(texts.id("algbw_gbs")) {}

  TextId op, kernel, bytes, group_size, dtype, reduction, evidence, name_may_lie, busy_ns,
      hidden_ns, exposed_ns, exclusive_exposed_ns, algbw_gbs;
};

class DeviceWriter {
 public:
  DeviceWriter(const TimelineProcess& process, RankNames& names, TimelineOut& out)
      : rank_(process.rank),
        device_(process.device),
        place_(process.place),
        clip_(process.clip_to_window),
        names_(names),
        out_(out),
        process_(process.id),
        keys_(out.texts()),
        words_(out.texts()) {}

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
    const TextId name = text("step ");
    const TextId category = text("step");
    write_track("steps", rows, time, [&](std::uint32_t row, SliceEvent& event) {
      event.name = {.before = name, .number = device_.steps[row].first};
      event.category = category;
    });
  }

  // Compute and memory, a track for each stream.
  void write_streams() {
    const GpuActivities& gpu = rank_.recording.gpu;
    assert(rank_.classes.size() == gpu.size());
    const TextId compute_category = text("compute");
    const TextId memory_category = text("memory");
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
                    event.name.before = names_.name(gpu.name[row]);
                    event.category = is_memory(row) ? memory_category : compute_category;
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
    const TextId compute = text("compute");
    write_track("host compute", rows, time, [compute](std::uint32_t, SliceEvent& event) {
      event.name.before = compute;
      event.category = compute;
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
      fill_arguments(op, figures);
      event.name = words_.name(op.op, state, figures);
      event.category = words_.category(state);
      event.colour = comm_colour(state);
      event.arguments = arguments_;
    });
  }

  // What is not known is left out.
  void fill_arguments(const CommOp& op, const Exposure& figures) {
    arguments_.clear();
    add(keys_.op, words_.op(op.op));
    add(keys_.kernel, names_.name(op.name));
    if (op.bytes) add(keys_.bytes, *op.bytes);
    if (op.group >= 0) {
      for (const Argument& argument : names_.group(op.group)) arguments_.push_back(argument);
    } else if (op.group_size > 0) {
      add(keys_.group_size, std::int64_t{op.group_size});
    }
    if (op.dtype.valid()) add(keys_.dtype, names_.name(op.dtype));
    if (op.reduction.valid()) add(keys_.reduction, names_.name(op.reduction));
    add(keys_.evidence, words_.evidence(op.evidence));
    if (op.name_may_lie) add(keys_.name_may_lie, true);
    if (figures.in_window) {
      add(keys_.busy_ns, figures.busy);
      add(keys_.hidden_ns, figures.hidden);
      add(keys_.exposed_ns, figures.exposed);
      add(keys_.exclusive_exposed_ns, figures.exclusive);
    }
    if (!op.bytes) return;
    const auto bandwidth = gigabytes_per_second(*op.bytes, op.time.length());
    if (bandwidth) add(keys_.algbw_gbs, *bandwidth);
  }

  template <class Value>
  void add(TextId key, Value value) {
    arguments_.push_back({key, value});
  }
  TextId text(std::string_view words) { return out_.texts().id(words); }

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
    const TextId words = text("exposed");
    write_track("exposed communication", rows, time, [words](std::uint32_t, SliceEvent& event) {
      event.name.before = words;
      event.category = words;
      event.colour = "terrible";
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
                       .colour = {},
                       .arguments = {}};
      describe(row, event);
      out_.slice(event);
    }
  }

  std::int64_t open_lane(const std::string& track, std::uint32_t lane) {
    if (lane == 0) return out_.open_thread(process_, track);
    return out_.open_thread(process_, track + " (" + std::to_string(lane + 1) + ")");
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
  TimelineOut& out_;
  std::int64_t process_;
  CommKeys keys_;
  CommWords words_;
  std::vector<Argument> arguments_;  // of the slice being written
};

}  // namespace

void write_device_tracks(const TimelineProcess& process, RankNames& names, TimelineOut& out) {
  DeviceWriter(process, names, out).write();
}

}  // namespace commlens
