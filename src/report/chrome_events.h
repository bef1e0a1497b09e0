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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sink.h"
#include "model/interval_set.h"
#include "report/timeline_event.h"

namespace commlens {

class ChromeEvents {
 public:
  ChromeEvents(const TimelineTexts& texts, Sink& sink) : texts_(texts), sink_(sink) {}

  void begin(std::optional<Ns> origin);
  void end();
  // Both are shown in the order of their ids: as sort index, and by viewers that know none.
  void name_process(std::int64_t process, std::string_view name);
  void name_thread(std::int64_t process, std::int64_t thread, std::string_view name);
  void slice(const SliceEvent& event);

 private:
  // A place on a track, inside a slice.
  struct ArrowEnd {
    std::int64_t process = 0;
    std::int64_t thread = 0;
    Ns time = 0;
  };
  struct Arrow {
    std::optional<ArrowEnd> from;
    std::optional<ArrowEnd> to;
  };

  const std::string& quoted(TextId id);
  void append_name(const SliceName& name);
  void append_arguments(std::span<const Argument> arguments);
  Arrow& arrow(std::int64_t number);
  void write_arrow_end(std::size_t number, std::string_view phase, const ArrowEnd& end);
  void begin_line();
  void finish_line() { sink_.append(line_); }

  const TimelineTexts& texts_;
  Sink& sink_;
  std::string line_;                 // reused: no allocation per event
  std::vector<std::string> quoted_;  // by TextId: as JSON, quotes included; empty: not made yet
  std::vector<Arrow> arrows_;        // by number - 1; they stand behind all slices
  bool first_ = true;
};

// Appends to a text: a number, a time in microseconds with its three decimals.
void append_integer(std::string& out, std::int64_t number);
void append_microseconds(std::string& out, Ns time);

}  // namespace commlens
