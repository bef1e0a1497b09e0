// What readers of measured communications share: lines, JSON in a line, numbers as they are
// printed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/source.h"
#include "ingest/json_scan.h"
#include "model/measured.h"

namespace commlens {

// Each line, without its end, and its number from 1. What ended the source early becomes a note.
void read_measured_lines(
    Source& source, std::string_view head, Measured& measured,
    const std::function<void(std::string_view line, std::int64_t number)>& line);

// The source's end as a note; to be called when all was read.
void note_measured_end(const Source& source, Measured& measured);

// A text with room behind it, as walkers of JSON want it; used again and again.
class PaddedText {
 public:
  std::string_view set(std::string_view text) {
    buffer_.assign(text);
    buffer_.append(kScanPadding, '\0');
    return std::string_view(buffer_).substr(0, text.size());
  }

 private:
  std::string buffer_;
};

// The groups of a file that may name many of them: each is kept once.
class GroupIndex {
 public:
  explicit GroupIndex(Measured& measured) : measured_(measured) {}
  // Index into Measured::groups.
  std::uint32_t add(const MeasuredGroup& group);

 private:
  using Key =
      std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::vector<std::int64_t>>;
  Measured& measured_;
  std::uint32_t last_ = 0;
  std::map<Key, std::uint32_t> index_;
};

// "line 12: ..." for an example.
std::string example_line(std::int64_t number, std::string_view text);

// Words between blanks.
std::vector<std::string_view> blank_separated(std::string_view line);
std::string_view trimmed_text(std::string_view text);

// "9.46", "1e-07" and the like; nothing for anything else, and for infinities.
std::optional<double> printed_number(std::string_view text);
// A decimal count of milliseconds as nanoseconds; nothing for text that is none, for negative ones
// and for what no machine ran so long.
std::optional<Ns> milliseconds_to_ns(std::string_view text);
// "678.86 MB", "4.00GB", "0B": units are powers of 1024. `exact`: a whole number of bytes.
struct PrintedSize {
  std::int64_t bytes = 0;
  bool exact = false;
};
std::optional<PrintedSize> printed_size(std::string_view text);

// Sizes that no message has: 2^50 bytes are more than any GPU holds by a factor of thousands.
inline constexpr std::int64_t kLargestMessage = std::int64_t{1} << 50U;

}  // namespace commlens
