// The text of single Kineto events: the writer of a trace's events says what, this says how.
//
//   {
//     "ph": "X", "cat": "kernel", "name": "...", "pid": 0, "tid": 7,
//     "ts": 3216541087654.321, "dur": 12.500,
//     "args": {
//       "External id": 12, "stream": 7
//     }
//   },
#pragma once

#include <cstdint>
#include <string_view>

#include "base/id.h"
#include "base/sink.h"

namespace commlens::simulate {

// Where an event is drawn: a process (or device) and a thread (or stream).
struct Lane {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
};

class KinetoText {
 public:
  explicit KinetoText(Sink& sink) : sink_(sink) {}

  // A complete event; arguments follow until `end`. `start` is relative to the base.
  void begin(std::string_view cat, std::string_view name, Lane lane, Ns start, Ns length);
  void arg(std::string_view key, std::int64_t value);
  void arg(std::string_view key, std::string_view text);
  void raw_arg(std::string_view key, std::string_view json);
  void end();

  // One arrow's end at a launch ('s') or at what it launched ('f').
  void flow(char phase, std::int64_t id, Lane lane, Ns at);
  // "process_name" and the like, with its one argument.
  void metadata(std::string_view kind, Lane lane, Ns at, std::string_view key,
                std::string_view text);
  void metadata(std::string_view kind, Lane lane, Ns at, std::string_view key, std::int64_t value);
  // Any other event: `fields` as finished JSON text, to which its "ts" is added, and its "dur"
  // unless negative.
  void other(std::string_view fields, Ns at, Ns length = -1);

 private:
  void open();
  void key(std::string_view name);
  void number(std::int64_t value);
  void microseconds(Ns ns);
  void metadata_head(std::string_view kind, Lane lane, Ns at, std::string_view name);

  Sink& sink_;
  bool first_event_ = true;
  bool first_arg_ = true;
};

}  // namespace commlens::simulate
