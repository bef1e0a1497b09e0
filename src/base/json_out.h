// Writes JSON into a Sink: commas, escapes and indentation in one place, and nothing that JSON
// cannot hold.
//
//   JsonOut json(sink);
//   json.begin_object();
//   json.key("rank"); json.value(3);
//   json.end_object();
//
// Strings may hold any bytes: what is not UTF-8 is replaced by U+FFFD. A double that is not finite
// becomes null.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/sink.h"

namespace commlens {

class JsonOut {
 public:
  // `indent` spaces a level; 0 writes everything on one line.
  explicit JsonOut(Sink& sink, int indent = 1) : sink_(sink), indent_(indent) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool flag);
  void value(double number);  // shortest text that reads back equal
  void value(std::int64_t number);
  void value(std::uint64_t number);
  void value(int number) { value(static_cast<std::int64_t>(number)); }
  void null();
  // A number whose text is already made (a time in microseconds, say), or a value made elsewhere.
  void raw(std::string_view text);
  // Writes what follows at this level on one line, until the matching `end`.
  void compact_next() { compact_next_ = true; }

 private:
  struct Level {
    bool empty = true;
    bool compact = false;
  };
  void open(char bracket);
  void close(char bracket);
  void before_value();
  void new_line();

  Sink& sink_;
  int indent_;
  bool after_key_ = false;
  bool compact_next_ = false;
  std::vector<Level> levels_;
};

// Appends `text` as a quoted JSON string.
void append_json_string(Sink& sink, std::string_view text);

}  // namespace commlens
