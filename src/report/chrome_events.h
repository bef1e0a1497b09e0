// Lines of the Chrome trace event format: one event a line, one JSON object a file.
//
//   {"schema":"commlens.timeline/1","otherData":{...},"traceEvents":[
//   {"ph":"M","pid":1,"name":"process_name","args":{"name":"rank 0 (host, GPU 0)"}},
//   {"ph":"X","pid":1,"tid":9,"ts":12.345,"dur":1.000,"name":"gemm","cat":"compute"}
//   ]}
//
// Times go from integer nanoseconds to microseconds with three decimals as text, never through a
// double: readers keep the nanoseconds. `displayTimeUnit` is left out on purpose: readers have
// taken it for the unit of `ts`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/sink.h"
#include "model/interval_set.h"

namespace commlens {

// The texts are JSON already: quoted and escaped.
struct SliceEvent {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  Ns start = 0;                // from the file's origin, >= 0
  Ns length = 0;               // >= 0
  std::string_view name;       // "\"gemm\""
  std::string_view category;   // "\"compute\""
  std::string_view colour;     // a reserved colour name of Chrome's viewer, quoted; empty: none
  std::string_view arguments;  // members of the object, without its braces; empty: none
};

// A place on a track.
struct ArrowEnd {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  Ns time = 0;  // inside a slice of that track
};

class TraceEvents {
 public:
  // Threads are numbered from `first_thread`, which lies beyond all ids of processes: Perfetto
  // takes a thread with its process's id for its main thread, and once named threads by their id
  // alone.
  TraceEvents(Sink& sink, std::int64_t first_thread) : sink_(sink), next_thread_(first_thread) {}

  // `other_data`: members of that object, as JSON without its braces.
  void begin(std::string_view other_data);
  void end();
  // Both are shown in the order of their ids: as sort index, and by viewers that know none.
  void name_process(std::int64_t process, std::string_view name);
  std::int64_t open_thread(std::int64_t process, std::string_view name);  // its id
  void slice(const SliceEvent& event);
  // `id` differs for each arrow.
  void arrow(std::int64_t id, const ArrowEnd& from, const ArrowEnd& to);

 private:
  void arrow_end(std::int64_t id, std::string_view phase, const ArrowEnd& end);
  void begin_line();
  void finish_line() { sink_.append(line_); }

  Sink& sink_;
  std::string line_;  // reused: no allocation per event
  std::int64_t next_thread_;
  bool first_ = true;
};

// Appends to a text: a number, a time in microseconds with its three decimals.
void append_integer(std::string& out, std::int64_t number);
void append_microseconds(std::string& out, Ns time);
// The text as a JSON string, quotes included.
std::string json_string(std::string_view text);
// The text itself, or its first `bytes` bytes (less where that would cut a character) and "...".
std::string cut_text(std::string_view text, std::size_t bytes);

}  // namespace commlens
