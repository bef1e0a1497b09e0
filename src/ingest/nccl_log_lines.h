// Lines of a log file, without what terminals and launchers added to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/source.h"

namespace commlens {

struct LogLine {
  std::string text;         // without colours, line ends and emphasis
  std::int64_t number = 0;  // from 1
  bool ended = true;        // false: the file stops here, or the line is longer than is kept
};

// Reads forward, one line at a time; nothing grows with the file. A carriage return inside a line
// (progress bars) parts it like a line break, under the same number.
class LogLines {
 public:
  // `head`: what was taken from the source already.
  LogLines(Source& source, std::string_view head) : source_(source), buffer_(head) {}
  bool next(LogLine& line);
  std::int64_t count() const { return number_; }

 private:
  static constexpr std::size_t kLongestLine = std::size_t{64} << 10U;
  bool fill();

  Source& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
  bool inside_ = false;  // the next piece is of the same line
};

// Without escape sequences, "**" around the line, and a colour's remains at its start ("[0m").
std::string without_decoration(std::string_view text);

// At most 240 bytes, printable, with what looks like a secret replaced.
std::string evidence_text(std::string_view text);

// The same of at most `longest` bytes, and without a mark where it was longer.
std::string safe_start(std::string_view text, std::size_t longest);

}  // namespace commlens
