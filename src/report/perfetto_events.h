// Perfetto's own format: a message Trace whose packets describe tracks, and events on them.
//
//   packet { sequence_flags: INCREMENTAL_STATE_CLEARED, clock_snapshot { 0 is that moment } }
//   packet { track_descriptor { uuid: 1, process { pid: 1, process_name: "rank 0 (GPU 0)" } } }
//   packet { track_descriptor { uuid: 9, thread { pid: 1, tid: 9, thread_name: "steps" } } }
//   packet { interned_data { event_names { iid: 3, name: "gemm" } } }
//   packet { timestamp: 12345, track_event { SLICE_BEGIN, track_uuid: 9, name_iid: 3, ... } }
//   packet { timestamp: 13345, track_event { SLICE_END, track_uuid: 9 } }
//
// Tracks are threads, as in JSON: Perfetto shows these in the order of their ids, other tracks of a
// process in that of their names. Names, categories and texts of arguments are defined once and
// then called by number; all packets are of one sequence, whose definitions hold to the end of the
// file. Packets of one track come by time; readers sort over tracks. Field numbers are those of
// protos/perfetto/trace/*.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sink.h"
#include "model/interval_set.h"
#include "report/timeline_event.h"

namespace commlens {

class PerfettoEvents {
 public:
  PerfettoEvents(TimelineTexts& texts, Sink& sink) : texts_(texts), sink_(sink) {}

  void begin(std::optional<Ns> origin);
  void end() {}
  void name_process(std::int64_t process, std::string_view name);
  void name_thread(std::int64_t process, std::int64_t thread, std::string_view name);
  void slice(const SliceEvent& event);

 private:
  // What a text is used as: each has definitions of its own.
  enum class Use : std::uint8_t { category, name, argument_name, argument_text };

  std::uint64_t iid(TextId text, Use use);
  TextId whole_name(const SliceName& name);
  void define_arguments(std::span<const Argument> arguments);
  template <class Fill>
  void packet(Fill fill);

  TimelineTexts& texts_;
  Sink& sink_;
  std::string packet_;                 // reused: no allocation per event
  std::string name_;                   // the same
  std::vector<std::uint8_t> defined_;  // by TextId: a bit for each use
};

}  // namespace commlens
