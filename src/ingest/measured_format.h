// What an input format of measured communications without a timeline is to the rest of the program:
// a name, a way to tell it by content, a reader. Beside `Format`, whose readers give timelines.
#pragma once

#include <span>
#include <string_view>

#include "base/source.h"
#include "model/measured.h"

namespace commlens {

struct MeasuredFormat {
  std::string_view name;     // as in --input-format and in the JSON
  std::string_view summary;  // one line for `commlens formats`
  // Whether a text that begins with `head` (some KiB, decompressed; the whole text if shorter) is
  // of this format. Asked before the formats of timelines: it must refuse whatever these read.
  bool (*sniff)(std::string_view head);
  // Reads everything into `measured`, whose path is set. Odd records become notes, and so does the
  // damage that ends a file early; throws Error(input) only where nothing can be used.
  void (*read)(Source& source, std::string_view head, Measured& measured);
  // Whether what it reads may stand at the end of a long text of another kind (a log): then `sniff`
  // is asked about the last KiB of a file that no format knows by its first.
  bool at_the_end = false;
};

// All formats, in the order in which they are asked.
std::span<const MeasuredFormat* const> measured_formats();
// The format of a text by its head; null where none knows it.
const MeasuredFormat* detect_measured_format(std::string_view head);
// The same by the end of a text.
const MeasuredFormat* detect_measured_format_by_end(std::string_view tail);
const MeasuredFormat* find_measured_format(std::string_view name);

}  // namespace commlens
