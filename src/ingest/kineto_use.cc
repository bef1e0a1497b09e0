// What of a whole event goes to the builder.
#include <algorithm>

#include "ingest/kineto_event.h"
#include "ingest/kineto_names.h"
#include "ingest/kineto_values.h"

namespace commlens {
namespace {

// Times beyond this are no times: 2^61 ns is the year 2043 after the epoch, or 73 years of
// duration.
constexpr Ns kLargestTime = Ns{1} << 61U;

}  // namespace

void KinetoEvents::use(const Event& event) {
  switch (event.category) {
    case Category::kernel: return use_activity(event, ActivityKind::kernel);
    case Category::memcpy: return use_activity(event, ActivityKind::memcpy);
    case Category::memset: return use_activity(event, ActivityKind::memset);
    case Category::runtime: return use_runtime(event);
    case Category::cpu_op: return use_cpu_op(event);
    case Category::sync: return use_sync(event);
    case Category::annotation:
      return event.name.text.starts_with(kStepPrefix) ? use_step(event, false)
                                                      : use_annotation(event);
    case Category::gpu_annotation: return use_step(event, true);
    case Category::recording_span:
      if (const Times t = times(event, false); t.usable) builder_.about().span = t.interval;
      return;
    case Category::unknown:
    case Category::ignored: return;
  }
}

// The event's interval. Odd times of GPU events are noted, since every figure hangs on them.
KinetoEvents::Times KinetoEvents::times(const Event& event, bool on_gpu) {
  const auto note = [&](Note what) {
    if (on_gpu)
      builder_.notes().add(what, "at byte " + std::to_string(offset_) + ": " +
                                     std::string(event.name.text.substr(0, 80)));
  };
  if (event.ts.kind != TokenKind::number && event.ts.kind != TokenKind::string) {
    note(Note::missing_time);
    return {};
  }
  const auto start = microseconds_to_ns(event.ts.text);
  if (!start || *start > kLargestTime || *start < -kLargestTime) {
    note(Note::absurd_time);
    return {};
  }
  if (event.dur.kind != TokenKind::number && event.dur.kind != TokenKind::string) {
    note(Note::missing_duration);
    return {true, {*start, *start}};
  }
  auto duration = microseconds_to_ns(event.dur.text);
  // A number too large for 64 bits is still a duration without an end: the builder cuts it at the
  // recording's.
  if (!duration && parse_int(event.dur.text).has_value()) duration = kLargestTime;
  if (!duration && event.dur.text.find_first_of("123456789") == 0) duration = kLargestTime;
  if (!duration) {
    note(Note::missing_duration);
    return {true, {*start, *start}};
  }
  if (*duration < 0) note(Note::negative_duration);
  return {true, {*start, *start + std::clamp(*duration, Ns{0}, kLargestTime)}};
}

void KinetoEvents::use_activity(const Event& event, ActivityKind kind) {
  const Times t = times(event, true);
  if (!t.usable) return;
  builder_.add_activity({.kind = kind,
                         .start = t.interval.start,
                         .end = t.interval.end,
                         .name = text(event.name),
                         .stream = stream(event),
                         .correlation = id_number(arguments_[Arg::correlation]),
                         .external_id = id_number(arguments_[Arg::external_id]),
                         .meta = meta(),
                         .call = call()});
}

void KinetoEvents::use_runtime(const Event& event) {
  const Times t = times(event, false);
  const std::uint64_t correlation = id_number(arguments_[Arg::correlation]);
  if (!t.usable) return;
  if (correlation != 0 && is_launch(event.name.text))
    builder_.add_launch(correlation, t.interval.start, thread(event),
                        id_number(arguments_[Arg::external_id]));
  if (const auto kind = blocking_kind(event.name.text))
    builder_.add_sync_call({.start = t.interval.start,
                            .end = t.interval.end,
                            .correlation = correlation,
                            .thread = thread(event),
                            .kind = *kind});
}

void KinetoEvents::use_sync(const Event& event) {
  const auto kind = sync_record_kind(event.name.text);
  const Times t = times(event, false);
  if (!kind || !t.usable) return;
  Stream own = stream(event);
  own.stream = count_or_unknown(arguments_[Arg::stream]);
  Stream source = own;
  source.stream = count_or_unknown(arguments_[Arg::wait_on_stream]);
  // "-1" as a number of 64 bits is not an id either.
  const auto record = number(arguments_[Arg::record_correlation]);
  builder_.add_sync_record(
      {.start = t.interval.start,
       .correlation = id_number(arguments_[Arg::correlation]),
       .record_correlation = record && *record > 0 ? static_cast<std::uint64_t>(*record) : 0,
       .stream = own,
       .source = source,
       .kind = *kind});
}

void KinetoEvents::use_cpu_op(const Event& event) {
  const bool record = event.name.text == kRecordName;
  if (!record && !annotation_backend(event.name.text).empty()) return use_annotation(event);
  const Times t = times(event, false);
  if (!t.usable) return;
  if (!record) {
    // c10d's own operations wait for or start communication: they compute nothing.
    const bool communicates =
        event.name.text.starts_with("c10d::") || event.name.text.starts_with("_c10d_functional::");
    if (options_.host_compute && !communicates)
      builder_.add_host_compute(t.interval, thread(event));
    return;
  }
  const Token& name = arguments_[Arg::collective];
  if (name.kind == TokenKind::string && !is_communication_record(name.text)) return;
  builder_.add_host_range({.start = t.interval.start,
                           .end = t.interval.end,
                           .thread = thread(event),
                           .name = {},
                           .backend = {},
                           .meta = meta(),
                           .external_id = id_number(arguments_[Arg::external_id]),
                           .kind = HostRangeKind::collective_record},
                          call());
}

void KinetoEvents::use_annotation(const Event& event) {
  const Times t = times(event, false);
  if (!t.usable) return;
  const std::string_view backend = annotation_backend(event.name.text);
  builder_.add_host_range({.start = t.interval.start,
                           .end = t.interval.end,
                           .thread = thread(event),
                           .name = builder_.intern(event.name.text.substr(backend.size() + 1)),
                           .backend = builder_.intern(backend),
                           .meta = {},
                           .external_id = 0,
                           .kind = HostRangeKind::annotation});
}

void KinetoEvents::use_step(const Event& event, bool on_gpu) {
  const auto step = parse_int(event.name.text.substr(kStepPrefix.size()));
  const Times t = times(event, false);
  if (step && t.usable) builder_.add_step(*step, t.interval, on_gpu);
}

// Where the activity ran. A copy between devices names the one it belongs to as "inDevice".
Stream KinetoEvents::stream(const Event& event) const {
  const Token& device = arguments_[arguments_.has(Arg::device) ? Arg::device : Arg::in_device];
  const Token& context = arguments_[arguments_.has(Arg::context) ? Arg::context : Arg::in_context];
  const Token& stream = arguments_[Arg::stream];
  return {.device = lane_number(device.kind != TokenKind::none ? device : event.pid),
          .context = number(context).value_or(kUnknown),
          .stream = lane_number(stream.kind != TokenKind::none ? stream : event.tid)};
}

ThreadId KinetoEvents::thread(const Event& event) {
  const std::int64_t process = lane_number(event.pid);
  if (builder_.about().process == kUnknown && process >= 0) builder_.about().process = process;
  return builder_.thread(process, lane_number(event.tid));
}

// The collective metadata among the arguments; none where there is none, or where it is a record of
// "wait" or "init".
MetaId KinetoEvents::meta() {
  const Token& collective = arguments_[Arg::collective];
  if (collective.kind != TokenKind::string || !is_communication_record(collective.text)) return {};
  return builder_.add_meta(
      {.collective = intern(arguments_[Arg::collective]),
       .dtype = intern(arguments_[Arg::dtype]),
       .in_elements = count_or_unknown(arguments_[Arg::in_elements]),
       .out_elements = count_or_unknown(arguments_[Arg::out_elements]),
       .group_size = std::max<std::int64_t>(0, number(arguments_[Arg::group_size]).value_or(0)),
       .group_name = intern(arguments_[Arg::group_name]),
       .group_description = intern(arguments_[Arg::group_description]),
       .group_ranks = intern(arguments_[Arg::group_ranks]),
       .group_start = count_or_unknown(arguments_[Arg::group_start]),
       .group_stride = count_or_unknown(arguments_[Arg::group_stride])});
}

// What tells the call from others; nothing where the event is no communication.
CallKey KinetoEvents::call() const {
  if (!arguments_.has(Arg::collective)) return {};
  return {.comms_id = id_number(arguments_[Arg::comms_id]),
          .seq = count_or_unknown(arguments_[Arg::seq]),
          .rank = rank_or_none(arguments_[Arg::rank]),
          .source = rank_or_none(arguments_[Arg::source]),
          .destination = rank_or_none(arguments_[Arg::destination]),
          .zero_split = may_hold_zero(arguments_[Arg::in_split]) ||
                        may_hold_zero(arguments_[Arg::out_split])};
}

StringId KinetoEvents::intern(const Token& token) {
  return token.kind == TokenKind::none ? StringId::none() : builder_.intern(text(token));
}

}  // namespace commlens
