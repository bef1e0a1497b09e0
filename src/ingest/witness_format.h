// What an input format of `commlens diagnose` is to the rest of the program: a name, a way to tell
// it by content, a reader. Beside `Format`, whose readers give timelines.
#pragma once

#include <span>
#include <string_view>

#include "base/source.h"
#include "model/witness.h"

namespace commlens {

struct WitnessFormat {
  std::string_view name;     // as in --input-format and in the JSON
  std::string_view summary;  // one line for `commlens formats`
  // Whether a text that begins with `head` (some KiB, decompressed; the whole text if shorter) is
  // of this format.
  bool (*sniff)(std::string_view head);
  // Reads everything into `witness`, whose path is set. Odd records become notes, and so does the
  // damage that ends a file early; throws Error(input) only where nothing can be used.
  void (*read)(Source& source, std::string_view head, Witness& witness);
};

// All formats, in the order in which they are asked.
std::span<const WitnessFormat* const> witness_formats();
// The format of a text by its head; null where none knows it.
const WitnessFormat* detect_witness_format(std::string_view head);
const WitnessFormat* find_witness_format(std::string_view name);

}  // namespace commlens
