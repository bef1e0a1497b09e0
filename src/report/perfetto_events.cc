#include "report/perfetto_events.h"

#include <protozero/pbf_builder.hpp>
#include <string>

#include "base/utf8.h"
#include "report/timeline_placement.h"

namespace commlens {
namespace {

using Tag = protozero::pbf_tag_type;

enum class TraceField : Tag { packet = 1 };
enum class PacketField : Tag {
  clock_snapshot = 6,
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  track_descriptor = 60,
};
enum class SnapshotField : Tag { clocks = 1, primary_trace_clock = 2 };
enum class ClockField : Tag { clock_id = 1, timestamp = 2 };
enum class TrackField : Tag { uuid = 1, process = 3, thread = 4 };
enum class ProcessField : Tag { pid = 1, legacy_sort_index = 3, process_name = 6 };
enum class ThreadField : Tag { pid = 1, tid = 2, legacy_sort_index = 3, thread_name = 5 };
enum class EventField : Tag {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum class AnnotationField : Tag {
  name_iid = 1,
  bool_value = 2,
  int_value = 4,
  double_value = 5,
  string_value_iid = 17,
};
// In the order of PerfettoEvents::Use.
enum class InternedField : Tag {
  event_categories = 1,
  event_names = 2,
  debug_annotation_names = 3,
  debug_annotation_string_values = 29,
};
constexpr InternedField kInternedFields[] = {
    InternedField::event_categories,
    InternedField::event_names,
    InternedField::debug_annotation_names,
    InternedField::debug_annotation_string_values,
};
enum class DefinitionField : Tag { iid = 1, text = 2 };

constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kStateCleared = 1;
constexpr std::uint32_t kNeedsState = 2;
constexpr std::uint32_t kRealtime = 1;  // BuiltinClock
constexpr std::uint32_t kBoottime = 6;  // that of timestamps without a clock
constexpr std::int32_t kSliceBegin = 1;
constexpr std::int32_t kSliceEnd = 2;

using Packet = protozero::pbf_builder<PacketField>;
using PerfettoEvent = protozero::pbf_builder<EventField>;

std::uint64_t unsigned_of(std::int64_t number) { return static_cast<std::uint64_t>(number); }

// Without bytes that end a text in readers (the interface joins names with them), or are no UTF-8.
std::string whole_text(std::string_view text) {
  std::string whole = well_formed(text);
  for (std::size_t at = whole.find('\0'); at != std::string::npos; at = whole.find('\0', at))
    whole.replace(at, 1, "\uFFFD");
  return whole;
}

void add_clock(protozero::pbf_builder<SnapshotField>& snapshot, std::uint32_t clock, Ns time) {
  protozero::pbf_builder<ClockField> reading(snapshot, SnapshotField::clocks);
  reading.add_uint32(ClockField::clock_id, clock);
  reading.add_uint64(ClockField::timestamp, unsigned_of(time));
}

// The number under which definitions know a text.
std::uint64_t definition_number(TextId text) {
  return TimelineTexts::index(text) + 1;  // 0 is none
}

void add_annotation(PerfettoEvent& event, const Argument& argument) {
  protozero::pbf_builder<AnnotationField> out(event, EventField::debug_annotations);
  out.add_uint64(AnnotationField::name_iid, definition_number(argument.key));
  if (const auto* number = std::get_if<std::int64_t>(&argument.value)) {
    out.add_int64(AnnotationField::int_value, *number);
  } else if (const auto* text = std::get_if<TextId>(&argument.value)) {
    out.add_uint64(AnnotationField::string_value_iid, definition_number(*text));
  } else if (const auto* real = std::get_if<double>(&argument.value)) {
    out.add_double(AnnotationField::double_value, *real);
  } else {
    out.add_bool(AnnotationField::bool_value, std::get<bool>(argument.value));
  }
}

}  // namespace

template <class Fill>
void PerfettoEvents::packet(Fill fill) {
  packet_.clear();
  {
    protozero::pbf_builder<TraceField> trace(packet_);
    Packet packet(trace, TraceField::packet);
    packet.add_uint32(PacketField::sequence_id, kSequence);
    fill(packet);
  }
  sink_.append(packet_);
}

// Timestamps count from the origin; what its time of day is stands in the snapshot.
void PerfettoEvents::begin(std::optional<Ns> origin) {
  packet([&](Packet& packet) {
    packet.add_uint32(PacketField::sequence_flags, kStateCleared);
    if (!origin || *origin < 0) return;
    protozero::pbf_builder<SnapshotField> snapshot(packet, PacketField::clock_snapshot);
    add_clock(snapshot, kBoottime, 0);
    add_clock(snapshot, kRealtime, *origin);
    snapshot.add_enum(SnapshotField::primary_trace_clock, kBoottime);
  });
}

void PerfettoEvents::name_process(std::int64_t process, std::string_view name) {
  packet([&](Packet& packet) {
    protozero::pbf_builder<TrackField> track(packet, PacketField::track_descriptor);
    track.add_uint64(TrackField::uuid, unsigned_of(process));
    protozero::pbf_builder<ProcessField> about(track, TrackField::process);
    about.add_int32(ProcessField::pid, static_cast<std::int32_t>(process));
    about.add_int32(ProcessField::legacy_sort_index, static_cast<std::int32_t>(process));
    about.add_string(ProcessField::process_name, whole_text(name));
  });
}

void PerfettoEvents::name_thread(std::int64_t process, std::int64_t thread, std::string_view name) {
  packet([&](Packet& packet) {
    protozero::pbf_builder<TrackField> track(packet, PacketField::track_descriptor);
    track.add_uint64(TrackField::uuid, unsigned_of(thread));
    protozero::pbf_builder<ThreadField> about(track, TrackField::thread);
    about.add_int32(ThreadField::pid, static_cast<std::int32_t>(process));
    about.add_int64(ThreadField::tid, thread);
    about.add_int32(ThreadField::legacy_sort_index, static_cast<std::int32_t>(thread));
    about.add_string(ThreadField::thread_name, whole_text(name));
  });
}

std::uint64_t PerfettoEvents::iid(TextId text, Use use) {
  const std::size_t index = TimelineTexts::index(text);
  if (index >= defined_.size()) defined_.resize(texts_.size());
  const std::uint64_t number = definition_number(text);
  const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(use));
  if ((defined_[index] & bit) != 0) return number;
  defined_[index] |= bit;
  packet([&](Packet& packet) {
    packet.add_uint32(PacketField::sequence_flags, kNeedsState);
    protozero::pbf_builder<InternedField> interned(packet, PacketField::interned_data);
    protozero::pbf_builder<DefinitionField> definition(
        interned, kInternedFields[static_cast<std::size_t>(use)]);
    definition.add_uint64(DefinitionField::iid, number);
    definition.add_string(DefinitionField::text, whole_text(texts_.get(text)));
  });
  return number;
}

TextId PerfettoEvents::whole_name(const SliceName& name) {
  if (!name.number) return name.before;
  name_ = texts_.get(name.before);
  name_ += std::to_string(*name.number);
  name_ += texts_.get(name.after);
  return texts_.id(name_);
}

// Definitions stand before what uses them.
void PerfettoEvents::define_arguments(std::span<const Argument> arguments) {
  for (const Argument& argument : arguments) {
    iid(argument.key, Use::argument_name);
    if (const auto* text = std::get_if<TextId>(&argument.value)) iid(*text, Use::argument_text);
  }
}

void PerfettoEvents::slice(const SliceEvent& event) {
  const std::uint64_t name = iid(whole_name(event.name), Use::name);
  const std::uint64_t category = iid(event.category, Use::category);
  define_arguments(event.arguments);
  packet([&](Packet& packet) {
    packet.add_uint64(PacketField::timestamp, unsigned_of(event.start));
    packet.add_uint32(PacketField::sequence_flags, kNeedsState);
    PerfettoEvent begin(packet, PacketField::track_event);
    begin.add_enum(EventField::type, kSliceBegin);
    begin.add_uint64(EventField::track_uuid, unsigned_of(event.thread));
    begin.add_uint64(EventField::name_iid, name);
    begin.add_uint64(EventField::category_iids, category);
    for (const Argument& argument : event.arguments) add_annotation(begin, argument);
    if (event.arrow_in > 0)
      begin.add_fixed64(EventField::terminating_flow_ids, unsigned_of(event.arrow_in));
    if (event.arrow_out > 0) begin.add_fixed64(EventField::flow_ids, unsigned_of(event.arrow_out));
  });
  packet([&](Packet& packet) {
    packet.add_uint64(PacketField::timestamp, unsigned_of(bounded_sum(event.start, event.length)));
    PerfettoEvent end(packet, PacketField::track_event);
    end.add_enum(EventField::type, kSliceEnd);
    end.add_uint64(EventField::track_uuid, unsigned_of(event.thread));
  });
}

}  // namespace commlens
